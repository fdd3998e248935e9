// Languages as sets of all their texts up to a length: slow, and plainly right.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace tgi::guide {

using Language = std::set<std::string>;

constexpr size_t kLongestText = 6;

inline Language texts_over(const std::string& alphabet) {
  Language all{""};
  std::vector<std::string> last{""};
  for (size_t length = 1; length <= kLongestText; ++length) {
    std::vector<std::string> next;
    for (const std::string& text : last) {
      for (const char c : alphabet) next.push_back(text + c);
    }
    all.insert(next.begin(), next.end());
    last = std::move(next);
  }
  return all;
}

inline Language concatenated(const Language& a, const Language& b) {
  Language result;
  for (const std::string& first : a) {
    for (const std::string& second : b) {
      if (first.size() + second.size() <= kLongestText) result.insert(first + second);
    }
  }
  return result;
}

inline Language united(Language a, const Language& b) {
  a.insert(b.begin(), b.end());
  return a;
}

// max < 0: without bound.
inline Language repeated(const Language& a, int32_t min, int32_t max) {
  Language result;
  Language round{""};
  const int32_t last = max < 0 ? min + static_cast<int32_t>(kLongestText) + 1 : max;
  for (int32_t i = 0; i <= last; ++i) {
    if (i >= min) result = united(result, round);
    round = concatenated(round, a);
  }
  return result;
}

}  // namespace tgi::guide
