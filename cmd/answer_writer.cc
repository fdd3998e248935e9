#include "cmd/answer_writer.h"

#include <cstdlib>
#include <string_view>

namespace tgi {
namespace {

constexpr std::string_view kDim = "\x1b[2m";
constexpr std::string_view kPlain = "\x1b[0m";

// https://no-color.org: set and not empty.
bool wants_no_color() {
  const char* const set = std::getenv("NO_COLOR");
  return set != nullptr && *set != '\0';
}

}  // namespace

AnswerWriter::AnswerWriter(Output& out)
    : out_(out),
      shows_reasoning_(out.is_terminal()),
      is_dimmed_(out.is_terminal() && !wants_no_color()) {}

void AnswerWriter::write(const ipc::TokenEvent& event) {
  if (shows_reasoning_ && !event.reasoning.empty()) {
    if (!in_reasoning_ && is_dimmed_) out_.write(kDim);
    in_reasoning_ = true;
    out_.write(event.reasoning);
  }
  if (event.text.empty()) return;
  end_reasoning();
  out_.write(event.text);
}

void AnswerWriter::end_reasoning() {
  if (!in_reasoning_) return;
  in_reasoning_ = false;
  out_.end_line();
  if (is_dimmed_) out_.write(kPlain);
  out_.write("\n");
}

void AnswerWriter::end() {
  end_reasoning();
}

}  // namespace tgi
