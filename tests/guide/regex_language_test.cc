// Random expressions against the sets of all their short texts.
#include <algorithm>
#include <iterator>
#include <random>
#include <string>

#include "engine/guide/regex.h"
#include "tests/catch.h"
#include "tests/guide/languages.h"

namespace tgi::guide {
namespace {

struct Sample {
  Regex regex;
  Language language;
};

class RandomRegex {
 public:
  RandomRegex(RegexPool& pool, uint32_t seed) : pool_(pool), random_(seed) {}

  Sample make(int depth) {
    const auto kind = depth == 0 ? random_() % 3 : random_() % 9;
    switch (kind) {
      case 0:
      case 1: {
        const char c = static_cast<char>('a' + random_() % 2);
        return {pool_.literal(std::string(1, c)), {std::string(1, c)}};
      }
      case 2: {
        ByteSet both;
        both.set('a').set('b');
        return {pool_.bytes(both), {"a", "b"}};
      }
      case 3:
      case 4: {
        const Sample a = make(depth - 1), b = make(depth - 1);
        return {pool_.concat({a.regex, b.regex}), concatenated(a.language, b.language)};
      }
      case 5: {
        const Sample a = make(depth - 1), b = make(depth - 1);
        return {pool_.either({a.regex, b.regex}), united(a.language, b.language)};
      }
      case 6: {
        const Sample a = make(depth - 1);
        const auto min = static_cast<int32_t>(random_() % 3);
        const int32_t max =
            random_() % 2 == 0 ? kUnbounded : min + static_cast<int32_t>(random_() % 3);
        return {pool_.repeat(a.regex, min, max), repeated(a.language, min, max)};
      }
      case 7: {
        const Sample a = make(depth - 1), b = make(depth - 1);
        Language common;
        std::ranges::set_intersection(a.language, b.language, std::inserter(common, common.end()));
        return {pool_.both(a.regex, b.regex), common};
      }
      default: {
        const Sample a = make(depth - 1);
        Language rest;
        std::ranges::set_difference(kAll, a.language, std::inserter(rest, rest.end()));
        return {pool_.complement(a.regex), rest};
      }
    }
  }

  static inline const Language kAll = texts_over("ab");

 private:
  RegexPool& pool_;
  std::mt19937 random_;
};

}  // namespace

TEST_CASE("random_expressions_have_the_texts_of_their_definition") {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    RegexPool pool;
    const Sample sample = RandomRegex(pool, seed).make(4);
    const Dfa dfa = pool.dfa(sample.regex);
    INFO("seed " << seed);
    // Texts over other bytes than a and b are in complements too: emptiness is that of the
    // automaton.
    CHECK(pool.is_empty(sample.regex) == dfa.states.empty());
    for (const std::string& text : RandomRegex::kAll) {
      const bool expected = sample.language.contains(text);
      int32_t state = dfa.states.empty() ? Dfa::kDead : 0;
      for (const char c : text) {
        if (state != Dfa::kDead)
          state = dfa.states[static_cast<size_t>(state)].next[static_cast<uint8_t>(c)];
      }
      const bool by_dfa = state != Dfa::kDead && dfa.states[static_cast<size_t>(state)].accepts;
      if (pool.matches(sample.regex, text) != expected || by_dfa != expected) {
        FAIL("\"" << text << "\": expected " << expected << ", by derivatives "
                  << pool.matches(sample.regex, text) << ", by the automaton " << by_dfa);
      }
    }
  }
}

TEST_CASE("automata_are_minimal") {
  RegexPool pool;
  // Three spellings of one language have one automaton.
  const auto automaton = [&](const std::string& pattern) {
    return pool.dfa(parse_regex(pool, pattern, RegexUse::kWhole));
  };
  const Dfa first = automaton("(a|b)*abb");
  CHECK(first.states.size() == 4);
  for (const std::string pattern : {"(a*b*)*abb", "(b|a)*a(bb)", "(?!b)(a|b)*abb|b(a|b)*abb"}) {
    const Dfa other = automaton(pattern);
    REQUIRE(other.states.size() == first.states.size());
    for (size_t i = 0; i < first.states.size(); ++i) {
      CHECK(other.states[i].next == first.states[i].next);
      CHECK(other.states[i].accepts == first.states[i].accepts);
    }
  }
}

}  // namespace tgi::guide
