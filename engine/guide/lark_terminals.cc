#include "engine/guide/lark_terminals.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "engine/guide/code_points.h"
#include "engine/guide/lark_json.h"
#include "engine/guide/lark_substring.h"
#include "engine/guide/regex_sets.h"

namespace tgi::guide {
namespace {

using LarkKind = LarkNode::Kind;

// The terminals of Lark's "common", as patterns.
constexpr std::array<std::pair<std::string_view, std::string_view>, 26> kCommonTerminals = {{
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

}  // namespace

LarkTerminals::LarkTerminals(RegexPool& regex, const SourceText& source, const LarkGrammar& lark)
    : regex_(regex), source_(source), lark_(lark) {
  for (size_t i = 0; i < lark.imports.size(); ++i) {
    const LarkDefinition& import = lark.imports[i];
    const auto* const found =
        std::ranges::find(kCommonTerminals, std::string_view(lark.import_sources[i]),
                          [](const auto& row) { return row.first; });
    if (found == kCommonTerminals.end()) {
      refuse(import.place,
             "\"common\" has no terminal " + lark.import_sources[i] + " that is known here");
    }
    terminals_[import.name] = {.pattern = found->second, .place = import.place};
  }
}

void LarkTerminals::add(const LarkDefinition& definition) {
  terminals_[definition.name] = {.body = definition.body, .pattern = {}, .place = definition.place};
}

Regex LarkTerminals::named(const std::string& name, size_t place) {
  const auto found = terminals_.find(name);
  if (found == terminals_.end()) refuse(place, "the terminal " + name + " is not defined");
  Terminal& terminal = found->second;
  if (terminal.is_done) return terminal.language;
  if (std::exchange(terminal.is_open, true))
    refuse(place, "the terminal " + name + " is defined by itself; only rules may be recursive");
  terminal.language = terminal.body >= 0 ? of_node(terminal.body)
                                         : parse_regex(regex_, terminal.pattern, RegexUse::kWhole);
  terminal.is_done = true;
  return terminal.language;
}

Regex LarkTerminals::string_of(const LarkNode& node) {
  if (!node.ignore_case) return regex_.literal(node.text);
  std::vector<Regex> characters;
  for (size_t at = 0; at < node.text.size();) {
    const char32_t character = next_character(node.text, at);
    characters.push_back(regex_.code_points(fold_case({{character, character}})));
  }
  return regex_.concat(characters);
}

Regex LarkTerminals::of_node(int32_t id) {
  const LarkNode& node = lark_.nodes[static_cast<size_t>(id)];
  std::vector<Regex> parts;
  for (const int32_t part : node.parts) parts.push_back(of_node(part));
  switch (node.kind) {
    case LarkKind::kString:
      return string_of(node);
    case LarkKind::kRegex:
      return pattern_of(node);
    case LarkKind::kRange: {
      const CodePointRange range{node.first, node.last};
      return regex_.code_points(std::span(&range, 1));
    }
    case LarkKind::kName:
      if (is_terminal_name(node.text)) return named(node.text, node.place);
      [[fallthrough]];
    case LarkKind::kCall:
      refuse(node.place, "a terminal can't be made of the rule \"" + node.text + "\"");
    case LarkKind::kToken:
      refuse(node.place, "a special token can only be used in a rule");
    case LarkKind::kJson:
      refuse(node.place, "%json can only be used in a rule");
    case LarkKind::kNested:
    case LarkKind::kNamed:
      refuse(node.place, "another grammar can only be used in a rule");
    case LarkKind::kIf:
      refuse(node.place, "a condition can only be used in a rule");
    case LarkKind::kSubstring:
      return substring_of(node);
    case LarkKind::kSequence:
      return regex_.concat(parts);
    case LarkKind::kEither:
      return regex_.either(parts);
    case LarkKind::kBoth: {
      Regex all = parts[0];
      for (const Regex part : parts) all = regex_.both(all, part);
      return all;
    }
    case LarkKind::kNot:
      return regex_.without(regex_.any_text(), parts[0]);
    case LarkKind::kRepeat:
      return regex_.repeat(parts[0], node.min, node.max);
  }
  return regex_.nothing();
}

Regex LarkTerminals::pattern_of(const LarkNode& node) {
  try {
    return parse_regex(regex_, node.text, RegexUse::kWhole, RegexSyntax::kRust);
  } catch (const Error& error) {
    source_.refuse(node.place, error.what(), error.code());
  }
}

Regex LarkTerminals::substring_of(const LarkNode& node) {
  const nlohmann::ordered_json json = parse_json_at(source_, node.json);
  try {
    return substring_regex(regex_, json);
  } catch (const Error& error) {
    source_.refuse(node.place, error.what(), error.code());
  }
}

}  // namespace tgi::guide
