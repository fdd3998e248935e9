#include "engine/guide/different_items.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "engine/guide/json/decimal.h"
#include "engine/guide/json/json_text_regex.h"

namespace tgi::guide {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_mark(char c) {
  return std::string_view("[]{},:\"").find(c) != std::string_view::npos || is_space(c);
}

// Where the string begins whose closing quote is before `end`: at the last quote that no backslash
// escapes. Before it is no backslash at all.
size_t begin_of_string(std::string_view text, size_t end) {
  for (size_t at = end - 1; at > 0;) {
    --at;
    if (text[at] != '"') continue;
    size_t first = at;
    while (first > 0 && text[first - 1] == '\\') --first;
    if ((at - first) % 2 == 0) return at;
  }
  return 0;
}

// The character after a backslash in a canonical text, which `at` is moved behind.
char32_t unescaped(std::string_view text, size_t& at) {
  constexpr std::string_view kFrom = "bfnrt";
  constexpr std::string_view kTo = "\b\f\n\r\t";
  const char c = text[at++];
  if (c != 'u') {
    const size_t found = kFrom.find(c);
    return static_cast<unsigned char>(found == std::string_view::npos ? c : kTo[found]);
  }
  char32_t value = 0;
  for (int i = 0; i < 4 && at < text.size(); ++i, ++at) {
    const char digit = text[at];
    value =
        value * 16 + static_cast<char32_t>(digit <= '9' ? digit - '0' : (digit | 32) - 'a' + 10);
  }
  return value;
}

int32_t literal(ExprPool& pool, std::string_view text) {
  int32_t result = ExprPool::kEmpty;
  for (size_t end = text.size(); end > 0; --end) {
    const auto byte = static_cast<uint8_t>(text[end - 1]);
    result = pool.concat(pool.bytes(ByteSet{}.set(byte)), result);
  }
  return result;
}

int32_t optional(ExprPool& pool, int32_t part) {
  return pool.repeat(part, 0, 1);
}

std::string value_of_string(std::string_view inside) {
  std::string value;
  for (size_t at = 0; at < inside.size();) {
    if (inside[at] == '\\' && at + 1 < inside.size()) {
      append_utf8(unescaped(inside, ++at), value);
    } else {
      value += inside[at++];
    }
  }
  return value;
}

// Sorted texts, which are equal before `begin`, as a tree: a derivative of it costs little.
int32_t tree_of(ExprPool& pool, std::span<const std::string> texts, size_t begin) {
  const std::string& first = texts.front();
  const std::string& last = texts.back();
  size_t end = begin;
  while (end < first.size() && end < last.size() && first[end] == last[end]) ++end;
  std::string_view common(first);
  common = common.substr(begin, end - begin);
  int32_t rest = ExprPool::kEmpty;
  if (texts.size() > 1) {
    const bool one_ends = first.size() == end;
    std::span<const std::string> longer = texts.subspan(one_ends ? 1 : 0);
    std::vector<std::pair<ByteSet, int32_t>> branches;
    while (!longer.empty()) {
      const char byte = longer.front()[end];
      const auto other =
          std::ranges::find_if(longer, [&](const std::string& text) { return text[end] != byte; });
      const auto count = static_cast<size_t>(other - longer.begin());
      branches.emplace_back(ByteSet{}.set(static_cast<uint8_t>(byte)),
                            tree_of(pool, longer.first(count), end + 1));
      longer = longer.subspan(count);
    }
    rest = pool.branches(branches);
    if (one_ends) rest = pool.either(std::array{ExprPool::kEmpty, rest});
  }
  return pool.concat(literal(pool, common), rest);
}

int32_t texts_of_strings(ExprPool& pool, std::vector<std::string> values) {
  std::ranges::sort(values);
  const int32_t quote = literal(pool, "\"");
  return pool.concat(quote, pool.concat(pool.escaped(tree_of(pool, values, 0), 0), quote));
}

int32_t texts_of_number(ExprPool& pool, std::string_view text) {
  const Decimal value = Decimal::parsed(text);
  const int32_t zeros = pool.repeat(literal(pool, "0"), 0, kUnbounded);
  int32_t result = ExprPool::kEmpty;
  if (value.is_integer()) {
    const int32_t fraction = optional(pool, pool.concat(literal(pool, ".0"), zeros));
    result = pool.concat(literal(pool, value.integer), fraction);
  } else {
    result = pool.concat(literal(pool, value.integer + "." + value.fraction), zeros);
  }
  const int32_t minus = literal(pool, "-");
  if (value.is_zero()) return pool.concat(optional(pool, minus), result);
  return value.negative ? pool.concat(minus, result) : result;
}

bool is_number(std::string_view part) {
  return part[0] == '-' || (part[0] >= '0' && part[0] <= '9');
}

// Strings, numbers, words and marks, without the white space between them.
template <typename Visit>
void for_each_part(std::string_view text, Visit visit) {
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (text[at] == '"') {
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
    } else if (!is_mark(text[at])) {
      while (end < text.size() && !is_mark(text[end])) ++end;
    }
    if (!is_space(text[at])) visit(text.substr(at, end - at));
    at = end;
  }
}

int32_t texts_of_value(ExprPool& pool, std::string_view text) {
  std::vector<int32_t> parts;
  for_each_part(text, [&](std::string_view part) {
    if (part[0] == '"') {
      parts.push_back(texts_of_strings(pool, {value_of_string(part.substr(1, part.size() - 2))}));
    } else {
      parts.push_back(is_number(part) ? texts_of_number(pool, part) : literal(pool, part));
    }
  });
  ByteSet spaces;
  for (const char c : std::string_view(" \t\n\r")) spaces.set(static_cast<uint8_t>(c));
  const int32_t space = pool.repeat(pool.bytes(spaces), 0, kUnbounded);
  int32_t result = ExprPool::kEmpty;
  for (size_t i = parts.size(); i-- > 0;) {
    result = pool.concat(parts[i], result);
    if (i > 0) result = pool.concat(space, result);
  }
  return result;
}

// A shortest text of the language; nullopt: it has none, or that is hard to find.
std::optional<std::string> shortest_text(ExprPool& pool, int32_t language) {
  std::string text;
  int32_t rest = pool.alive(language) == ExprPool::Alive::kYes ? pool.shortest(language)
                                                               : ExprPool::kMaxLength;
  if (rest >= ExprPool::kMaxLength) return std::nullopt;
  for (; rest > 0; --rest) {
    int32_t next = ExprPool::kNothing;
    for (int32_t c = 0; c < pool.num_classes(); ++c) {
      const uint8_t byte = pool.representative(c);
      next = pool.derive(language, byte);
      const bool is_shortest = next != ExprPool::kNothing &&
                               pool.alive(next) == ExprPool::Alive::kYes &&
                               pool.shortest(next) == rest - 1;
      if (is_shortest) {
        text += static_cast<char>(byte);
        break;
      }
      next = ExprPool::kNothing;
    }
    if (next == ExprPool::kNothing) return std::nullopt;
    language = next;
  }
  return text;
}

}  // namespace

std::string_view last_json_value(std::string_view text) {
  size_t begin = text.size();
  int depth = 0;
  do {
    if (begin == 0) break;
    const char c = text[begin - 1];
    if (c == '"') {
      begin = begin_of_string(text, begin);
    } else if (c == ']' || c == '}') {
      ++depth;
      --begin;
    } else if (c == '[' || c == '{') {
      --depth;
      --begin;
    } else if (is_mark(c)) {
      --begin;
    } else {
      while (begin > 0 && !is_mark(text[begin - 1])) --begin;
    }
  } while (depth > 0);
  return text.substr(begin);
}

std::string canonical_json_value(std::string_view text) {
  std::string result;
  for_each_part(text, [&](std::string_view part) {
    if (part[0] == '"') {
      result += quoted_json(value_of_string(part.substr(1, part.size() - 2)));
    } else if (is_number(part)) {
      result += Decimal::parsed(part).text();
    } else {
      result += part;
    }
  });
  return result;
}

int32_t texts_of_json_values(ExprPool& pool, std::span<const std::string> values) {
  std::vector<std::string> strings;
  std::vector<int32_t> choices;
  for (const std::string& value : values) {
    if (value[0] == '"') {
      strings.push_back(value_of_string(std::string_view(value).substr(1, value.size() - 2)));
    } else {
      choices.push_back(texts_of_value(pool, value));
    }
  }
  if (!strings.empty()) choices.push_back(texts_of_strings(pool, std::move(strings)));
  return pool.either(choices);
}

std::vector<int32_t> lengths_of_different_values(ExprPool& pool, int32_t language, int32_t count) {
  std::vector<std::string> used;
  std::vector<int32_t> lengths;
  while (static_cast<int32_t>(lengths.size()) < count) {
    const int32_t others = pool.complement(texts_of_json_values(pool, used));
    const auto text = shortest_text(pool, pool.both(std::array{language, others}));
    if (!text) break;
    lengths.push_back(static_cast<int32_t>(text->size()));
    used.push_back(canonical_json_value(*text));
  }
  return lengths;
}

}  // namespace tgi::guide
