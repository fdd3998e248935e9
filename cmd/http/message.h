// One HTTP request and its answer, as the handlers of the gateway see them: no socket, no library.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tgi::http {

struct Header {
  std::string name;
  std::string value;
};

struct Request {
  std::string method;
  std::string path;           // decoded, without the query
  std::vector<Header> query;  // decoded names and values, in no order
  // Of that name; nothing: it is not there.
  std::optional<std::string> query_value(std::string_view name) const;
  std::vector<Header> headers;
  std::string body;
  std::string remote_address;
  int peer_fd = -1;  // of the connection: POLLRDHUP says that the client is gone
  std::chrono::steady_clock::time_point arrived_at;  // its first byte was there
  std::chrono::system_clock::time_point arrived_at_system;

  // The value of the first header of that name, whatever its case; "" when there is none.
  std::string_view header(std::string_view name) const;
};

// Writes to a body of unknown length.
class BodyWriter {
 public:
  virtual ~BodyWriter() = default;

  // False: the client is gone or took nothing for too long; nothing more can be written.
  [[nodiscard]] virtual bool write(std::string_view bytes) = 0;

  // The socket, when whole chunks of HTTP/1.1 may be written to it past this writer; else -1.
  virtual int chunked_fd() const { return -1; }
};

struct Response {
  int status = 200;
  std::vector<Header> headers{};
  std::string content_type{};
  std::string body{};

  // When set, `body` is not used: called once, after the headers went out. Returns when the body is
  // complete; false: it is cut off, and the connection with it. Must not throw.
  std::function<bool(BodyWriter&)> stream{};

  // Called once, when the last byte was written or could not be (optional).
  std::function<void(bool was_sent)> on_end{};
};

// For a test or a log: the reason phrase is the server's business.
Response plain_text(int status, std::string text);

}  // namespace tgi::http
