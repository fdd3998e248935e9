// Lines from the user: with editing and history on a terminal (libedit), plainly from anything
// else. Main thread only. Ctrl-C comes through `cancel_fd` (cmd/interrupt.h), which is not read
// here.
#pragma once

#include <histedit.h>

#include <cwchar>
#include <memory>
#include <optional>
#include <string>

#include "cmd/editor_signals.h"
#include "cmd/line_input.h"

namespace tgi {

struct ReadLine {
  enum class Kind { kLine, kEnd, kInterrupted };
  Kind kind = Kind::kEnd;
  std::string text;  // without the newline
};

class LineSource {
 public:
  virtual ~LineSource() = default;
  virtual ReadLine read(const std::string& prompt) = 0;
  // Called with a whole input, which may have several lines. (optional: does nothing)
  virtual void remember(const std::string& /*input*/) {}
};

class PlainLines final : public LineSource {
 public:
  explicit PlainLines(int cancel_fd) : cancel_fd_(cancel_fd) {}
  ReadLine read(const std::string& prompt) override;

 private:
  const int cancel_fd_;
  LineInput input_{"-"};
};

// What a terminal pastes is inserted whole and stays one input, whatever lines it has.
class LineEditor final : public LineSource {
 public:
  // The history file is made with mode 0600 and kept to the last 1000 inputs. Without a place for
  // it (a home that can't be written) the editor works all the same and `problem()` says why.
  LineEditor(std::string history_path, int cancel_fd);
  ~LineEditor() override;

  ReadLine read(const std::string& prompt) override;
  void remember(const std::string& input) override;
  const std::string& problem() const { return problem_; }

 private:
  static char* give_prompt(EditLine* editor);
  static int read_character(EditLine* editor, wchar_t* out);
  static unsigned char insert_paste(EditLine* editor, wint_t key);
  void heed_signals();
  void load_history();
  void save_history();

  const std::string history_path_;
  const int cancel_fd_;
  std::unique_ptr<History, void (*)(History*)> history_;
  std::unique_ptr<EditLine, void (*)(EditLine*)> editor_;
  std::optional<EditorSignals> signals_;  // while a line is read
  std::string prompt_;
  std::string problem_;
  bool interrupted_ = false;
};

}  // namespace tgi
