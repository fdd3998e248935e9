// Values of the metadata of a GGUF file, by key and type.
#include <fmt/format.h>

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/weights/ggml/block_bytes.h"
#include "engine/weights/ggml/gguf_file.h"

namespace tgi {
namespace {

[[noreturn]] void fail_type(std::string_view key,
                            const GgufValue& value,
                            std::string_view expected) {
  std::string got(gguf_value_type_name(value.type));
  if (value.type == GgufValueType::kArray) {
    got = fmt::format("an array of {}", gguf_value_type_name(value.element_type));
  }
  throw Error(Code::kInvalidArgument, fmt::format("{}: expected {}, got {}", key, expected, got));
}

std::optional<int64_t> integer_at(GgufValueType type, const std::byte* at) {
  switch (type) {
    case GgufValueType::kUint8:
      return load_as<uint8_t>(at);
    case GgufValueType::kInt8:
      return load_as<int8_t>(at);
    case GgufValueType::kUint16:
      return load_as<uint16_t>(at);
    case GgufValueType::kInt16:
      return load_as<int16_t>(at);
    case GgufValueType::kUint32:
      return load_as<uint32_t>(at);
    case GgufValueType::kInt32:
      return load_as<int32_t>(at);
    case GgufValueType::kInt64:
      return load_as<int64_t>(at);
    case GgufValueType::kUint64: {
      const auto value = load_as<uint64_t>(at);
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
      return static_cast<int64_t>(value);
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> number_at(GgufValueType type, const std::byte* at) {
  if (type == GgufValueType::kFloat32) return load_as<float>(at);
  if (type == GgufValueType::kFloat64) return load_as<double>(at);
  if (const auto integer = integer_at(type, at)) return static_cast<double>(*integer);
  return std::nullopt;
}

std::optional<bool> boolean_at(GgufValueType type, const std::byte* at) {
  if (type != GgufValueType::kBool) return std::nullopt;
  return std::to_integer<int>(*at) != 0;
}

bool is_scalar(GgufValueType type) {
  return gguf_value_size(type) > 0;
}

template <typename T>
T scalar(std::string_view key,
         const GgufValue& value,
         std::string_view expected,
         std::optional<T> (*at)(GgufValueType, const std::byte*)) {
  if (is_scalar(value.type)) {
    if (const auto out = at(value.type, value.bytes.data())) return *out;
  }
  fail_type(key, value, expected);
}

template <typename T>
std::vector<T> elements(std::string_view key,
                        const GgufValue& value,
                        std::string_view expected,
                        std::optional<T> (*at)(GgufValueType, const std::byte*)) {
  if (value.type != GgufValueType::kArray) fail_type(key, value, expected);
  if (value.count > 0 && !is_scalar(value.element_type)) fail_type(key, value, expected);
  std::vector<T> out;
  out.reserve(value.count);
  const uint64_t size = gguf_value_size(value.element_type);
  for (uint64_t i = 0; i < value.count; ++i) {
    const auto one = at(value.element_type, value.bytes.data() + i * size);
    if (!one) fail_type(key, value, expected);
    out.push_back(*one);
  }
  return out;
}

const GgufValue& require(const GgufMetadata& metadata, std::string_view key) {
  const GgufValue* const value = metadata.find(key);
  if (value == nullptr) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: not in the file's metadata", key));
  }
  return *value;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto it = values_.find(key);
  return it == values_.end() ? nullptr : &it->second;
}

std::vector<std::string_view> GgufMetadata::keys() const {
  std::vector<std::string_view> out;
  out.reserve(values_.size());
  for (const auto& [key, value] : values_) out.push_back(key);
  return out;
}

void GgufMetadata::add(std::string_view key, const GgufValue& value) {
  const bool is_new = values_.emplace(key, value).second;
  TGI_CHECK(is_new);
}

int64_t GgufMetadata::integer(std::string_view key) const {
  return scalar<int64_t>(key, require(*this, key), "an integer", integer_at);
}

double GgufMetadata::number(std::string_view key) const {
  return scalar<double>(key, require(*this, key), "a number", number_at);
}

bool GgufMetadata::boolean(std::string_view key) const {
  return scalar<bool>(key, require(*this, key), "true or false", boolean_at);
}

std::string_view GgufMetadata::text(std::string_view key) const {
  const GgufValue& value = require(*this, key);
  if (value.type != GgufValueType::kString) fail_type(key, value, "a string");
  const std::string_view text = text_of(value.bytes);
  if (is_valid_utf8(text)) return text;
  throw Error(Code::kInvalidArgument, fmt::format("{}: not UTF-8", key));
}

std::vector<int64_t> GgufMetadata::integers(std::string_view key) const {
  return elements<int64_t>(key, require(*this, key), "an array of integers", integer_at);
}

std::vector<double> GgufMetadata::numbers(std::string_view key) const {
  return elements<double>(key, require(*this, key), "an array of numbers", number_at);
}

std::vector<bool> GgufMetadata::booleans(std::string_view key) const {
  return elements<bool>(key, require(*this, key), "an array of true and false", boolean_at);
}

std::vector<std::string_view> GgufMetadata::texts(std::string_view key) const {
  const GgufValue& value = require(*this, key);
  const bool is_array = value.type == GgufValueType::kArray;
  if (!is_array || (value.count > 0 && value.element_type != GgufValueType::kString)) {
    fail_type(key, value, "an array of strings");
  }
  std::vector<std::string_view> out;
  out.reserve(value.count);
  std::span<const std::byte> rest = value.bytes;
  for (uint64_t i = 0; i < value.count; ++i) {
    const auto size = load_as<uint64_t>(rest.data());
    out.push_back(text_of(rest.subspan(8, size)));
    rest = rest.subspan(8 + size);
  }
  return out;
}

std::optional<int64_t> GgufMetadata::find_integer(std::string_view key) const {
  return has(key) ? std::optional(integer(key)) : std::nullopt;
}

std::optional<double> GgufMetadata::find_number(std::string_view key) const {
  return has(key) ? std::optional(number(key)) : std::nullopt;
}

std::optional<bool> GgufMetadata::find_boolean(std::string_view key) const {
  return has(key) ? std::optional(boolean(key)) : std::nullopt;
}

std::optional<std::string_view> GgufMetadata::find_text(std::string_view key) const {
  return has(key) ? std::optional(text(key)) : std::nullopt;
}

}  // namespace tgi
