// Writes an answer as it comes: its reasoning dimmed, on a terminal alone, so that a pipe gets the
// answer and nothing else. On a terminal control characters of the model do nothing, and markdown
// is rendered where that is wanted. Main thread only.
#pragma once

#include <optional>
#include <string>

#include "cmd/markdown.h"
#include "cmd/output.h"
#include "ipc/protocol.h"

namespace tgi {

class AnswerWriter {
 public:
  AnswerWriter(Output& out, bool renders_markdown);

  void write(const ipc::TokenEvent& event);
  void end();  // of the answer, or where it was stopped

 private:
  void end_reasoning();

  Output& out_;
  const bool shows_reasoning_;
  const bool is_dimmed_;
  bool in_reasoning_ = false;
  std::optional<Markdown> markdown_;
};

}  // namespace tgi
