#include "engine/guide/code_points.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tgi::guide {
namespace {

constexpr char32_t kLast = 0x10FFFF;

// Bytes from first to last.
ByteSet byte_range(size_t first, size_t last) {
  return (~ByteSet{} >> (255 - (last - first))) << first;
}

ByteSet continuation_bytes(char32_t first, char32_t last) {
  return byte_range(0x80 + first, 0x80 + last);
}

// So many bytes that continue a character, whatever they are.
int32_t any_continuation(ExprPool& pool, int32_t num_bytes) {
  int32_t result = ExprPool::kEmpty;
  for (int32_t i = 0; i < num_bytes; ++i)
    result = pool.concat(pool.bytes(continuation_bytes(0, 63)), result);
  return result;
}

// Makes the expression of what follows a lead byte: `num_bytes` bytes of six bits each, whose value
// is in one of the ranges, which are sorted.
int32_t continuation(ExprPool& pool, std::span<const CodePointRange> ranges, int32_t num_bytes) {
  if (ranges.empty()) return ExprPool::kNothing;
  if (num_bytes == 0) return ExprPool::kEmpty;
  const int32_t shift = 6 * (num_bytes - 1);
  const char32_t digit_size = char32_t{1} << shift;
  std::vector<std::pair<ByteSet, int32_t>> branches;
  std::vector<CodePointRange> inside;
  char32_t next_digit = 0;  // those below are done
  for (size_t i = 0; i < ranges.size(); ++i) {
    char32_t first = std::max<char32_t>(ranges[i].first / digit_size, next_digit);
    const char32_t last = ranges[i].last / digit_size;
    while (first <= last) {
      const char32_t begin = first * digit_size;
      const bool starts_whole = ranges[i].first <= begin;
      const char32_t end_of_whole = (ranges[i].last + 1) / digit_size;  // digits below are whole
      if (starts_whole && first < end_of_whole) {
        branches.emplace_back(continuation_bytes(first, end_of_whole - 1),
                              any_continuation(pool, num_bytes - 1));
        first = end_of_whole;
        continue;
      }
      inside.clear();
      for (size_t k = i; k < ranges.size() && ranges[k].first < begin + digit_size; ++k) {
        inside.push_back({std::max(ranges[k].first, begin) - begin,
                          std::min(ranges[k].last - begin, digit_size - 1)});
      }
      branches.emplace_back(continuation_bytes(first, first),
                            continuation(pool, inside, num_bytes - 1));
      ++first;
    }
    next_digit = std::max(next_digit, first);
  }
  return pool.branches(branches);
}

}  // namespace

CodePoints normalize_code_points(std::span<const CodePointRange> ranges) {
  CodePoints sorted;
  for (CodePointRange range : ranges) {
    range.last = std::min(range.last, kLast);
    if (range.first > range.last) continue;
    if (range.first < 0xD800 && range.last > 0xDFFF) {
      sorted.push_back({range.first, 0xD7FF});
      sorted.push_back({0xE000, range.last});
      continue;
    }
    if (range.first >= 0xD800 && range.first <= 0xDFFF) range.first = 0xE000;
    if (range.last >= 0xD800 && range.last <= 0xDFFF) range.last = 0xD7FF;
    if (range.first <= range.last) sorted.push_back(range);
  }
  std::ranges::sort(sorted, {}, &CodePointRange::first);
  CodePoints merged;
  for (const CodePointRange& range : sorted) {
    if (!merged.empty() && range.first <= merged.back().last + 1) {
      merged.back().last = std::max(merged.back().last, range.last);
    } else {
      merged.push_back(range);
    }
  }
  return merged;
}

CodePoints negate_code_points(const CodePoints& set) {
  CodePoints outside;
  char32_t next = 0;
  for (const CodePointRange& range : set) {
    if (range.first > next) outside.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLast) outside.push_back({next, kLast});
  return normalize_code_points(outside);
}

CodePoints intersect_code_points(const CodePoints& a, const CodePoints& b) {
  CodePoints common;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const char32_t first = std::max(a[i].first, b[j].first);
    const char32_t last = std::min(a[i].last, b[j].last);
    if (first <= last) common.push_back({first, last});
    if (a[i].last < b[j].last) {
      ++i;
    } else {
      ++j;
    }
  }
  return common;
}

bool contains_code_point(const CodePoints& set, char32_t character) {
  const auto after = std::ranges::upper_bound(set, character, {}, &CodePointRange::first);
  return after != set.begin() && std::prev(after)->last >= character;
}

int32_t utf8_of(ExprPool& pool, const CodePoints& set) {
  struct Length {
    char32_t first, last, lead;
    int32_t num_continuations;
  };
  constexpr std::array<Length, 3> kLengths = {
      {{0x80, 0x7FF, 0xC0, 1}, {0x800, 0xFFFF, 0xE0, 2}, {0x10000, kLast, 0xF0, 3}}};
  std::vector<std::pair<ByteSet, int32_t>> branches;
  ByteSet ascii;
  for (const CodePointRange& range : set) {
    if (range.first <= 0x7F) ascii |= byte_range(range.first, std::min<size_t>(range.last, 0x7F));
  }
  branches.emplace_back(ascii, ExprPool::kEmpty);
  CodePoints inside;
  for (const Length& length : kLengths) {
    const int32_t shift = 6 * length.num_continuations;
    size_t next = 0;
    const CodePoints range = intersect_code_points(set, {{length.first, length.last}});
    ByteSet whole;  // first bytes that anything may follow
    for (char32_t lead = length.first >> shift; lead <= length.last >> shift; ++lead) {
      const char32_t first = lead << shift;
      const char32_t last = first + ((char32_t{1} << shift) - 1);
      inside.clear();
      for (size_t i = next; i < range.size() && range[i].first <= last; ++i) {
        inside.push_back(
            {std::max(range[i].first, first) - first, std::min(range[i].last, last) - first});
        if (range[i].last <= last) next = i + 1;
      }
      if (inside.empty()) continue;
      if (inside[0].first == 0 && inside[0].last == last - first) {
        whole.set(length.lead + lead);
        continue;
      }
      branches.emplace_back(ByteSet{}.set(length.lead + lead),
                            continuation(pool, inside, length.num_continuations));
    }
    branches.emplace_back(whole, any_continuation(pool, length.num_continuations));
  }
  const int32_t result = pool.branches(branches);
  return result == ExprPool::kNothing ? result : pool.mark_text(result);
}

}  // namespace tgi::guide
