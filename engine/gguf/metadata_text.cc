#include "engine/gguf/metadata_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"

namespace tgi::gguf {
namespace {

constexpr size_t kMostCharacters = 60;
constexpr uint64_t kMostElements = 8;

// Line feeds and the like would break the line.
std::string line_of(std::string_view text) {
  std::string out;
  size_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) {
    if (count == kMostCharacters) return fmt::format("{}... ({} bytes)", out, text.size());
    const size_t begin = at;
    const char32_t character = next_character(text, at);
    const bool is_control = character < 0x20 || character == 0x7F;
    out += is_control ? " " : text.substr(begin, at - begin);
  }
  return out;
}

std::string text_of_elements(const GgufMetadata& metadata, std::string_view key) {
  const GgufValue& value = *metadata.find(key);
  const std::string_view type = gguf_value_type_name(value.element_type);
  const bool is_short = value.count > 0 && value.count <= kMostElements;
  if (is_short && value.element_type == GgufValueType::kBool) {
    return fmt::format("{}", metadata.booleans(key));
  }
  if (is_short && gguf_value_size(value.element_type) > 0) {
    return fmt::format("[{}]", fmt::join(metadata.numbers(key), ", "));
  }
  return fmt::format("{} of {}", value.count, type);
}

std::string text_of(const GgufMetadata& metadata, std::string_view key) {
  const GgufValueType type = metadata.find(key)->type;
  if (type == GgufValueType::kString) return line_of(metadata.text(key));
  if (type == GgufValueType::kArray) return text_of_elements(metadata, key);
  if (type == GgufValueType::kBool) return metadata.boolean(key) ? "true" : "false";
  return fmt::format("{}", metadata.number(key));
}

}  // namespace

std::string metadata_text(const GgufMetadata& metadata) {
  Json out = Json::object();
  for (const std::string_view key : metadata.keys()) {
    try {
      out[std::string(key)] = text_of(metadata, key);
    } catch (const Error& error) {  // bytes that are no text, numbers beyond all others
      out[std::string(key)] = error.what();
    }
  }
  return out.dump();
}

}  // namespace tgi::gguf
