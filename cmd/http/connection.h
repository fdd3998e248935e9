// One TCP connection as cpp-httplib's Stream, with what that library leaves to its user: a deadline
// and a size limit for headers, poll instead of select (more than 1024 descriptors), waits that
// notice the end of the server. Belongs to the thread that serves it.
#pragma once

#include <httplib.h>

#include <array>
#include <chrono>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "cmd/http/message.h"

namespace tgi::http {

struct ConnectionLimits {
  size_t max_header_bytes = size_t{64} << 10;        // request line and headers together
  std::chrono::milliseconds header_timeout{10'000};  // for all of them
  std::chrono::milliseconds read_timeout{30'000};    // without a byte of the body
  std::chrono::milliseconds write_timeout{30'000};   // without the client taking a byte
  std::chrono::milliseconds idle_timeout{75'000};    // between requests
};

class Connection final : public httplib::Stream {
 public:
  // `stopping_fd` becomes readable when the server takes no more requests.
  Connection(UniqueFd socket, const ConnectionLimits& limits, int stopping_fd);

  // Waits for the first byte of a request. False: none comes (closed, idle too long, the server
  // stops).
  bool wait_for_request();
  void headers_are_complete() { in_headers_ = false; }

  // Reads and drops what the client still sends, so that closing does not cut off the answer.
  void linger();

  // What went wrong while reading, for the answer.
  bool headers_too_large() const { return headers_too_large_; }
  bool timed_out() const { return timed_out_; }
  std::chrono::steady_clock::time_point request_began() const { return request_began_; }

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  // The library refuses to serve descriptors that select can't watch; it uses this for nothing
  // else.
  socket_t socket() const override { return 0; }

  int fd() const { return socket_.get(); }

  // Request line and headers as they came, as far as they were read.
  const std::string& head() const { return head_; }

 private:
  ssize_t fill();

  const UniqueFd socket_;
  const ConnectionLimits& limits_;
  const int stopping_fd_;
  std::array<char, 16 << 10> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool in_headers_ = true;
  std::string head_;
  bool headers_too_large_ = false;
  bool timed_out_ = false;
  std::chrono::steady_clock::time_point request_began_;
};

}  // namespace tgi::http
