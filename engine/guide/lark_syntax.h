// What a Lark grammar says, before anything is made of it. Used by lark.cc only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/guide/lark_json.h"
#include "engine/guide/lark_parameters.h"
#include "engine/guide/source_text.h"
#include "engine/guide/token_set.h"

namespace tgi::guide {

struct LarkNode {
  enum class Kind : uint8_t {
    kString,     // text, ignore_case
    kRegex,      // text, with its flags in front
    kRange,      // "a".."z": first, last
    kName,       // of a rule or a terminal: text
    kCall,       // of a rule with a parameter: text, index in changes
    kToken,      // <|token|>, <[7]>: tokens
    kJson,       // %json: json
    kNested,     // %lark: index in nested
    kNamed,      // @name: text
    kSubstring,  // %regex: json
    kSequence,   // parts
    kEither,     // parts
    kBoth,       // parts
    kNot,        // parts[0]
    kRepeat,     // parts[0], min, max
    kIf,         // parts[0], index in conditions
  };
  Kind kind = Kind::kSequence;
  size_t place = 0;
  std::string text{};
  bool ignore_case = false;
  char32_t first = 0;
  char32_t last = 0;
  int32_t min = 0;
  int32_t max = 0;
  int32_t index = -1;  // in a list of the grammar
  std::vector<int32_t> parts{};
  TokenSet tokens{};
  std::string_view json{};  // in the source
};

struct LarkDefinition {
  std::string name;
  size_t place = 0;
  int32_t body = -1;
  bool has_parameter = false;
  bool is_lazy = false;  // it ends as soon as it can
  int32_t suffix = -1;   // a node: the first of it ends the rule
  int32_t stop = -1;     // a node: the rule ends before the first of it
};

struct LarkGrammar {
  std::vector<LarkNode> nodes;
  std::vector<LarkDefinition> definitions;
  std::vector<LarkDefinition> imports;      // of "common", body -1; name: as it is called here
  std::vector<std::string> import_sources;  // by import: as it is called there
  std::vector<int32_t> ignored;             // nodes
  std::vector<LarkChange> changes;
  std::vector<LarkCondition> conditions;
  std::vector<LarkGrammar> nested;
  LlguidanceOptions options;
  size_t end = 0;  // in the source
};

bool is_terminal_name(std::string_view name);

LarkGrammar parse_lark_syntax(SourceText& source);

}  // namespace tgi::guide
