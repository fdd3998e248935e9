// The signals that change the terminal under a line that is edited, as a file descriptor: its size,
// Ctrl-Z and what follows it, and those that end the program. While this lives they are blocked,
// and what they ask for happens only in obey(), when the terminal is as it was. libedit's own
// handlers serve each signal once, and draw nothing after Ctrl-Z. Main thread only.
#pragma once

#include <signal.h>

#include <optional>

#include "base/unique_fd.h"

namespace tgi {

class EditorSignals {
 public:
  EditorSignals();
  ~EditorSignals();
  EditorSignals(const EditorSignals&) = delete;
  EditorSignals& operator=(const EditorSignals&) = delete;

  int fd() const { return fd_.get(); }  // readable when one waits

  // The one that waits longest; nothing: none does.
  std::optional<int> next();

  // Lets it do what it does without us: stop the process, end it, or nothing. Returns when the
  // process goes on.
  static void obey(int signal);

 private:
  sigset_t before_{};
  UniqueFd fd_;
};

}  // namespace tgi
