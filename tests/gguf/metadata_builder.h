// Metadata of a GGUF file without the file.
#pragma once

#include <cstring>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/weights/ggml/gguf_file.h"

namespace tgi {

// Of tokenizer.ggml.token_type.
constexpr int kNormal = 1;
constexpr int kUnknown = 2;
constexpr int kControl = 3;
constexpr int kUserDefined = 4;
constexpr int kUnused = 5;
constexpr int kByte = 6;

class MetadataBuilder {
 public:
  MetadataBuilder() = default;
  explicit MetadataBuilder(const GgufMetadata& other) {
    for (const std::string_view key : other.keys()) {
      values_.emplace(std::string(key), *other.find(key));
    }
  }

  // Each replaces what was there.
  MetadataBuilder& set(const std::string& key, std::string_view text) {
    return put(key, GgufValueType::kString, std::string(text));
  }
  MetadataBuilder& set(const std::string& key, const char* text) {
    return set(key, std::string_view(text));
  }
  MetadataBuilder& set(const std::string& key, bool value) {
    return put(key, GgufValueType::kBool, std::string(1, value ? '\1' : '\0'));
  }
  MetadataBuilder& set(const std::string& key, int value) {
    return put(key, GgufValueType::kInt32, bytes_of(value));
  }
  MetadataBuilder& set(const std::string& key, const std::vector<std::string>& texts) {
    std::string bytes;
    for (const std::string& text : texts) bytes += bytes_of(uint64_t{text.size()}) + text;
    return put(key, GgufValueType::kArray, bytes, GgufValueType::kString, texts.size());
  }
  MetadataBuilder& set(const std::string& key, const std::vector<int32_t>& values) {
    std::string bytes;
    for (const int32_t value : values) bytes += bytes_of(value);
    return put(key, GgufValueType::kArray, bytes, GgufValueType::kInt32, values.size());
  }
  MetadataBuilder& set(const std::string& key, const std::vector<float>& values) {
    std::string bytes;
    for (const float value : values) bytes += bytes_of(value);
    return put(key, GgufValueType::kArray, bytes, GgufValueType::kFloat32, values.size());
  }
  MetadataBuilder& set(const std::string& key, const GgufValue& value) {
    values_[key] = value;
    return *this;
  }
  MetadataBuilder& remove(const std::string& key) {
    values_.erase(key);
    return *this;
  }

  // The same fields under another architecture's name.
  MetadataBuilder& rename(const std::string& from, const std::string& to) {
    std::map<std::string, GgufValue> renamed;
    for (const auto& [key, value] : values_) {
      renamed[key.starts_with(from + ".") ? to + key.substr(from.size()) : key] = value;
    }
    values_ = std::move(renamed);
    return set("general.architecture", to);
  }

  // Lives as long as the builder.
  GgufMetadata build() const {
    GgufMetadata metadata;
    for (const auto& [key, value] : values_) metadata.add(key, value);
    return metadata;
  }

 private:
  template <typename T>
  static std::string bytes_of(const T& value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  }

  MetadataBuilder& put(const std::string& key,
                       GgufValueType type,
                       std::string bytes,
                       GgufValueType element_type = GgufValueType::kUint8,
                       uint64_t count = 1) {
    const std::string& kept = storage_.emplace_back(std::move(bytes));
    values_[key] = {.type = type,
                    .element_type = element_type,
                    .count = count,
                    .bytes = std::as_bytes(std::span(kept.data(), kept.size()))};
    return *this;
  }

  std::map<std::string, GgufValue> values_;
  std::deque<std::string> storage_;
};

}  // namespace tgi
