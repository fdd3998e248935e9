// Several threads with one grammar, in a program of its own: under TSan no other test of this
// folder is needed.
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "engine/guide/gbnf.h"
#include "tests/catch.h"
#include "tests/guide/vocabularies.h"

namespace tgi::guide {

TEST_CASE("a_grammar_serves_several_threads") {
  Grammar grammar;
  grammar.set_start(add_gbnf(grammar, "root ::= \"(\" root \")\" | [a-z]{1,9}"));
  const auto compiled = compile_grammar(grammar);
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (const char* word : {"aaaa", "abab", "the", "bbbbbbbb", "((((", "))))"})
    tokens.emplace_back(word);
  const auto vocabulary = vocabulary_of(tokens);
  std::vector<std::vector<int32_t>> seen(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < seen.size(); ++t) {
    threads.emplace_back([&, t] {
      Matcher matcher(compiled, vocabulary);
      for (int i = 0; i < 30; ++i) {
        const auto ids = allowed_tokens(matcher, vocabulary->size());
        seen[t].insert(seen[t].end(), ids.begin(), ids.end());
        if (!matcher.accept(i < 15 ? '(' : 'a')) break;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& ids : seen) CHECK(ids == seen[0]);
}

}  // namespace tgi::guide
