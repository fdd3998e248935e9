// Random grammars against the sets of all their short texts, and their masks against the
// definition: a token is allowed when its bytes, one by one, lead to something that has an end.
#include <random>
#include <string>

#include "base/error.h"
#include "tests/catch.h"
#include "tests/guide/random_grammar.h"
#include "tests/guide/vocabularies.h"

namespace tgi::guide {
namespace {

const Language& all_texts() {
  static const Language all = texts_over("ab");
  return all;
}

// Ends the answer by the shortest way; how many tokens that took, -1 when it got stuck.
int64_t finish(Matcher& matcher, int32_t vocab_size) {
  int64_t budget = matcher.min_tokens_to_end();
  int64_t taken = 0;
  for (; !matcher.can_end(); ++taken, --budget) {
    const auto ids = allowed_tokens(matcher, vocab_size, budget);
    if (ids.empty() || budget <= 0 || !matcher.accept(ids.back())) return -1;
  }
  return taken;
}

}  // namespace

TEST_CASE("random_grammars_have_the_texts_of_their_definition") {
  int compiled = 0, left_recursive = 0, empty = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    RandomGrammar random(seed);
    const Language language = random.language();
    INFO("seed " << seed);
    std::shared_ptr<const CompiledGrammar> grammar;
    try {
      grammar = compile_grammar(random.grammar);
    } catch (const Error& error) {
      const std::string message = error.what();
      if (message.find("calls itself") != std::string::npos) {
        ++left_recursive;
      } else {
        CHECK_THAT(message, Catch::Contains("no text can satisfy"));
        CHECK(language.empty());
        ++empty;
      }
      continue;
    }
    ++compiled;
    const auto vocabulary = vocabulary_of({"a", "b", "ab", "bba", "aa", "abab"});
    Matcher matcher(grammar, vocabulary);
    for (const std::string& text : all_texts()) {
      size_t read = 0;
      while (read < text.size() && matcher.accept(text[read] == 'a' ? 0 : 1)) ++read;
      const bool accepted = read == text.size() && matcher.can_end();
      if (accepted != language.contains(text)) FAIL("\"" << text << "\": accepted " << accepted);
      if (read == text.size()) {
        std::vector<int32_t> by_bytes;
        for (int32_t id = 0; id < vocabulary->size(); ++id) {
          if (matcher.allows(id)) by_bytes.push_back(id);
        }
        if (allowed_tokens(matcher, vocabulary->size()) != by_bytes)
          FAIL("masks after \"" << text << "\"");
        // What was accepted can be completed, and not by fewer tokens than were promised.
        const int32_t before = matcher.num_tokens();
        const int64_t promised = matcher.min_tokens_to_end();
        if (promised > 1000) FAIL("after \"" << text << "\": no way to the end is known");
        const int64_t taken = finish(matcher, vocabulary->size());
        if (taken < 0 || taken > promised)
          FAIL("after \"" << text << "\": " << taken << " of " << promised);
        matcher.rollback(matcher.num_tokens() - before);
      }
      matcher.rollback(matcher.num_tokens());
    }
  }
  // Most are neither.
  CHECK(compiled > 1000);
  CHECK(left_recursive < 150);
  CHECK(empty > 10);
}

}  // namespace tgi::guide
