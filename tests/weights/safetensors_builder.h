// Makes safetensors files in memory, good ones and damaged ones.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/file_source.h"

namespace tgi {

// The header as given, whatever it says, then the data.
inline std::string raw_safetensors(std::string_view header, std::string_view data) {
  std::string out(8, '\0');
  for (size_t i = 0; i < 8; ++i) {
    out[i] = static_cast<char>((static_cast<uint64_t>(header.size()) >> (8 * i)) & 0xFF);
  }
  return out.append(header).append(data);
}

struct TestTensor {
  std::string name;
  std::string dtype;
  std::string shape;  // "[2, 3]"
  std::string data;
};

inline std::string build_safetensors(const std::vector<TestTensor>& tensors) {
  std::string header = "{\"__metadata__\":{\"format\":\"pt\"}";
  std::string data;
  for (const TestTensor& tensor : tensors) {
    const std::string end = std::to_string(data.size() + tensor.data.size());
    header += ",\"" + tensor.name + "\":{\"dtype\":\"" + tensor.dtype +
              "\",\"shape\":" + tensor.shape + ",\"data_offsets\":[" + std::to_string(data.size()) +
              "," + end + "]}";
    data += tensor.data;
  }
  return raw_safetensors(header + "}", data);
}

inline std::string f32_bytes(const std::vector<float>& values) {
  std::string out(values.size() * sizeof(float), '\0');
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// Files in memory. Counts what is released.
class MemorySource final : public FileSource {
 public:
  explicit MemorySource(std::map<std::string, std::string> files) : files_(std::move(files)) {}

  std::optional<std::span<const std::byte>> find(const std::string& name) const override {
    const auto it = files_.find(name);
    if (it == files_.end()) return std::nullopt;
    return as_bytes(it->second);
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> out;
    for (const auto& [name, bytes] : files_) out.push_back(name);
    return out;
  }
  std::string describe(const std::string& name) const override { return "memory/" + name; }
  void release(std::span<const std::byte> bytes) const override { released_bytes_ += bytes.size(); }

  size_t released_bytes() const { return released_bytes_; }

 private:
  const std::map<std::string, std::string> files_;
  mutable size_t released_bytes_ = 0;
};

}  // namespace tgi
