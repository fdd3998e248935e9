#include "engine/runtime/guide_compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/give_way.h"
#include "engine/dialect/marked_text.h"
#include "engine/dialect/read_dialects.h"
#include "engine/dialect/reasoning_budget.h"
#include "engine/guide/canonical_tokens.h"
#include "engine/guide/common_masks.h"
#include "engine/guide/compiled_grammar.h"
#include "engine/guide/gbnf.h"
#include "engine/guide/grammar.h"
#include "engine/guide/grammar_guidance.h"
#include "engine/guide/json_schema.h"
#include "engine/guide/lark.h"
#include "engine/guide/listed_texts.h"
#include "engine/guide/minimum_guidance.h"
#include "engine/guide/regex.h"

namespace tgi {
namespace {

using guide::Expr;
using guide::Grammar;
using guide::Rule;

Rule rule_of(Grammar& grammar, Expr body) {
  const Rule rule = grammar.declare("answer");
  grammar.define(rule, body);
  return rule;
}

Rule add_rules(Grammar& grammar, const ipc::GuideParams& asked) {
  guide::JsonSchemaOptions json{.closes_objects = true};
  if (asked.flexible_whitespace) json.whitespace = guide::JsonSchemaOptions::Whitespace::kFlexible;
  if (asked.json_schema) return add_json_schema(grammar, *asked.json_schema, json);
  if (asked.json_object) return add_any_json(grammar, /*only_object=*/true, json);
  if (asked.gbnf) return add_gbnf(grammar, *asked.gbnf);
  if (asked.lark) return add_lark(grammar, *asked.lark, json);
  if (asked.regex) {
    const guide::Regex pattern = parse_regex(grammar.regex(), *asked.regex, guide::RegexUse::kWhole,
                                             guide::RegexSyntax::kRustClasses);
    return rule_of(grammar, grammar.terminal(pattern));
  }
  std::vector<std::string> texts = asked.choice;
  std::ranges::sort(texts);
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return rule_of(grammar, grammar.terminal(any_of_texts(grammar.regex(), texts)));
}

// Equal forms have equal keys.
std::string key_of(const GuidedForm& form) {
  ipc::OrderedJson key = ipc::OrderedJson::array();
  key.push_back(form.text ? ipc::to_json(*form.text) : ipc::OrderedJson());
  key.push_back(static_cast<int>(form.reasoning));
  key.push_back(form.marks_text);
  key.push_back(form.tools.must_call);
  key.push_back(form.tools.several);
  for (const dialect::Tool& tool : form.tools.tools) {
    key.push_back({tool.name, tool.parameters, tool.strict});
  }
  return key.dump();
}

std::string_view kind_of(const ipc::GuideParams& asked) {
  if (asked.json_schema) return "JSON schema";
  if (asked.json_object) return "JSON object";
  if (asked.regex) return "regular expression";
  if (asked.gbnf || asked.lark) return "grammar";
  return "choice";
}

}  // namespace

void check_guide(const ipc::GuideParams& asked) {
  Grammar grammar;
  try {
    grammar.set_start(add_rules(grammar, asked));
    (void)compile_grammar(grammar);
  } catch (const Error& error) {
    throw error.in(kind_of(asked));
  }
}

GuideCompiler::GuideCompiler(const Tokenizer& tokenizer,
                             int32_t vocab_size,
                             std::vector<int32_t> end_token_ids,
                             const dialect::Dialects& dialects)
    : tokenizer_(tokenizer),
      vocab_size_(vocab_size),
      end_token_ids_(std::move(end_token_ids)),
      dialects_(dialects),
      is_special_(dialect::special_tokens_of(tokenizer)),
      has_vocabulary_(tokenizer.has_token_bytes()) {}

std::shared_ptr<const guide::Vocabulary> GuideCompiler::vocabulary() {
  if (!has_vocabulary_) {
    throw Error(Code::kUnsupported,
                "the decoder of this tokenizer writes a token by those around it, so that answers "
                "can't be bound to a form token by token; ask without one");
  }
  std::call_once(vocabulary_made_, [this] {
    vocabulary_ = guide::Vocabulary::from(tokenizer_, vocab_size_, end_token_ids_);
  });
  return vocabulary_;
}

void GuideCompiler::warm_up() {
  guide::make_common_masks(vocabulary());
}

GuideCompiler::Compiled GuideCompiler::make(const GuidedForm& asked) {
  Compiled out;
  run_giving_way([&] { out = make_here(asked); });
  return out;
}

GuideCompiler::Compiled GuideCompiler::make_here(const GuidedForm& asked) {
  Grammar grammar;
  std::optional<Rule> text;
  try {
    if (asked.text) text = add_rules(grammar, *asked.text);
    const dialect::AnswerForm form{.dialects = dialects_,
                                   .tools = asked.tools,
                                   .reasoning = asked.reasoning,
                                   .marks_text = asked.marks_text,
                                   .text = text};
    grammar.set_start(add_answer(grammar, form, is_special_));
    // What is forced are tokens of the model's own tokenizer, which outlives all guides.
    const auto canonical = [&tokenizer = tokenizer_, words = vocabulary()](std::string_view text) {
      return guide::canonical_tokens(tokenizer, *words, text);
    };
    return std::make_shared<guide::GrammarGuidance>(compile_grammar(grammar), vocabulary(),
                                                    canonical);
  } catch (const Error& error) {
    throw error.in(asked.text ? kind_of(*asked.text) : "tools");
  }
}

GuideCompiler::Compiled GuideCompiler::compile(const GuidedForm& asked) {
  Compiled out = compiled(asked);
  const dialect::ReasoningDialect* const how = dialects_.reasoning;
  if (!asked.max_reasoning_tokens || how == nullptr) return out;
  dialect::ReasoningBudget budget{
      .has_begun = asked.reasoning == dialect::AnswerForm::Reasoning::kBegun,
      .max_tokens = *asked.max_reasoning_tokens};
  const dialect::ReadDialects marks(dialects_, is_special_);
  budget.begins = marks.reasoning_begins;
  budget.ends = marks.reasoning_ends;
  if (!asked.tools.tools.empty()) {
    for (const auto& call : marks.calls_in_reasoning) budget.ends.push_back(call.mark);
  }
  return dialect::with_reasoning_budget(std::move(out), vocabulary(), std::move(budget));
}

std::shared_ptr<const Guidance> GuideCompiler::at_least(int64_t min_tokens,
                                                        std::shared_ptr<const Guidance> guidance) {
  return guide::with_minimum(std::move(guidance), vocabulary(), min_tokens);
}

// Whoever asks first compiles; those who ask for the same meanwhile wait for it. What fails is not
// kept.
GuideCompiler::Compiled GuideCompiler::compiled(const GuidedForm& asked) {
  const std::string key = key_of(asked);
  if (key.size() > kMaxBytes) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected at most {} bytes, got {}",
                            asked.text ? kind_of(*asked.text) : "tools", kMaxBytes, key.size()));
  }
  std::promise<Compiled> promise;
  std::shared_future<Compiled> known;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    if (found != entries_.end()) {
      ++counts_.num_found;
      uses_.splice(uses_.begin(), uses_, found->second.use);
      known = found->second.compiled;
    } else {
      ++counts_.num_compiled;
      uses_.push_front(key);
      entries_[key] = {.compiled = promise.get_future().share(), .use = uses_.begin()};
      if (uses_.size() > kMaxKept) {
        entries_.erase(uses_.back());
        uses_.pop_back();
      }
    }
  }
  if (known.valid()) {
    if (Compiled compiled = known.get()) return compiled;
    return make(asked);  // it failed for the one who was first: the same error, of one's own
  }
  try {
    Compiled compiled = make(asked);
    promise.set_value(compiled);
    return compiled;
  } catch (...) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = entries_.find(key);
      if (found != entries_.end()) {
        uses_.erase(found->second.use);
        entries_.erase(found);
      }
    }
    promise.set_value(nullptr);
    throw;
  }
}

GuideCompiler::Counts GuideCompiler::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace tgi
