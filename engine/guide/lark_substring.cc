#include "engine/guide/lark_substring.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/guide/code_points.h"
#include "engine/guide/regex_sets.h"

namespace tgi::guide {
namespace {

constexpr size_t kMaxChunks = 10'000;
// Beginnings are nested in blocks of so many, and the blocks in one another.
constexpr size_t kChunksOfBlock = 50;

[[noreturn]] void refuse_substring(const std::string& what) {
  throw Error(Code::kInvalidArgument, "%regex: " + what);
}

enum class Letter { kWord, kSpace, kOther };

Letter letter_of(char32_t character) {
  // Of every script, as words of Rust's patterns are.
  static const CodePoints words = [] {
    CodePoints all = word_characters();
    for (const char* part : {"L", "M", "N", "Pc"}) {
      const std::optional<CodePoints> more = property_characters(part);
      if (more) all.insert(all.end(), more->begin(), more->end());
    }
    return normalize_code_points(all);
  }();
  static const CodePoints spaces = white_space_characters();
  if (contains_code_point(words, character)) return Letter::kWord;
  return contains_code_point(spaces, character) ? Letter::kSpace : Letter::kOther;
}

std::vector<std::string> cut(std::string_view text, bool into_words) {
  std::vector<std::string> chunks;
  Letter before = Letter::kOther;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const Letter kind = letter_of(next_character(text, at));
    if (chunks.empty() || !into_words || kind != before) chunks.emplace_back();
    chunks.back() += text.substr(begin, at - begin);
    before = kind;
  }
  return chunks;
}

std::vector<std::string> chunks_of(const nlohmann::ordered_json& json) {
  constexpr const char* kExpected =
      "expected {\"substring_words\": \"...\"}, or substring_chars, or substring_chunks with an "
      "array of strings";
  if (!json.is_object() || json.size() != 1) refuse_substring(kExpected);
  const std::string& name = json.begin().key();
  const nlohmann::ordered_json& value = json.begin().value();
  if (name == "substring_chunks" && value.is_array()) {
    std::vector<std::string> chunks;
    for (const nlohmann::ordered_json& chunk : value) {
      if (!chunk.is_string()) refuse_substring(kExpected);
      chunks.push_back(chunk.get<std::string>());
    }
    return chunks;
  }
  const bool into_words = name == "substring_words";
  if ((!into_words && name != "substring_chars") || !value.is_string()) refuse_substring(kExpected);
  return cut(value.get<std::string>(), into_words);
}

}  // namespace

Regex substring_regex(RegexPool& pool, const nlohmann::ordered_json& json) {
  const std::vector<std::string> chunks = chunks_of(json);
  if (chunks.size() > kMaxChunks) {
    refuse_substring("the text has " + std::to_string(chunks.size()) + " parts, and " +
                     std::to_string(kMaxChunks) +
                     " are the most that can be told apart; make it shorter");
  }
  std::vector<Regex> from{pool.empty_text()};
  Regex beginning = pool.empty_text();  // of what is left of the block
  Regex whole = pool.empty_text();      // all of it
  Regex behind = pool.empty_text();     // what may follow the block
  for (size_t i = chunks.size(); i-- > 0;) {
    if (i % kChunksOfBlock == kChunksOfBlock - 1) {
      behind = from.back();
      beginning = whole = pool.empty_text();
    }
    const Regex chunk = pool.literal(chunks[i]);
    beginning = pool.repeat(pool.concat({chunk, beginning}), 0, 1);
    whole = pool.concat({chunk, whole});
    from.push_back(pool.either({beginning, pool.concat({whole, behind})}));
  }
  return pool.either(from);
}

}  // namespace tgi::guide
