// The log of a daemon that a command has started: a file that standard error leads to, and that
// nobody else keeps small. Belongs to one thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

namespace tgi::daemon {

class LogFile {
 public:
  using Clock = std::chrono::steady_clock;

  // `path`: where such a log is. Where `fd`, that of standard error, leads elsewhere, nothing is
  // ever done.
  LogFile(std::string path, int fd, off_t max_bytes);

  // Now and then, at least once a second while there is something to do: when the file has more
  // than max_bytes, it becomes PATH.1, in place of what was there, and the log goes on in a new
  // one. Of several daemons with one log the others follow. What fails is tried again.
  void look(Clock::time_point now);

 private:
  bool is_here() const;
  void begin_anew();

  const std::string path_;
  const int fd_;
  const off_t max_bytes_;
  const bool is_ours_;
  Clock::time_point next_look_;
};

}  // namespace tgi::daemon
