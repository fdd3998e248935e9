// The dialects of a model as the readers of answers use them: their marks as they stand in marked
// text.
#pragma once

#include <string>
#include <vector>

#include "engine/dialect/dialect.h"
#include "engine/dialect/marked_text.h"
#include "engine/dialect/read_syntax.h"

namespace tgi::dialect {

// Immutable, one for a model.
struct ReadDialects {
  ReadDialects(const Dialects& dialects, const IsSpecialToken& is_special);

  const ToolDialect* tools = nullptr;
  const ReasoningDialect* reasoning = nullptr;
  std::vector<ReadSyntax> calls;        // the ways to write them
  std::vector<std::string> call_marks;  // all that occur in them
  std::vector<std::string> reasoning_begins;
  std::vector<std::string> reasoning_ends;
  std::string before_text;  // empty: nothing
  std::vector<std::string> dropped;
  // What begins a call in the midst of the reasoning, which the call ends.
  struct CallInReasoning {
    std::string mark;
    size_t syntax = 0;  // of `calls`
  };
  std::vector<CallInReasoning> calls_in_reasoning;
};

// What a call behind a text is written in.
const ReadParts& parts_in_text(const ReadSyntax& syntax);

}  // namespace tgi::dialect
