#include "cmd/answer_writer.h"

#include <sys/ioctl.h>

#include <cstdlib>
#include <string_view>

#include "base/color.h"

namespace tgi {
namespace {

constexpr std::string_view kDim = "\x1b[2m";
constexpr std::string_view kPlain = "\x1b[0m";

// https://no-color.org: set and not empty.
bool wants_no_color() {
  const char* const set = std::getenv("NO_COLOR");
  return set != nullptr && *set != '\0';
}

size_t columns_of(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : size_t{0};
}

}  // namespace

AnswerWriter::AnswerWriter(Output& out, bool renders_markdown)
    : out_(out),
      shows_reasoning_(out.is_terminal()),
      is_dimmed_(out.is_terminal() && !wants_no_color()) {
  if (!renders_markdown || !out.is_terminal() || !knows_sequences()) return;
  markdown_.emplace([fd = out.fd()] { return columns_of(fd); }, may_color(out.fd()));
}

void AnswerWriter::write(const ipc::TokenEvent& event) {
  if (shows_reasoning_ && !event.reasoning.empty()) {
    if (!in_reasoning_ && is_dimmed_) out_.write(kDim);
    in_reasoning_ = true;
    out_.write(without_controls(event.reasoning));
  }
  if (event.text.empty()) return;
  end_reasoning();
  if (markdown_) {
    out_.write(markdown_->add(event.text));
  } else {
    out_.write(out_.is_terminal() ? without_controls(event.text) : event.text);
  }
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
  if (markdown_) out_.write(markdown_->end());
}

}  // namespace tgi
