// Expressions and grammars that would take for ever, or too much memory, if they were unrolled.
#include <time.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/guide/gbnf.h"
#include "tests/catch.h"
#include "tests/guide/vocabularies.h"

namespace tgi::guide {
namespace {

// Of this thread. No speed is asked for: what is unrolled does not end in hours.
constexpr double kForEver = 100;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::shared_ptr<const Vocabulary> bytes_and_words() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (const char* word : {"aaaa", "abab", "the", "bbbbbbbb", "((((", "))))"})
    tokens.emplace_back(word);
  return vocabulary_of(tokens);
}

// Follows the grammar for some tokens, with a mask for each.
void follow(const std::shared_ptr<const CompiledGrammar>& grammar, int length) {
  const auto vocabulary = bytes_and_words();
  Matcher matcher(grammar, vocabulary);
  for (int i = 0; i < length; ++i) {
    const std::vector<int32_t> ids = allowed_tokens(matcher, vocabulary->size());
    REQUIRE_FALSE(ids.empty());
    if (!matcher.accept(ids[static_cast<size_t>(i) * 7 % ids.size()])) FAIL("not accepted");
    if (matcher.must_end()) return;
  }
}

void try_pattern(const std::string& pattern) {
  Grammar grammar;
  const Rule root = grammar.declare("root");
  grammar.define(root, grammar.terminal(parse_regex(grammar.regex(), pattern, RegexUse::kWhole)));
  grammar.set_start(root);
  follow(compile_grammar(grammar), 40);
}

}  // namespace

TEST_CASE("patterns_that_explode_elsewhere_stay_small") {
  for (const std::string pattern :
       {"(a|aa)*b{1000}", "((a|aa)*b{1000}){1000}", "(a{0,1000}){0,1000}b", "((a*)*)*b",
        "[a-z]{0,100000}", "\\p{L}{1,10000}\\P{L}{1,10000}", "(.*a.{20}|.*b.{21})c",
        "(?=.*a)(?=.*b)(?=.*c)(?=.*d)[a-z]{4,5000}", "(a?){500}a{500}",
        "((((a{1,50}){1,50}){1,50}){1,50}){1,50}", "(x|y|z|[a-w]){1000,2000}",
        "(?=(?s:.)*fox)(?s:.){200,}"}) {
    const double begin = cpu_seconds();
    INFO(pattern);
    try_pattern(pattern);
    CHECK(cpu_seconds() - begin < kForEver);
  }
}

TEST_CASE("anchors in repetitions of repetitions are translated in bounded time") {
  std::string stars;
  for (int i = 0; i < 60; ++i) stars = "(" + stars + (i == 0 ? "^" : "") + ")*";
  const std::string counted = "((((((^){64}){64}){64}){64}){64}){64}";
  for (const std::string& pattern : {stars, counted}) {
    INFO(pattern);
    RegexPool pool;
    const auto begin = std::chrono::steady_clock::now();
    CHECK_THROWS_AS(parse_regex(pool, pattern, RegexUse::kWhole), Error);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
  }
}

TEST_CASE("what_is_nested_too_deeply_is_refused") {
  const std::string deep(100'000, '(');
  RegexPool pool;
  CHECK_THROWS_AS(parse_regex(pool, deep, RegexUse::kWhole), Error);
  Grammar grammar;
  CHECK_THROWS_AS(add_gbnf(grammar, "root ::= " + deep), Error);
  Regex nested = pool.literal("a");
  const auto nest = [&] {
    for (int i = 0; i < 100'000; ++i)
      nested = pool.either(
          {pool.concat({pool.repeat(nested, 0, 1), pool.literal("b")}), pool.literal("c")});
  };
  CHECK_THROWS_AS(nest(), Error);
}

TEST_CASE("long_sequences_and_thousands_of_rules_are_no_trouble") {
  const double begin = cpu_seconds();
  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 5000; ++i)
    chain +=
        "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + " [0-9]? | \"a\" [a-z]+\n";
  chain += "r5000 ::= \"x\"\n";
  Grammar grammar;
  grammar.set_start(add_gbnf(grammar, chain));
  follow(compile_grammar(grammar), 5);
  Grammar longer;
  std::string sequence = "root ::= ";
  for (int i = 0; i < 20'000; ++i) sequence += "[a-m]* \"x\"? ";
  longer.set_start(add_gbnf(longer, sequence));
  CHECK_THROWS_AS(compile_grammar(longer, CompileLimits{1000}), Error);
  CHECK(cpu_seconds() - begin < kForEver);
}

TEST_CASE("ambiguous_grammars_stay_bounded") {
  for (const std::string text : {"root ::= \"a\" | \"a\" root | \"a\" root root",
                                 "root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"x\"",
                                 "root ::= s*\ns ::= \"a\" s? s? | t\nt ::= \"a\" t? s?",
                                 "root ::= (a | b)*\na ::= \"a\" b?\nb ::= \"a\" a?"}) {
    const double begin = cpu_seconds();
    INFO(text);
    Grammar grammar;
    grammar.set_start(add_gbnf(grammar, text));
    const auto compiled = compile_grammar(grammar);
    const auto vocabulary = bytes_and_words();
    Matcher matcher(compiled, vocabulary);
    for (int i = 0; i < 150; ++i) {
      REQUIRE(matcher.allows('a'));
      REQUIRE(matcher.accept('a'));
      (void)allowed_tokens(matcher, vocabulary->size());
    }
    CHECK(cpu_seconds() - begin < kForEver);
  }
}

TEST_CASE("what_takes_too_many_steps_is_refused_by_count") {
  const auto is_refused = [](const std::string& pattern, int64_t max_steps) {
    RegexLimits limits;
    limits.max_steps = max_steps;
    RegexPool pool(limits);
    try {
      (void)pool.is_empty(parse_regex(pool, pattern, RegexUse::kWhole));
      return false;
    } catch (const Error& error) {
      CHECK(error.code() == Code::kInvalidArgument);
      CHECK_THAT(error.what(), Catch::Contains("too much work"));
      return true;
    }
  };
  const std::string bomb = "(?=.*a.{15})(?=.*b.{15})(?=.*c.{15}).*d.{15}";
  CHECK(is_refused(bomb, 100'000));
  CHECK_FALSE(is_refused("[a-z]{1,100}(, [a-z]{1,100})*", 100'000));
  for (const std::string pattern :
       {"(?:(?=.*a.{12}).*){10}x", "(?=(.*a){9})(?=(.*b){9})(?=(.*c){9})(?=(.*d){9}).{0,5000}"}) {
    RegexLimits few;  // the default takes a second each
    few.max_steps = 1'000'000;
    Grammar grammar(few);
    const Rule root = grammar.declare("root");
    grammar.define(root, grammar.terminal(parse_regex(grammar.regex(), pattern, RegexUse::kWhole)));
    grammar.set_start(root);
    CompileLimits limits;
    limits.max_steps = few.max_steps;
    INFO(pattern);
    CHECK_THROWS_AS(compile_grammar(grammar, limits), Error);
  }
}

TEST_CASE("an_answer_that_can_be_read_in_too_many_ways_ends_alone") {
  Grammar grammar;
  std::vector<Expr> words;
  for (int length = 1; length <= 20'001; ++length) {
    RegexPool& pool = grammar.regex();
    const Regex letter = parse_regex(pool, "[a-z]", RegexUse::kWhole);
    words.push_back(
        grammar.terminal(pool.concat({pool.repeat(letter, length, length), pool.literal(".")})));
  }
  const Rule root = grammar.declare("root");
  grammar.define(root,
                 grammar.either({grammar.text("xxx"),
                                 grammar.sequence({grammar.text("y"), grammar.either(words)})}));
  grammar.set_start(root);
  const auto compiled = compile_grammar(grammar);
  const auto vocabulary = bytes_and_words();
  Matcher good(compiled, vocabulary);
  Matcher bad(compiled, vocabulary);
  REQUIRE(good.accept('x'));
  CHECK_THROWS_WITH(bad.accept('y'),
                    Catch::Contains("after 0 tokens") && Catch::Contains("more than 20000 ways"));
  CHECK_THROWS_AS(bad.must_end(), Error);
  CHECK_THROWS_AS(allowed_tokens(bad, vocabulary->size()), Error);
  // What was only looked at is no matter of the answer.
  bad.rollback(0);
  REQUIRE(bad.accept('x'));
  CHECK(allowed_tokens(bad, vocabulary->size()) == std::vector<int32_t>{'x'});
  CHECK(allowed_tokens(good, vocabulary->size()) == std::vector<int32_t>{'x'});
  REQUIRE(good.accept('x'));
  REQUIRE(good.accept('x'));
  CHECK(good.must_end());
}

}  // namespace tgi::guide
