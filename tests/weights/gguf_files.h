// Small GGUF files for tests, written here byte by byte.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace tgi {

class GgufBytes {
 public:
  template <typename T>
  GgufBytes& number(T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    text_.append(bytes, sizeof bytes);
    return *this;
  }
  GgufBytes& string(const std::string& text) {
    number<uint64_t>(text.size());
    text_ += text;
    return *this;
  }
  GgufBytes& raw(const std::string& bytes) {
    text_ += bytes;
    return *this;
  }
  GgufBytes& pad_to(size_t alignment) {
    text_.resize((text_.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

struct GgufTestTensor {
  std::string name;
  std::vector<uint64_t> dims;  // innermost first, as files have them
  uint32_t type = 0;
  std::string bytes;
};

// A key with its type and value, as the file has them behind the key's name.
using GgufTestValue = std::pair<std::string, std::string>;

inline GgufTestValue text_value(const std::string& key, const std::string& text) {
  return {key, GgufBytes().number<uint32_t>(8).string(text).text()};
}

inline GgufTestValue u32_value(const std::string& key, uint32_t value) {
  return {key, GgufBytes().number<uint32_t>(4).number(value).text()};
}

inline std::string gguf_file(const std::vector<GgufTestValue>& values,
                             const std::vector<GgufTestTensor>& tensors,
                             uint32_t version = 3,
                             size_t alignment = 32) {
  GgufBytes out;
  out.raw("GGUF").number(version).number<uint64_t>(tensors.size()).number<uint64_t>(values.size());
  for (const auto& [key, value] : values) out.string(key).raw(value);
  GgufBytes data;
  for (const GgufTestTensor& tensor : tensors) {
    out.string(tensor.name).number(static_cast<uint32_t>(tensor.dims.size()));
    for (const uint64_t size : tensor.dims) out.number(size);
    data.pad_to(alignment);
    out.number(tensor.type).number<uint64_t>(data.text().size());
    data.raw(tensor.bytes);
  }
  return out.pad_to(alignment).raw(data.text()).text();
}

}  // namespace tgi
