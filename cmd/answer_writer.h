// Writes an answer as it comes: its reasoning dimmed, on a terminal alone, so that a pipe gets the
// answer and nothing else. Main thread only.
#pragma once

#include <string>

#include "cmd/output.h"
#include "ipc/protocol.h"

namespace tgi {

class AnswerWriter {
 public:
  explicit AnswerWriter(Output& out);

  void write(const ipc::TokenEvent& event);
  void end();  // of the answer, or where it was stopped

 private:
  void end_reasoning();

  Output& out_;
  const bool shows_reasoning_;
  const bool is_dimmed_;
  bool in_reasoning_ = false;
};

}  // namespace tgi
