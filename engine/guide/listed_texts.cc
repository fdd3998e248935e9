#include "engine/guide/listed_texts.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace tgi::guide {
namespace {

// What is left of the texts from `begin` on, before which they are equal: beginnings that several
// have in common are written once.
Regex texts_from(RegexPool& pool, std::span<const std::string> texts, size_t begin, int32_t level) {
  constexpr int32_t kMaxLevel = 100;  // deeper than any list of names
  std::vector<Regex> choices;
  if (level == kMaxLevel) {
    for (const std::string& text : texts) {
      choices.push_back(pool.literal(std::string_view(text).substr(begin)));
    }
    return pool.either(choices);
  }
  const std::string& first = texts.front();
  const std::string& last = texts.back();
  size_t end = begin;
  while (end < first.size() && end < last.size() && first[end] == last[end]) ++end;
  const Regex common = pool.literal(std::string_view(first).substr(begin, end - begin));
  if (texts.size() == 1) return common;
  if (first.size() == end) {
    choices.push_back(pool.empty_text());
    texts = texts.subspan(1);
  }
  while (!texts.empty()) {
    const char byte = texts.front()[end];
    const auto other = std::find_if(texts.begin(), texts.end(),
                                    [&](const std::string& text) { return text[end] != byte; });
    const auto count = static_cast<size_t>(other - texts.begin());
    choices.push_back(texts_from(pool, texts.first(count), end, level + 1));
    texts = texts.subspan(count);
  }
  return pool.concat({common, pool.either(choices)});
}

}  // namespace

Regex any_of_texts(RegexPool& pool, std::span<const std::string> texts) {
  return texts.empty() ? pool.nothing() : texts_from(pool, texts, 0, 0);
}

}  // namespace tgi::guide
