// Any bytes as a schema, a pattern or a grammar: reading and compiling throw nothing but Error, and
// never an internal one. What compiles is followed with random tokens and steps back: masks are
// those of the definition, going back is as if nothing had been, and with a limit on its tokens the
// answer becomes whole. The first byte chooses the language, the second the tokens.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/nlohmann_json.h"
#include "engine/guide/gbnf.h"
#include "engine/guide/json_schema.h"
#include "engine/guide/lark.h"
#include "engine/guide/matcher.h"

namespace {

using namespace tgi::guide;

constexpr int64_t kManyTokens = 300;

std::shared_ptr<const Vocabulary> make_vocabulary() {
  std::vector<Vocabulary::Token> tokens;
  for (int byte = 0; byte < 256; ++byte)
    tokens.push_back({std::string(1, static_cast<char>(byte)), ""});
  for (const char* const text :
       {"\":",      "\",\"", "{\"", "\"}", "},{",  "true", "null",  "12",
        ".5",       "the",   " a",  "ab",  "aaaa", "\\n",  "\\u00", "\xC3\xBC",
        "\xE6\x97", "[[",    "]]",  "0.",  "-1",   "e5",   "\n\n"}) {
    tokens.push_back({text, ""});
  }
  tokens.push_back({"", "<|tool|>"});
  tokens.push_back({"", "<|end|>"});
  const auto end = static_cast<int32_t>(tokens.size()) - 1;
  return std::make_shared<const Vocabulary>(std::move(tokens), std::vector{end});
}

std::shared_ptr<const CompiledGrammar> compile(uint8_t kind, std::string_view text) {
  RegexLimits limits;
  limits.max_steps = 300'000;
  limits.max_nodes = 100'000;
  Grammar grammar(limits);
  switch (kind % 4) {
    case 0: {
      JsonSchemaOptions options;
      options.closes_objects = kind >= 128;
      if ((kind & 64U) != 0) options.whitespace = JsonSchemaOptions::Whitespace::kFlexible;
      const auto schema = nlohmann::ordered_json::parse(text, nullptr, false);
      if (schema.is_discarded()) return nullptr;
      grammar.set_start(add_json_schema(grammar, schema, options));
      break;
    }
    case 1: {
      const auto use = (kind & 64U) != 0 ? RegexUse::kSearch : RegexUse::kWhole;
      const auto syntax = static_cast<RegexSyntax>((kind >> 2U) % 3);
      const Rule root = grammar.declare("regex");
      grammar.define(root, grammar.terminal(parse_regex(grammar.regex(), text, use, syntax)));
      grammar.set_start(root);
      break;
    }
    case 2:
      grammar.set_start(add_gbnf(grammar, text));
      break;
    default:
      grammar.set_start(add_lark(grammar, text));
  }
  return compile_grammar(grammar, {.max_states = 100'000, .max_steps = 300'000});
}

class Walk {
 public:
  Walk(std::shared_ptr<const CompiledGrammar> grammar,
       std::shared_ptr<const Vocabulary> vocabulary,
       uint32_t seed)
      : grammar_(std::move(grammar)), vocabulary_(std::move(vocabulary)), random_(seed * 2 + 1) {}

  // Forwards and back, and to the end.
  void run() {
    Matcher matcher(grammar_, vocabulary_);
    std::vector<int32_t> taken;
    for (int step = 0; step < 12; ++step) {
      if (!taken.empty() && next_random() % 4 == 0) {
        const auto back = static_cast<int32_t>(next_random() % taken.size()) + 1;
        matcher.rollback(back);
        taken.resize(taken.size() - static_cast<size_t>(back));
        Matcher again(grammar_, vocabulary_);
        for (const int32_t id : taken) {
          if (!again.accept(id)) std::abort();
        }
        if (allowed(matcher, -1) != allowed(again, -1)) std::abort();
        continue;
      }
      const std::vector<int32_t> ids = allowed(matcher, -1);
      for (int32_t id = 0; step < 3 && id < vocabulary_->size(); ++id) {
        if (matcher.allows(id) != std::ranges::binary_search(ids, id)) std::abort();
      }
      if (ids.empty()) break;
      taken.push_back(ids[next_random() % ids.size()]);
      if (!matcher.accept(taken.back())) std::abort();
      if (vocabulary_->is_end_token(taken.back())) return;
    }
    finish(matcher);
  }

 private:
  void finish(Matcher& matcher) {
    int64_t budget = matcher.min_tokens_to_end();
    if (budget > kManyTokens) return;
    budget += next_random() % 3;
    for (; budget > 0 && !matcher.must_end(); --budget) {
      const std::vector<int32_t> ids = allowed(matcher, budget);
      if (ids.empty()) std::abort();
      const int32_t next = ids[next_random() % ids.size()];
      if (!matcher.accept(next)) std::abort();
      if (vocabulary_->is_end_token(next)) return;
    }
    if (!matcher.can_end()) std::abort();
  }

  std::vector<int32_t> allowed(Matcher& matcher, int64_t max_tokens) {
    mask_.resize(static_cast<size_t>(vocabulary_->size() + 31) / 32);
    matcher.fill_mask(mask_, max_tokens);
    std::vector<int32_t> ids;
    for (int32_t id = 0; id < vocabulary_->size(); ++id) {
      if ((mask_[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0) ids.push_back(id);
    }
    return ids;
  }

  uint32_t next_random() {
    random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<uint32_t>(random_ >> 33);
  }

  std::shared_ptr<const CompiledGrammar> grammar_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  uint64_t random_;
  std::vector<uint32_t> mask_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  static const auto kVocabulary = make_vocabulary();
  try {
    const std::string_view text(reinterpret_cast<const char*>(data + 2), size - 2);
    const auto grammar = compile(data[0], text);
    if (grammar != nullptr) Walk(grammar, kVocabulary, data[1]).run();
  } catch (const tgi::Error& error) {
    const bool is_expected =
        error.code() == tgi::Code::kInvalidArgument || error.code() == tgi::Code::kUnsupported;
    if (!is_expected) std::abort();
  }
  return 0;
}
