#include "engine/guide/lark.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/guide/lark_list.h"
#include "engine/guide/lark_syntax.h"
#include "engine/guide/lark_terminals.h"

namespace tgi::guide {
namespace {

using LarkKind = LarkNode::Kind;

constexpr size_t kMaxParameters = 100'000;  // of one rule

// All grammars of a text: one, or a list whose members name each other.
class LarkLibrary {
 public:
  LarkLibrary(Grammar& grammar, std::string_view text, const JsonSchemaOptions& options)
      : grammar_(grammar), options_(options), listed_(read_grammar_list(text)) {
    rules_.resize(listed_.size());
  }

  Rule build();

  Grammar& grammar() { return grammar_; }
  const JsonSchemaOptions& options() const { return options_; }

  // Nothing where there is none of that name.
  std::optional<Rule> rule_named(std::string_view name) {
    for (size_t i = 0; i < listed_.size(); ++i)
      if (listed_[i].name == name && !name.empty()) return rule_at(i);
    return std::nullopt;
  }

 private:
  // Declared when it is first asked for, defined later: they may name each other in circles.
  Rule rule_at(size_t index) {
    if (!rules_[index]) {
      rules_[index] = grammar_.declare(title_of(index));
      waiting_.push_back(index);
    }
    return *rules_[index];
  }

  std::string title_of(size_t index) const {
    const std::string& name = listed_[index].name;
    return name.empty() ? "the grammar" : "the grammar \"" + name + "\"";
  }

  Rule rule_of_schema(size_t index);

  Grammar& grammar_;
  const JsonSchemaOptions& options_;
  std::vector<ListedGrammar> listed_;
  std::vector<std::optional<Rule>> rules_;
  std::vector<size_t> waiting_;
};

// Of a grammar by itself, or of one in another's braces.
class LarkBuilder {
 public:
  LarkBuilder(LarkLibrary& library, const SourceText& source, const LarkGrammar& lark)
      : library_(library),
        grammar_(library.grammar()),
        source_(source),
        lark_(lark),
        terminals_(regex(), source, lark) {}

  Rule build() {
    declare();
    std::vector<Regex> ignored;
    for (const int32_t node : lark_.ignored) ignored.push_back(terminals_.of_node(node));
    has_ignored_ = !ignored.empty();
    if (has_ignored_) {
      skip_ = grammar_.declare("what %ignore names");
      const Regex any = regex().either(ignored);
      const int32_t most = lark_.options.skips_once ? 1 : kUnbounded;
      grammar_.define(skip_, grammar_.terminal(regex().repeat(any, 0, most)));
    }
    const auto start = rules_.find("start");
    if (start->second.definition->has_parameter)
      refuse(start->second.definition->place, "the rule \"start\" can't have a parameter");
    const Rule first = rule_with(start->second, 0, 0);
    for (auto& [name, entry] : rules_)
      if (!entry.definition->has_parameter) rule_with(entry, 0, 0);
    // Those with a parameter are made for the numbers that they are called with.
    for (size_t i = 0; i < waiting_.size(); ++i) {
      const Waiting now = waiting_[i];
      definition_ = now.definition;
      parameter_ = now.parameter;
      grammar_.define(now.rule, body_of(*now.definition));
    }
    if (!has_ignored_ || !lark_.options.allow_initial_skip) return first;
    const Rule whole = grammar_.declare("what %ignore names, then start");
    grammar_.define(whole, grammar_.sequence({grammar_.call(skip_), grammar_.call(first)}));
    return whole;
  }

 private:
  struct RuleEntry {
    const LarkDefinition* definition = nullptr;
    std::map<uint64_t, Rule> rules;  // by parameter; 0 for a rule without
  };
  struct Waiting {
    const LarkDefinition* definition = nullptr;
    uint64_t parameter = 0;
    Rule rule;
  };

  RegexPool& regex() { return grammar_.regex(); }
  const LarkNode& node_at(int32_t id) const { return lark_.nodes[static_cast<size_t>(id)]; }
  [[noreturn]] void refuse(size_t place, const std::string& what) const {
    source_.refuse(place, what, Code::kInvalidArgument);
  }

  void declare() {
    for (const LarkDefinition& definition : lark_.definitions) {
      const std::string& name = definition.name;
      if (terminals_.contains(name) || rules_.contains(name))
        refuse(definition.place, "\"" + name + "\" is defined a second time");
      if (is_terminal_name(name)) {
        if (definition.is_lazy || definition.suffix >= 0 || definition.stop >= 0)
          refuse(definition.place, "attributes are of rules, and " + name + " is a terminal");
        if (definition.has_parameter)
          refuse(definition.place, "parameters are of rules, and " + name + " is a terminal");
        terminals_.add(definition);
      } else {
        rules_[name].definition = &definition;
      }
    }
    if (!rules_.contains("start")) {
      const bool is_terminal = terminals_.contains("START");
      refuse(lark_.end, std::string("the grammar has no rule \"start\"") +
                            (is_terminal ? "; START is a terminal" : ""));
    }
  }

  Rule rule_with(RuleEntry& entry, uint64_t parameter, size_t place) {
    const auto known = entry.rules.find(parameter);
    if (known != entry.rules.end()) return known->second;
    const std::string& name = entry.definition->name;
    if (entry.rules.size() >= kMaxParameters) {
      refuse(place, "\"" + name + "\" is called with more than " + std::to_string(kMaxParameters) +
                        " different numbers");
    }
    const bool shows = entry.definition->has_parameter;
    const Rule rule = grammar_.declare(shows ? name + "::" + std::to_string(parameter) : name);
    entry.rules.emplace(parameter, rule);
    waiting_.push_back({entry.definition, parameter, rule});
    return rule;
  }

  RuleEntry& rule_at(const LarkNode& node) {
    const auto found = rules_.find(node.text);
    if (found == rules_.end()) refuse(node.place, "the rule \"" + node.text + "\" is not defined");
    const bool has_parameter = found->second.definition->has_parameter;
    if (has_parameter != (node.kind == LarkKind::kCall)) {
      refuse(node.place, has_parameter ? "the rule \"" + node.text + "\" needs a number: \"" +
                                             node.text + "::_\" or \"" + node.text + "::0\""
                                       : "the rule \"" + node.text + "\" has no parameter");
    }
    return found->second;
  }

  Rule called_rule(const LarkNode& node) {
    const LarkChange& change = lark_.changes[static_cast<size_t>(node.index)];
    if (!definition_->has_parameter && change.kind != LarkChange::Kind::kValue)
      refuse(node.place, "\"" + definition_->name + "\" has no parameter: expected a number");
    return rule_with(rule_at(node), change.of(parameter_), node.place);
  }

  bool holds(const LarkNode& node) const {
    if (!definition_->has_parameter)
      refuse(node.place, "\"" + definition_->name + "\" has no parameter to ask about");
    return lark_.conditions[static_cast<size_t>(node.index)].holds(parameter_);
  }

  // A lazy rule is made of terminals: none of its texts goes on with what is one already. One with
  // a stop is made of terminals too, and has the texts without it: llguidance lets a model write
  // the stop and takes it back.
  Expr body_of(const LarkDefinition& definition) {
    const bool is_lazy = definition.is_lazy || definition.suffix >= 0;
    if (!is_lazy && definition.stop < 0) return expr_of(definition.body);
    Regex texts = terminals_.of_node(definition.body);
    if (definition.stop >= 0) {
      const Regex stop = terminals_.of_node(definition.stop);
      const Regex holds_stop = regex().concat({regex().any_text(), stop, regex().any_text()});
      // The empty stop is the token that ends an answer.
      if (!regex().accepts_empty_text(stop)) texts = regex().without(texts, holds_stop);
      if (!is_lazy) return with_skip(texts);
    }
    if (definition.suffix >= 0)
      texts = regex().concat({texts, terminals_.of_node(definition.suffix)});
    const Regex longer = regex().concat({texts, regex().any_character(), regex().any_text()});
    return with_skip(regex().without(texts, longer));
  }

  // A schema or a grammar in a rule is made once, however often the rule is.
  Expr call_of(const LarkNode& node) {
    const auto known = calls_.find(&node);
    if (known != calls_.end()) return grammar_.call(known->second);
    const Rule rule = node.kind == LarkKind::kJson ? schema_of(node) : grammar_of(node);
    calls_.emplace(&node, rule);
    return grammar_.call(rule);
  }

  Rule grammar_of(const LarkNode& node) {
    if (node.kind == LarkKind::kNested)
      return LarkBuilder(library_, source_, lark_.nested[static_cast<size_t>(node.index)]).build();
    const std::optional<Rule> rule = library_.rule_named(node.text);
    if (!rule) {
      refuse(node.place, "no grammar is named \"" + node.text +
                             "\"; several are sent as {\"grammars\": [...]}");
    }
    return *rule;
  }

  Rule schema_of(const LarkNode& node) {
    const nlohmann::ordered_json schema = parse_json_at(source_, node.json);
    try {
      return add_json_schema(grammar_, schema, library_.options());
    } catch (const Error& error) {
      source_.refuse(node.place, error.what(), error.code());
    }
  }

  Expr with_skip(Expr terminal) {
    return has_ignored_ ? grammar_.sequence({terminal, grammar_.call(skip_)}) : terminal;
  }
  Expr with_skip(Regex language) { return with_skip(grammar_.terminal(language)); }

  Expr expr_of(int32_t id) {
    const LarkNode& node = node_at(id);
    switch (node.kind) {
      case LarkKind::kString:
      case LarkKind::kRegex:
      case LarkKind::kRange:
      case LarkKind::kSubstring:
        return with_skip(terminals_.of_node(id));
      case LarkKind::kName: {
        if (is_terminal_name(node.text)) return with_skip(terminals_.named(node.text, node.place));
        return grammar_.call(rule_with(rule_at(node), 0, node.place));
      }
      case LarkKind::kCall:
        return grammar_.call(called_rule(node));
      case LarkKind::kIf:
        return holds(node) ? expr_of(node.parts[0]) : grammar_.nothing();
      case LarkKind::kToken:
        return with_skip(grammar_.token_of(node.tokens));
      case LarkKind::kJson:
      case LarkKind::kNested:
      case LarkKind::kNamed:
        return with_skip(call_of(node));
      case LarkKind::kBoth:
      case LarkKind::kNot:
        refuse(node.place, "& and ~ are for terminals; define one and use it here");
      default:
        break;
    }
    std::vector<Expr> parts;
    for (const int32_t part : node.parts) parts.push_back(expr_of(part));
    if (node.kind == LarkKind::kRepeat) return grammar_.repeat(parts[0], node.min, node.max);
    return node.kind == LarkKind::kEither ? grammar_.either(parts) : grammar_.sequence(parts);
  }

  LarkLibrary& library_;
  Grammar& grammar_;
  const SourceText& source_;
  const LarkGrammar& lark_;
  LarkTerminals terminals_;
  std::map<std::string, RuleEntry> rules_;
  std::map<const LarkNode*, Rule> calls_;
  std::vector<Waiting> waiting_;
  const LarkDefinition* definition_ = nullptr;  // of which the body is made
  uint64_t parameter_ = 0;
  bool has_ignored_ = false;
  Rule skip_;
};

Rule LarkLibrary::rule_of_schema(size_t index) {
  try {
    return add_json_schema(grammar_, listed_[index].schema, options_);
  } catch (const Error& error) {
    throw Error(error.code(), title_of(index) + ": " + error.what());
  }
}

Rule LarkLibrary::build() {
  const Rule whole = rule_at(0);
  for (size_t i = 0; i < waiting_.size(); ++i) {
    const size_t index = waiting_[i];
    Rule start;
    if (listed_[index].lark.empty()) {
      start = rule_of_schema(index);
    } else {
      SourceText source{.text = listed_[index].lark, .title = title_of(index)};
      const LarkGrammar lark = parse_lark_syntax(source);
      start = LarkBuilder(*this, source, lark).build();
    }
    grammar_.define(*rules_[index], grammar_.call(start));
  }
  return whole;
}

}  // namespace

Rule add_lark(Grammar& grammar, std::string_view text, const JsonSchemaOptions& options) {
  return LarkLibrary(grammar, text, options).build();
}

}  // namespace tgi::guide
