// One TCP connection, with what the HTTP library leaves to its user: a deadline and a size limit
// for headers, poll instead of select (more than 1024 descriptors), waits that notice the end of
// the server. Belongs to the thread that serves it.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "cmd/http/message.h"

namespace tgi::http {

struct Endpoint {
  std::string ip;  // "" when it is not known
  int port = 0;
};

struct ConnectionLimits {
  size_t max_header_bytes = size_t{64} << 10;        // request line and headers together
  std::chrono::milliseconds header_timeout{10'000};  // for all of them
  std::chrono::milliseconds read_timeout{30'000};    // without a byte of the body
  std::chrono::milliseconds write_timeout{30'000};   // without the client taking a byte
  std::chrono::milliseconds idle_timeout{75'000};    // between requests
};

class Connection {
 public:
  // `stopping_fd` becomes readable when the server takes no more requests.
  Connection(UniqueFd socket, const ConnectionLimits& limits, int stopping_fd);

  // Waits for the first byte of a request. False: none comes (closed, idle too long, the server
  // stops).
  bool wait_for_request();
  // REQUIRES: wait_for_request was true, and nothing was read since.
  char first_byte() const { return buffer_[begin_]; }
  void headers_are_complete() { in_headers_ = false; }

  // Reads and drops what the client still sends, so that closing does not cut off the answer.
  void linger();

  // What went wrong while reading, for the answer.
  bool headers_too_large() const { return headers_too_large_; }
  bool timed_out() const { return timed_out_; }
  bool broke_off() const { return broke_off_; }  // the client ended, or sent nothing for too long
  std::chrono::steady_clock::time_point request_began() const { return request_began_; }

  // Bytes that can be had without waiting.
  bool is_readable() const;
  // Both wait as long as the limits allow. They return how many bytes, 0: the client has ended, -1:
  // it never will be.
  ssize_t read(char* to, size_t size);
  ssize_t write(const char* from, size_t size);

  int fd() const { return socket_.get(); }
  const Endpoint& remote() const { return remote_; }

  // Request line and headers as they came, as far as the library asked for them.
  const std::string& head() const { return head_; }

 private:
  ssize_t fill();

  const UniqueFd socket_;
  const Endpoint remote_;
  const ConnectionLimits& limits_;
  const int stopping_fd_;
  std::array<char, 16 << 10> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool in_headers_ = true;
  std::string head_;
  bool headers_too_large_ = false;
  bool timed_out_ = false;
  bool broke_off_ = false;
  std::chrono::steady_clock::time_point request_began_;
};

}  // namespace tgi::http
