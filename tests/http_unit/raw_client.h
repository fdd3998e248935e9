// One TCP connection to a server on this machine, for tests that say every byte themselves.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace tgi::http {

// One answer, taken apart.
struct RawAnswer {
  std::string version;
  int status = 0;                              // 0: the connection ended before a whole answer
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // chunks put together
  bool chunked = false;
};

class RawClient {
 public:
  explicit RawClient(int port);

  void send(std::string_view bytes);

  // The next answer on this connection. `has_body` false: to a HEAD.
  RawAnswer answer(bool has_body = true);

  // Waits until `text` has come; false when the connection ended or the time was up before.
  bool wait_for(std::string_view text, int timeout_ms = 10'000);

  // Nothing more comes and the other end has closed.
  bool is_closed(int timeout_ms = 10'000);

  // Says that no more will be sent / goes away with a reset.
  void finish_sending();
  void vanish();

  const std::string& unread() const { return buffer_; }

 private:
  bool fill(std::chrono::steady_clock::time_point deadline);
  bool read_until(std::string_view marker, std::string& out);
  bool read_count(size_t count, std::string& out);

  UniqueFd socket_;
  std::string buffer_;  // came, but was not asked for yet
};

}  // namespace tgi::http
