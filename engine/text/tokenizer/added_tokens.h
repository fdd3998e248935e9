// The tokens that are matched in the text before the model sees it ("added_tokens" of
// tokenizer.json, added_tokens_decoder of tokenizer_config.json). Immutable once built.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/text/unicode/regex.h"

namespace tgi {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  std::string normalized_content;  // what is looked for when normalized; the same for the others
  bool single_word = false;        // not inside a word
  bool lstrip = false;             // takes the white space before it
  bool rstrip = false;
  bool normalized = false;  // is looked for in the normalised text
  bool special = false;
};

// A part of a text: a token, or text between tokens (token == nullptr).
struct TextPart {
  TextRange range;
  const AddedToken* token;
};

class AddedTokens {
 public:
  // A later token with the same content or id as an earlier one takes its place.
  void add(AddedToken token);

  // Call once, after the last add and before split. splits_special: special tokens are text.
  void build(bool splits_special = false);

  // Cuts `text` at the tokens that are looked for in normalised text, or at the others. Leftmost
  // first, the longest of those that begin at one place. REQUIRES: valid UTF-8.
  std::vector<TextPart> split(std::string_view text, bool normalized) const;

  const AddedToken* find(int32_t id) const;
  std::optional<int32_t> id_of(std::string_view content) const;
  int32_t highest_id() const { return highest_id_; }  // -1: no token

 private:
  struct Entry {
    std::string_view text;
    const AddedToken* token;
  };
  struct Finder {
    std::vector<Entry> entries;      // sorted by text
    std::array<bool, 256> starts{};  // a token begins with this byte
  };

  static const Entry* longest_at(const Finder& finder, std::string_view text);
  bool stands_alone(std::string_view text, TextRange match) const;

  std::unordered_map<int32_t, AddedToken> by_id_;
  std::unordered_map<std::string, int32_t> by_content_;
  int32_t highest_id_ = -1;
  bool splits_special_ = false;
  Finder finders_[2];            // [normalized]
  std::unique_ptr<Regex> word_;  // when some token has single_word
};

}  // namespace tgi
