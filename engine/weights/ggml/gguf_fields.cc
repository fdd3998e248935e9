#include "engine/weights/ggml/gguf_fields.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.h"

namespace tgi {
namespace {

template <typename T>
void append_bytes(std::string& out, const T& value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

template <typename T>
std::string bytes_of(const T& value) {
  std::string out;
  append_bytes(out, value);
  return out;
}

template <typename T>
std::string bytes_of_all(std::span<const T> values) {
  std::string out(values.size_bytes(), '\0');
  if (!values.empty()) std::memcpy(out.data(), values.data(), values.size_bytes());
  return out;
}

}  // namespace

void GgufFields::put_integer(std::string_view key, int64_t value) {
  const bool fits = value >= 0 && value <= int64_t{std::numeric_limits<uint32_t>::max()};
  if (fits) {
    put({.key = std::string(key),
         .type = GgufValueType::kUint32,
         .bytes = bytes_of(static_cast<uint32_t>(value))});
  } else {
    put({.key = std::string(key), .type = GgufValueType::kInt64, .bytes = bytes_of(value)});
  }
}

void GgufFields::put_number(std::string_view key, double value) {
  put({.key = std::string(key),
       .type = GgufValueType::kFloat32,
       .bytes = bytes_of(static_cast<float>(value))});
}

void GgufFields::put_boolean(std::string_view key, bool value) {
  put({.key = std::string(key),
       .type = GgufValueType::kBool,
       .bytes = std::string(1, value ? '\1' : '\0')});
}

void GgufFields::put_text(std::string_view key, std::string_view value) {
  put({.key = std::string(key), .type = GgufValueType::kString, .bytes = std::string(value)});
}

void GgufFields::put_integers(std::string_view key, std::span<const int32_t> values) {
  put({.key = std::string(key),
       .type = GgufValueType::kArray,
       .element_type = GgufValueType::kInt32,
       .count = values.size(),
       .bytes = bytes_of_all(values)});
}

void GgufFields::put_numbers(std::string_view key, std::span<const float> values) {
  put({.key = std::string(key),
       .type = GgufValueType::kArray,
       .element_type = GgufValueType::kFloat32,
       .count = values.size(),
       .bytes = bytes_of_all(values)});
}

void GgufFields::put_booleans(std::string_view key, const std::vector<bool>& values) {
  std::string bytes;
  for (const bool value : values) bytes += value ? '\1' : '\0';
  put({.key = std::string(key),
       .type = GgufValueType::kArray,
       .element_type = GgufValueType::kBool,
       .count = values.size(),
       .bytes = std::move(bytes)});
}

void GgufFields::put_texts(std::string_view key, const std::vector<std::string>& values) {
  std::string bytes;
  for (const std::string& value : values) {
    append_bytes(bytes, static_cast<uint64_t>(value.size()));
    bytes += value;
  }
  put({.key = std::string(key),
       .type = GgufValueType::kArray,
       .element_type = GgufValueType::kString,
       .count = values.size(),
       .bytes = std::move(bytes)});
}

void GgufFields::put(std::string_view key, const GgufValue& value) {
  put({.key = std::string(key),
       .type = value.type,
       .element_type = value.element_type,
       .count = value.count,
       .bytes =
           std::string(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size())});
}

bool GgufFields::has(std::string_view key) const {
  return std::ranges::find(fields_, key, &Field::key) != fields_.end();
}

void GgufFields::erase(std::string_view key) {
  std::erase_if(fields_, [&](const Field& field) { return field.key == key; });
}

GgufMetadata GgufFields::metadata() const {
  GgufMetadata out;
  for (const Field& field : fields_) {
    out.add(field.key, {.type = field.type,
                        .element_type = field.element_type,
                        .count = field.count,
                        .bytes = std::as_bytes(std::span(field.bytes))});
  }
  return out;
}

void GgufFields::put(Field field) {
  const auto it = std::ranges::find(fields_, field.key, &Field::key);
  if (it == fields_.end()) {
    fields_.push_back(std::move(field));
  } else {
    *it = std::move(field);
  }
}

}  // namespace tgi
