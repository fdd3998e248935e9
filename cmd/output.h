// Standard output, written at once and whole. A reader that goes away (`| head -1`) and Ctrl-C
// while the reader is slow both end the command through ipc::Stopped; any other failure is an
// Error, so that a full disk is not taken for success.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tgi {

// What the system says (errno) of a file or of an output that is called `what`.
Error system_error(const std::string& what);

class Output {
 public:
  // Neither is owned. `cancel_fd` may be -1.
  Output(int fd, int cancel_fd);

  void write(std::string_view text);

  // Writes a newline unless the last thing written was one.
  void end_line();

  bool is_terminal() const { return is_terminal_; }
  int fd() const { return fd_; }

 private:
  const int fd_;
  const int cancel_fd_;
  const bool is_terminal_;
  bool at_line_start_ = true;
};

// The whole of a file, or of standard input when `path` is "-". Throws kNotFound or
// kInvalidArgument with the system's reason, or when it is larger than `most_bytes`.
std::string read_input(const std::string& path,
                       size_t most_bytes = std::numeric_limits<size_t>::max());

// The same of one prompt, schema or conversation, of which none is large: /dev/zero has no end.
std::string read_document(const std::string& path);

// Replaces `path` by `text` in one step (temporary file, then rename); mode 0600.
void write_file(const std::string& path, std::string_view text);

}  // namespace tgi
