#include "engine/text/tokenizer/precompiled_normalizer.h"

#include <fmt/format.h>

#include "base/base64.h"
#include "base/error.h"
#include "base/utf8.h"
#include "engine/text/unicode/graphemes.h"

namespace tgi {
namespace {

constexpr size_t kLongestGrapheme = 5;  // in bytes

// A unit's fields.
bool has_leaf(uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
uint32_t label_of(uint32_t unit) {  // never a byte for a unit that holds a value
  return unit & 0x800000FF;
}
uint32_t offset_of(uint32_t unit) {
  return (unit >> 10) << ((unit & 0x200) >> 6);
}
uint32_t value_of(uint32_t unit) {
  return unit & 0x7FFFFFFF;
}

[[noreturn]] void fail_damaged(const std::string& what) {
  throw Error(Code::kInvalidArgument, what + "; is the file damaged?");
}

uint32_t read_unit(std::string_view bytes, size_t at) {
  uint32_t unit = 0;
  for (size_t i = 0; i < 4; ++i) {
    unit |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return unit;
}

class PrecompiledStep final : public Normalizer::Step {
 public:
  explicit PrecompiledStep(Charsmap charsmap) : charsmap_(std::move(charsmap)) {}

  void apply(std::string& text, bool& /*at_start*/, Alignment* alignment) const override {
    std::string out;
    out.reserve(text.size());
    Changes counted;
    Changes* const changes = alignment == nullptr ? nullptr : &counted;
    bool modified = false;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = grapheme_end(text, begin);
      const std::string_view grapheme = std::string_view(text).substr(begin, end - begin);
      if (grapheme.size() <= kLongestGrapheme && replace(grapheme, out, changes)) {
        modified = true;
      } else {
        modified |= replace_characters(grapheme, out, changes);
      }
      begin = end;
    }
    if (!modified) return;
    if (alignment != nullptr) align_changes(text, out, counted, *alignment);
    text = std::move(out);
  }

 private:
  // What the library counts for a replacement. What is taken away in front of all others isn't
  // counted, so that the places of all that follows move.
  static void add_changes(std::string_view old_text, std::string_view new_text, Changes& changes) {
    const int64_t num_new = count_utf8_characters(new_text);
    int64_t grown = num_new - count_utf8_characters(old_text);
    changes.resize(changes.size() + static_cast<size_t>(num_new), 0);
    if (grown < 0 && !changes.empty()) changes.back() += grown;
    for (auto last = changes.rbegin(); grown > 0; --grown) *last++ = 1;
  }

  bool replace(std::string_view part, std::string& out, Changes* changes) const {
    const auto replacement = charsmap_.find(part);
    if (!replacement) return false;
    out += *replacement;
    if (changes != nullptr) add_changes(part, *replacement, *changes);
    return true;
  }

  bool replace_characters(std::string_view grapheme, std::string& out, Changes* changes) const {
    bool modified = false;
    for (size_t at = 0; at < grapheme.size();) {
      const std::string_view character = grapheme.substr(at, utf8_size(grapheme[at]));
      at += character.size();
      if (replace(character, out, changes)) {
        modified = true;
      } else {
        out += character;
        if (changes != nullptr) changes->push_back(0);
      }
    }
    return modified;
  }

  const Charsmap charsmap_;
};

}  // namespace

Charsmap::Charsmap(std::string_view bytes) {
  if (bytes.size() < 4) fail_damaged("expected the size of a trie, got nothing");
  const uint32_t trie_size = read_unit(bytes, 0);
  const size_t num_units = trie_size / 4;
  if (num_units > (bytes.size() - 4) / 4) {
    fail_damaged(fmt::format("expected a trie of {} bytes, got {}", trie_size, bytes.size() - 4));
  }
  units_.reserve(num_units);
  for (size_t i = 0; i < num_units; ++i) units_.push_back(read_unit(bytes, 4 + 4 * i));
  texts_ = bytes.substr(4 + 4 * num_units);
  if (!is_valid_utf8(texts_)) fail_damaged("expected replacements in UTF-8");
  check_reachable();
}

void Charsmap::check_value(uint32_t value) const {
  const bool is_text = value < texts_.size() && starts_character(texts_[value]);
  if (is_text || value == texts_.size()) return;
  fail_damaged(fmt::format("a rule's replacement is at byte {} of {}", value, texts_.size()));
}

// Every node that a text could lead to, so that find needs no checks but of the array's end.
void Charsmap::check_reachable() const {
  if (units_.empty()) fail_damaged("expected a trie, got none");
  std::vector<bool> seen(units_.size(), false);
  std::vector<uint32_t> nodes;
  const auto visit = [&](uint32_t node) {
    if (node >= units_.size()) {
      fail_damaged(fmt::format("the trie leads to unit {} of {}", node, units_.size()));
    }
    if (seen[node]) return;
    seen[node] = true;
    nodes.push_back(node);
  };
  visit(offset_of(units_[0]));
  while (!nodes.empty()) {
    const uint32_t node = nodes.back();
    nodes.pop_back();
    for (uint32_t byte = 1; byte < 256; ++byte) {
      const uint32_t child = node ^ byte;
      if (child >= units_.size() || label_of(units_[child]) != byte) continue;
      const uint32_t next = child ^ offset_of(units_[child]);
      visit(next);
      if (has_leaf(units_[child])) check_value(value_of(units_[next]));
    }
  }
}

std::optional<std::string_view> Charsmap::find(std::string_view text) const {
  uint32_t node = offset_of(units_[0]);
  for (const char c : text) {
    const uint32_t byte = static_cast<unsigned char>(c);
    if (byte == 0) break;
    const uint32_t child = node ^ byte;
    if (child >= units_.size() || label_of(units_[child]) != byte) break;
    node = child ^ offset_of(units_[child]);
    if (!has_leaf(units_[child])) continue;
    const std::string_view rest = std::string_view(texts_).substr(value_of(units_[node]));
    return rest.substr(0, rest.find('\0'));
  }
  return std::nullopt;
}

std::unique_ptr<Normalizer::Step> make_precompiled_step(const JsonReader& component) {
  const std::string encoded = component.string("precompiled_charsmap");
  try {
    return std::make_unique<PrecompiledStep>(Charsmap(decode_base64(encoded)));
  } catch (const Error& error) {
    throw error.in(component.path_of("precompiled_charsmap"));
  }
}

}  // namespace tgi
