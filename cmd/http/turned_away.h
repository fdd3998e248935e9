// Connections that get an answer and nothing else, because there are too many. Closing a socket
// that still has unread bytes resets it, which may take the answer from the client: so each stays
// open for a moment while what it sends is dropped. Belongs to the thread that accepts.
#pragma once

#include <poll.h>

#include <chrono>
#include <deque>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace tgi::http {

class TurnedAway {
 public:
  static constexpr size_t kMaxOpen = 16;  // descriptors; the oldest makes room

  void add(UniqueFd socket, std::string_view answer);

  // What to wait for, and for how long at most (-1: for nothing).
  void append_to(std::vector<pollfd>& fds) const;
  int timeout_ms() const;

  // Drops what has come; closes those that have ended or had their moment.
  void look();

 private:
  struct One {
    UniqueFd socket;
    std::chrono::steady_clock::time_point until;
  };
  std::deque<One> open_;  // the oldest in front
};

}  // namespace tgi::http
