#include "engine/guide/lark.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/guide/code_points.h"
#include "engine/guide/lark_substring.h"
#include "engine/guide/lark_syntax.h"
#include "engine/guide/regex_sets.h"

namespace tgi::guide {
namespace {

using LarkKind = LarkNode::Kind;

// The terminals of Lark's "common", as patterns.
constexpr std::array<std::pair<std::string_view, std::string_view>, 26> kCommon = {{
    {"DIGIT", "[0-9]"},
    {"HEXDIGIT", "[0-9a-fA-F]"},
    {"INT", "[0-9]+"},
    {"SIGNED_INT", "[+-]?[0-9]+"},
    {"DECIMAL", "[0-9]+\\.[0-9]*|\\.[0-9]+"},
    {"_EXP", "[eE][+-]?[0-9]+"},
    {"FLOAT", "[0-9]+[eE][+-]?[0-9]+|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?"},
    {"SIGNED_FLOAT", "[+-]?([0-9]+[eE][+-]?[0-9]+|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?)"},
    {"NUMBER", "[0-9]+([eE][+-]?[0-9]+)?|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?"},
    {"SIGNED_NUMBER",
     "[+-]?([0-9]+([eE][+-]?[0-9]+)?|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?)"},
    {"ESCAPED_STRING", "\"([^\"\\\\\\n]|\\\\[^\\n])*\""},
    {"LCASE_LETTER", "[a-z]"},
    {"UCASE_LETTER", "[A-Z]"},
    {"LETTER", "[A-Za-z]"},
    {"WORD", "[A-Za-z]+"},
    {"CNAME", "[A-Za-z_][A-Za-z_0-9]*"},
    {"WS_INLINE", "[ \\t]+"},
    {"WS", "[ \\t\\f\\r\\n]+"},
    {"CR", "\\r"},
    {"LF", "\\n"},
    {"NEWLINE", "(\\r?\\n)+"},
    {"SH_COMMENT", "#[^\\n]*"},
    {"CPP_COMMENT", "//[^\\n]*"},
    {"C_COMMENT", "/\\*([^*]|\\*+[^*/])*\\*+/"},
    {"SQL_COMMENT", "--[^\\n]*"},
    {"PYTHON_COMMENT", "#[^\\n]*"},
}};

class LarkBuilder {
 public:
  LarkBuilder(Grammar& grammar, std::string_view text, const JsonSchemaOptions& options)
      : grammar_(grammar), options_(options), source_{text, 0}, lark_(parse_lark_syntax(source_)) {}

  Rule build() {
    declare();
    std::vector<Regex> ignored;
    for (const int32_t node : lark_.ignored) ignored.push_back(regex_of(node));
    has_ignored_ = !ignored.empty();
    const Rule start = rule_named("start");
    if (has_ignored_) {
      skip_ = grammar_.declare("what %ignore names");
      const Regex any = regex().either(ignored);
      const int32_t most = lark_.options.skips_once ? 1 : kUnbounded;
      grammar_.define(skip_, grammar_.terminal(regex().repeat(any, 0, most)));
    }
    for (const LarkDefinition& definition : lark_.definitions) {
      if (!is_terminal_name(definition.name))
        grammar_.define(rule_named(definition.name), body_of(definition));
    }
    if (!has_ignored_ || !lark_.options.allow_initial_skip) return start;
    const Rule whole = grammar_.declare("what %ignore names, then start");
    grammar_.define(whole, grammar_.sequence({grammar_.call(skip_), grammar_.call(start)}));
    return whole;
  }

 private:
  struct Terminal {
    int32_t body = -1;
    std::string_view pattern{};  // of an imported one
    size_t place = 0;
    bool is_open = false;
    bool is_done = false;
    Regex language{};
  };

  RegexPool& regex() { return grammar_.regex(); }
  const LarkNode& node_at(int32_t id) const { return lark_.nodes[static_cast<size_t>(id)]; }
  [[noreturn]] void refuse(size_t place, const std::string& what) const {
    source_.refuse(place, what, Code::kInvalidArgument);
  }

  void declare() {
    for (size_t i = 0; i < lark_.imports.size(); ++i) {
      const LarkDefinition& import = lark_.imports[i];
      const auto* const found =
          std::ranges::find(kCommon, std::string_view(lark_.import_sources[i]),
                            [](const auto& row) { return row.first; });
      if (found == kCommon.end()) {
        refuse(import.place,
               "\"common\" has no terminal " + lark_.import_sources[i] + " that is known here");
      }
      terminals_[import.name] = {.pattern = found->second, .place = import.place};
    }
    for (const LarkDefinition& definition : lark_.definitions) {
      const std::string& name = definition.name;
      if (terminals_.contains(name) || rules_.contains(name))
        refuse(definition.place, "\"" + name + "\" is defined a second time");
      if (is_terminal_name(name)) {
        if (definition.is_lazy || definition.suffix >= 0)
          refuse(definition.place, "lazy and suffix are of rules, and " + name + " is a terminal");
        terminals_[name] = {.body = definition.body, .pattern = {}, .place = definition.place};
      } else {
        rules_.emplace(name, grammar_.declare(name));
      }
    }
    if (!rules_.contains("start")) {
      const bool is_terminal = terminals_.contains("START");
      refuse(source_.text.size(), std::string("the grammar has no rule \"start\"") +
                                      (is_terminal ? "; START is a terminal" : ""));
    }
  }

  Rule rule_named(const std::string& name) const { return rules_.at(name); }

  Regex terminal_named(const std::string& name, size_t place) {
    const auto found = terminals_.find(name);
    if (found == terminals_.end()) refuse(place, "the terminal " + name + " is not defined");
    Terminal& terminal = found->second;
    if (terminal.is_done) return terminal.language;
    if (std::exchange(terminal.is_open, true))
      refuse(place, "the terminal " + name + " is defined by itself; only rules may be recursive");
    terminal.language = terminal.body >= 0
                            ? regex_of(terminal.body)
                            : parse_regex(regex(), terminal.pattern, RegexUse::kWhole);
    terminal.is_done = true;
    return terminal.language;
  }

  Regex string_of(const LarkNode& node) {
    if (!node.ignore_case) return regex().literal(node.text);
    std::vector<Regex> characters;
    for (size_t at = 0; at < node.text.size();) {
      const char32_t character = next_character(node.text, at);
      characters.push_back(regex().code_points(fold_case({{character, character}})));
    }
    return regex().concat(characters);
  }

  // A lazy rule is made of terminals: none of its texts goes on with what is one already.
  Expr body_of(const LarkDefinition& definition) {
    if (!definition.is_lazy && definition.suffix < 0) return expr_of(definition.body);
    Regex texts = regex_of(definition.body);
    if (definition.suffix >= 0) texts = regex().concat({texts, regex_of(definition.suffix)});
    const Regex longer = regex().concat({texts, regex().any_character(), regex().any_text()});
    return with_skip(regex().without(texts, longer));
  }

  // What a terminal is made of: no rules.
  Regex regex_of(int32_t id) {
    const LarkNode& node = node_at(id);
    std::vector<Regex> parts;
    for (const int32_t part : node.parts) parts.push_back(regex_of(part));
    switch (node.kind) {
      case LarkKind::kString:
        return string_of(node);
      case LarkKind::kRegex:
        return pattern_of(node);
      case LarkKind::kRange: {
        const CodePointRange range{node.first, node.last};
        return regex().code_points(std::span(&range, 1));
      }
      case LarkKind::kName:
        if (!is_terminal_name(node.text))
          refuse(node.place, "a terminal can't be made of the rule \"" + node.text + "\"");
        return terminal_named(node.text, node.place);
      case LarkKind::kToken:
        refuse(node.place, "a special token can only be used in a rule");
      case LarkKind::kJson:
        refuse(node.place, "%json can only be used in a rule");
      case LarkKind::kSubstring:
        return substring_of(node);
      case LarkKind::kSequence:
        return regex().concat(parts);
      case LarkKind::kEither:
        return regex().either(parts);
      case LarkKind::kBoth: {
        Regex all = parts[0];
        for (const Regex part : parts) all = regex().both(all, part);
        return all;
      }
      case LarkKind::kNot:
        return regex().without(regex().any_text(), parts[0]);
      case LarkKind::kRepeat:
        return regex().repeat(parts[0], node.min, node.max);
    }
    return regex().nothing();
  }

  Regex pattern_of(const LarkNode& node) {
    try {
      return parse_regex(regex(), node.text, RegexUse::kWhole);
    } catch (const Error& error) {
      source_.refuse(node.place, error.what(), error.code());
    }
  }

  Regex substring_of(const LarkNode& node) {
    const nlohmann::ordered_json json = parse_json_at(source_, node.json);
    try {
      return substring_regex(regex(), json);
    } catch (const Error& error) {
      source_.refuse(node.place, error.what(), error.code());
    }
  }

  Expr schema_of(const LarkNode& node) {
    const nlohmann::ordered_json schema = parse_json_at(source_, node.json);
    try {
      return grammar_.call(add_json_schema(grammar_, schema, options_));
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
        return with_skip(regex_of(id));
      case LarkKind::kName: {
        if (is_terminal_name(node.text)) return with_skip(terminal_named(node.text, node.place));
        const auto rule = rules_.find(node.text);
        if (rule == rules_.end())
          refuse(node.place, "the rule \"" + node.text + "\" is not defined");
        return grammar_.call(rule->second);
      }
      case LarkKind::kToken:
        return with_skip(grammar_.token_of(node.tokens));
      case LarkKind::kJson:
        return with_skip(schema_of(node));
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

  Grammar& grammar_;
  const JsonSchemaOptions& options_;
  SourceText source_;
  LarkGrammar lark_;
  std::map<std::string, Terminal> terminals_;
  std::map<std::string, Rule> rules_;
  bool has_ignored_ = false;
  Rule skip_;
};

}  // namespace

Rule add_lark(Grammar& grammar, std::string_view text, const JsonSchemaOptions& options) {
  return LarkBuilder(grammar, text, options).build();
}

}  // namespace tgi::guide
