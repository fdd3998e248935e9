#include "engine/text/tokenizer/added_tokens.h"

#include <algorithm>

#include "base/utf8.h"
#include "engine/text/unicode/unicode.h"

namespace tgi {
namespace {

// Where the white space that `text` ends with begins.
size_t trailing_space(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0) {
    const size_t last = character_begin(text, begin - 1);
    size_t offset = last;
    if (!is_white_space(next_character(text, offset))) break;
    begin = last;
  }
  return begin;
}

// Where the white space that `text` begins with ends.
size_t leading_space(std::string_view text) {
  size_t end = 0;
  while (end < text.size()) {
    size_t offset = end;
    if (!is_white_space(next_character(text, offset))) break;
    end = offset;
  }
  return end;
}

}  // namespace

void AddedTokens::add(AddedToken token) {
  by_content_[token.content] = token.id;
  highest_id_ = std::max(highest_id_, token.id);
  by_id_[token.id] = std::move(token);
}

void AddedTokens::build(bool splits_special) {
  splits_special_ = splits_special;
  for (const auto& [id, token] : by_id_) {
    if (token.normalized_content.empty()) continue;
    Finder& finder = finders_[token.normalized ? 1 : 0];
    finder.entries.push_back({token.normalized_content, &token});
    finder.starts[static_cast<unsigned char>(token.normalized_content[0])] = true;
    // The \w of Rust's regular expressions, at the end or the beginning of a text.
    if (token.single_word && word_ == nullptr) {
      word_ = std::make_unique<Regex>(R"([[:word:]\u200C\u200D])");
    }
  }
  for (Finder& finder : finders_) {
    std::sort(finder.entries.begin(), finder.entries.end(), [](const Entry& a, const Entry& b) {
      return a.text != b.text ? a.text < b.text : a.token->id < b.token->id;
    });
  }
}

// Narrows the sorted list byte by byte down to what `text` begins with.
const AddedTokens::Entry* AddedTokens::longest_at(const Finder& finder, std::string_view text) {
  auto low = finder.entries.begin();
  auto high = finder.entries.end();
  const Entry* longest = nullptr;
  for (size_t depth = 0; low != high; ++depth) {
    if (low->text.size() == depth) {  // the shortest comes first
      longest = &*low;
      while (low != high && low->text.size() == depth) ++low;
    }
    if (depth == text.size()) break;
    const auto byte = static_cast<unsigned char>(text[depth]);
    const auto byte_of = [depth](const Entry& entry) {
      return static_cast<unsigned char>(entry.text[depth]);
    };
    low = std::lower_bound(low, high, byte, [&](const Entry& entry, unsigned char wanted) {
      return byte_of(entry) < wanted;
    });
    high = std::upper_bound(low, high, byte, [&](unsigned char wanted, const Entry& entry) {
      return wanted < byte_of(entry);
    });
  }
  return longest;
}

bool AddedTokens::stands_alone(std::string_view text, TextRange match) const {
  std::vector<TextRange> found;
  if (match.begin > 0) {
    const size_t last = character_begin(text, match.begin - 1);
    word_->find_all(text.substr(last, match.begin - last), found);
  }
  if (match.end < text.size()) {
    word_->find_all(text.substr(match.end, utf8_size(text[match.end])), found);
  }
  return found.empty();
}

std::vector<TextPart> AddedTokens::split(std::string_view text, bool normalized) const {
  const Finder& finder = finders_[normalized ? 1 : 0];
  std::vector<TextPart> parts;
  size_t done = 0;  // what is before it is in parts
  size_t at = finder.entries.empty() ? text.size() : 0;
  while (at < text.size()) {
    const Entry* entry = nullptr;
    if (finder.starts[static_cast<unsigned char>(text[at])]) {
      entry = longest_at(finder, text.substr(at));
    }
    if (entry == nullptr) {
      ++at;
      continue;
    }
    TextRange match{at, at + entry->text.size()};
    at = match.end;
    const AddedToken& token = *entry->token;
    if (splits_special_ && token.special) continue;
    if (token.single_word && !stands_alone(text, match)) continue;
    if (token.lstrip) match.begin = std::max(trailing_space(text.substr(0, match.begin)), done);
    if (token.rstrip) match.end += leading_space(text.substr(match.end));
    if (done < match.begin) parts.push_back({{done, match.begin}, nullptr});
    // Nothing is left of a token of white space whose neighbour has taken it all.
    if (match.begin < match.end) parts.push_back({match, &token});
    done = match.end;
  }
  if (done != text.size()) parts.push_back({{done, text.size()}, nullptr});
  return parts;
}

const AddedToken* AddedTokens::find(int32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &found->second;
}

std::optional<int32_t> AddedTokens::id_of(std::string_view content) const {
  const auto found = by_content_.find(std::string(content));
  if (found == by_content_.end()) return std::nullopt;
  return found->second;
}

}  // namespace tgi
