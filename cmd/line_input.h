// The lines of a file, a pipe or a text, each as soon as it is there: what comes in has no end that
// anybody knows. Belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/unique_fd.h"

namespace tgi {

inline constexpr size_t kLongestLine = size_t{256} << 20;  // /dev/zero has no end of a line

// What ends the wait for a line; -1: nothing does.
struct LineWatch {
  int cancel_fd = -1;  // readable after Ctrl-C
  int output_fd = -1;  // its reader went away
  int stop_fd = -1;    // readable when nobody wants another line
};

class LineInput {
 public:
  // "-": standard input. Throws kNotFound or kInvalidArgument with the system's reason.
  explicit LineInput(const std::string& path);
  // The lines of a text.
  static LineInput of_text(std::string text);

  // The next one without its end; nothing: there is no other, or stop_fd is readable. Throws
  // ipc::Stopped for the other two, kInvalidArgument for one that is longer than anything that is
  // meant, and what the system says of the file.
  std::optional<std::string> next(const LineWatch& watch);

  // The same without waiting; nothing: no whole one is there yet.
  std::optional<std::string> next_if_there();

  // The last line was given.
  bool has_ended() const { return is_at_end_ && begin_ == bytes_.size(); }

 private:
  LineInput() = default;
  std::optional<std::string> take_line();
  void read_some();

  UniqueFd file_;
  int fd_ = -1;
  std::string shown_;
  std::string bytes_;  // those from begin_ were not given yet
  size_t begin_ = 0;
  size_t searched_ = 0;  // up to here there is no end of a line behind begin_
  bool is_at_end_ = false;
};

}  // namespace tgi
