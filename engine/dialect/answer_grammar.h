// The grammar of an answer that may reason and call tools: free text until a call begins, then the
// call as the dialect writes it, with arguments that satisfy the tool's schema.
#pragma once

#include <optional>

#include "engine/dialect/dialect.h"
#include "engine/dialect/marked_text.h"
#include "engine/dialect/tools.h"
#include "engine/guide/grammar.h"

namespace tgi::dialect {

struct AnswerForm {
  enum class Reasoning : uint8_t {
    kNone,      // the answer begins with its text
    kPossible,  // it may begin with reasoning
    kBegun,     // the prompt has begun it
  };
  Dialects dialects;
  ToolUse tools;
  Reasoning reasoning = Reasoning::kNone;
  bool marks_text = false;          // the dialect's before_text stands before the text
  std::optional<guide::Rule> text;  // what the text has to be; any text where it is not given
};

// Throws kUnsupported or kInvalidArgument with the tool's name and the place in its schema, of a
// strict tool. Arguments of others are any JSON object where the schema can't be enforced.
guide::Rule add_answer(guide::Grammar& grammar,
                       const AnswerForm& form,
                       const IsSpecialToken& is_special);

}  // namespace tgi::dialect
