#include "cmd/http/http_library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <httplib.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "cmd/http/framing.h"
#include "cmd/http/gzip_reader.h"
#include "cmd/http/request_filter.h"

namespace tgi::http {
namespace {

constexpr int kListenBacklog = 4096;
constexpr const char* kCoding = "Content-Encoding";
constexpr const char* kAnyPath = "/";  // which all requests have for the library

#ifdef CPPHTTPLIB_HEADER_MAX_COUNT
constexpr ptrdiff_t kMaxHeaders = CPPHTTPLIB_HEADER_MAX_COUNT;
#else
constexpr ptrdiff_t kMaxHeaders = PTRDIFF_MAX;  // older versions count bytes only
#endif

bool has_too_many_headers(std::string_view head) {
  return std::count(head.begin(), head.end(), '\n') - 1 > kMaxHeaders;
}

constexpr size_t kMaxHeaderLength = CPPHTTPLIB_HEADER_MAX_LENGTH;

bool is_compressed(const Request& request) {
  const std::string_view coding = request.header("Content-Encoding");
  return !coding.empty() && coding != "identity";
}

bool has_too_long_header(std::string_view head) {
  for (size_t at = 0; at < head.size();) {
    const size_t end = std::min(head.find('\n', at), head.size());
    if (end - at > kMaxHeaderLength) return true;
    at = end + 1;
  }
  return false;
}

// The library calls our handlers on the thread of the connection and hands only its own objects to
// them.
thread_local Exchange* current = nullptr;
thread_local RequestFilter* current_filter = nullptr;

constexpr const char* kGzip = "gzip";

// Codings of a body that are undone: gzip here, where it may have several members, the others by
// this build of the library, which hands over a body in any other coding as it came.
constexpr std::array kDecoded = {kGzip,
#ifdef CPPHTTPLIB_ZLIB_SUPPORT
                                 "deflate",
#endif
#ifdef CPPHTTPLIB_BROTLI_SUPPORT
                                 "br",
#endif
                                 "identity"};

// The library compares some values with case that have none: Content-Encoding (RFC 9110, section
// 8.4.1) and Expect (10.1.1).
void lower_value(httplib::Request& request, const char* name) {
  if (!request.has_header(name)) return;
  std::string value = ascii_lower(request.get_header_value(name));
  if (value == "x-gzip") value = kGzip;  // RFC 9110, section 8.4.1.3
  request.headers.erase(name);
  request.set_header(name, value);
}

// Which of these the library calls depends on its version, so none of them says override.
class ConnectionStream final : public httplib::Stream {
 public:
  ConnectionStream(Connection& connection, RequestFilter& filter)
      : connection_(connection), filter_(filter) {}

  ssize_t read(char* to, size_t size) { return filter_.read(to, size); }
  ssize_t write(const char* from, size_t size) { return connection_.write(from, size); }

  // Newer versions ask before each read and write; those wait by themselves, with our limits.
  bool is_readable() const { return connection_.is_readable(); }
  bool is_writable() const { return true; }
  bool wait_readable() const { return true; }
  bool wait_writable() const { return true; }

  void get_remote_ip_and_port(std::string& ip, int& port) const {
    ip = connection_.remote().ip;
    port = connection_.remote().port;
  }
  void get_local_ip_and_port(std::string& /*ip*/, int& /*port*/) const {}  // nobody asks us
  time_t duration() const { return 0; }  // of the client's limits, which a server has not
  // The library refuses to serve descriptors that select can't watch, and asks for no other reason.
  socket_t socket() const { return 0; }

 private:
  Connection& connection_;
  RequestFilter& filter_;
};

class SinkWriter final : public BodyWriter {
 public:
  SinkWriter(httplib::DataSink& sink, int chunked_fd) : sink_(sink), chunked_fd_(chunked_fd) {}
  bool write(std::string_view bytes) override { return sink_.write(bytes.data(), bytes.size()); }
  int chunked_fd() const override { return chunked_fd_; }

 private:
  httplib::DataSink& sink_;
  const int chunked_fd_;
};

void fill_response(Response&& from, httplib::Response& to) {
  const bool is_http_1_0 = current->is_http_1_0;
  to.status = from.status;
  for (const Header& header : from.headers) to.set_header(header.name, header.value);
  current->on_end = std::move(from.on_end);
  current->answered = true;
  if (from.stream && is_http_1_0) current->must_close = true;  // the end of the body is the end
  if (!from.stream) {
    if (!from.content_type.empty()) to.set_content(from.body, from.content_type);
    return;
  }
  const int chunked_fd = is_http_1_0 ? -1 : current->connection.fd();
  const auto provide = [stream = std::move(from.stream), chunked_fd](size_t,
                                                                     httplib::DataSink& sink) {
    SinkWriter writer(sink, chunked_fd);
    if (!stream(writer)) return false;
    sink.done();
    return true;
  };
  if (is_http_1_0) {
    to.set_content_provider(from.content_type, provide);
  } else {
    to.set_chunked_content_provider(from.content_type, provide);
  }
}

std::vector<std::string> values_of(const httplib::Request& request, const std::string& name) {
  std::vector<std::string> out;
  const auto [begin, end] = request.headers.equal_range(name);
  for (auto it = begin; it != end; ++it) out.push_back(it->second);
  return out;
}

// The library's server, of which only the reading and writing of one request is used.
class Server final : public httplib::Server, public HttpLibrary {
 public:
  Server(const ServerOptions& options, RequestHandler& handler)
      : options_(options), handler_(handler) {
    // Without SO_REUSEPORT, the library's default: two servers would share a port unawares.
    set_socket_options([](socket_t socket) {
      const int on = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    });
    set_payload_max_length(SIZE_MAX);  // checked here, where chunked bodies are counted as well
    set_keep_alive_timeout(options.connection.idle_timeout.count() / 1000);
    set_keep_alive_max_count(1'000'000);
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      return before_body(request, response);
    });
    const HandlerWithContentReader read_body =
        [this](const httplib::Request& request, httplib::Response& response,
               const httplib::ContentReader& reader) { with_body(request, response, reader); };
    Post(kAnyPath, read_body);
    Delete(kAnyPath, read_body);
    const HandlerWithResponse explain = [this](const httplib::Request&,
                                               httplib::Response& response) {
      if (current->answered) return HandlerResponse::Unhandled;
      refuse(response);
      return HandlerResponse::Handled;
    };
    set_error_handler(explain);
    // All that is said about the connection is said here, after everything that decides it.
    set_post_routing_handler([this](const httplib::Request&, httplib::Response& response) {
      tell_persistence(response);
    });
    set_exception_handler([](const httplib::Request&, httplib::Response& response,
                             std::exception_ptr) { response.status = 500; });
    set_expect_100_continue_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          if (!is_too_large(request)) return 100;
          note_request(request);
          return response.status = 413;  // with what refuse() says
        });
  }

  int bind() override {
    // Bound here and listened to again: the library's queue of five is too short for a crowd.
    if (options_.port == 0) {
      const int port = bind_to_any_port(options_.host);
      if (port > 0) ::listen(svr_sock_, kListenBacklog);
      return port;
    }
    if (!bind_to_port(options_.host, options_.port)) return -1;
    ::listen(svr_sock_, kListenBacklog);
    return options_.port;
  }

  int listener() const override { return svr_sock_; }

  bool serve_one(Exchange& exchange) override {
    RequestFilter filter(exchange.connection);
    ConnectionStream stream(exchange.connection, filter);
    current = &exchange;
    current_filter = &filter;
    const bool ok = process_one(*this, stream, exchange.connection.remote());
    current = nullptr;
    current_filter = nullptr;
    return ok;
  }

 private:
  // `server` is this; a template, so that what this version of the library has not is not compiled.
  template <class Self>
  static bool process_one(Self& server, ConnectionStream& stream, const Endpoint& remote) {
    const std::function<void(httplib::Request&)> prepare = prepare_request;
    bool ignored = false;  // the library's opinion of the connection, which compares with case
    if constexpr (requires { server.process_request(stream, false, ignored, prepare); }) {
      return server.process_request(stream, false, ignored, prepare);
    } else {
      return server.process_request(stream, remote.ip, remote.port, "", 0, false, ignored, prepare);
    }
  }

  // The head was read. What the library would act upon by itself is taken away from it.
  static void prepare_request(httplib::Request& from) {
    Connection& connection = current->connection;
    connection.headers_are_complete();
    current_filter->head_is_complete(from.has_header("Transfer-Encoding"));
    Request& request = current->request;
    request.headers = headers_of(connection.head());
    request.path = from.path.substr(std::min(authority_length(from.target), from.path.size()));
    if (request.path.empty()) request.path = "/";
    for (const auto& [name, value] : from.params) request.query.push_back({name, value});
    current->is_http_1_0 = from.version == "HTTP/1.0";
    if (!keeps_connection(current->is_http_1_0, request.headers)) current->is_last = true;
    from.path = kAnyPath;  // newer versions match no pattern with a long path
    // Compressed documents are not what an API answers, it takes no forms, and it changes to no
    // other protocol. A Range never comes here (request_filter.h).
    for (const char* name : {"Accept-Encoding", "Connection", "Content-Type", "Upgrade"}) {
      from.headers.erase(name);
    }
    lower_value(from, kCoding);
    lower_value(from, "Expect");
    current->is_gzip = from.get_header_value(kCoding) == kGzip;
    if (current->is_gzip) from.headers.erase(kCoding);
  }

  bool is_too_large(const httplib::Request& request) const {
    const std::string length = request.get_header_value("Content-Length");
    return is_digits(length) &&
           (length.size() > 18 || std::stoull(length) > options_.max_body_bytes);
  }

  void tell_persistence(httplib::Response& response) const {
    response.headers.erase("Connection");
    response.headers.erase("Keep-Alive");
    if (current->must_close || current->is_last) {
      response.set_header("Connection", "close");
      return;
    }
    if (current->is_http_1_0) response.set_header("Connection", "keep-alive");
    response.set_header("Keep-Alive",
                        fmt::format("timeout={}", options_.connection.idle_timeout.count() / 1000));
  }

  // What is known before the body is read, beside what the head says.
  static void note_request(const httplib::Request& from) {
    Request& request = current->request;
    request.method = from.method;
    request.remote_address = current->connection.remote().ip;
    request.peer_fd = current->connection.fd();
    request.arrived_at = current->connection.request_began();
    request.arrived_at_system = std::chrono::system_clock::now() -
                                std::chrono::duration_cast<std::chrono::system_clock::duration>(
                                    std::chrono::steady_clock::now() - request.arrived_at);
  }

  HandlerResponse before_body(const httplib::Request& from, httplib::Response& response) {
    note_request(from);
    const Request& request = current->request;
    const bool has_body =
        from.has_header("Transfer-Encoding") ||
        (from.has_header("Content-Length") && from.get_header_value("Content-Length") != "0");
    current->must_close = has_body;
    const Framing framing = {from.version, from.target, values_of(from, "Content-Length"),
                             values_of(from, "Transfer-Encoding")};
    std::string problem = head_problem(current->connection.head());
    if (problem.empty()) problem = framing_problem(framing, request.headers);
    if (!problem.empty()) {
      current->must_close = true;
      fill_response(handler_.on_refused(request, 400, problem), response);
      return HandlerResponse::Handled;
    }
    if (auto answer = refused_coding(from)) {
      fill_response(std::move(*answer), response);
      return HandlerResponse::Handled;
    }
    if (auto answer = handler_.on_headers(request)) {
      fill_response(std::move(*answer), response);
      return HandlerResponse::Handled;
    }
    const bool is_read = from.method == "POST" || (from.method == "DELETE" && has_body);
    if (!is_read) {
      fill_response(handler_.on_request(request), response);
      return HandlerResponse::Handled;
    }
    return HandlerResponse::Unhandled;
  }

  // A body in a coding that is not undone, which must not be taken for what it is not.
  std::optional<Response> refused_coding(const httplib::Request& from) {
    const std::string coding = from.get_header_value("Content-Encoding");
    if (coding.empty() || !current->must_close) return std::nullopt;
    if (std::ranges::find(kDecoded, coding) != kDecoded.end()) return std::nullopt;
    const std::string known = fmt::format("{}", fmt::join(kDecoded, ", "));
    Response response = handler_.on_refused(
        current->request, 415,
        fmt::format("Content-Encoding: expected one of {}, got {}", known, coding.substr(0, 100)));
    response.headers.push_back({"Accept-Encoding", known});
    return response;
  }

  void with_body(const httplib::Request& from,
                 httplib::Response& response,
                 const httplib::ContentReader& reader) {
    Request& request = current->request;
    bool too_large = is_too_large(from);
    bool complete = true;
    if (!too_large && (from.has_header("Content-Length") || from.has_header("Transfer-Encoding"))) {
      const auto take = [&](std::string_view bytes) {
        too_large = too_large || request.body.size() + bytes.size() > options_.max_body_bytes;
        if (!too_large) request.body.append(bytes);
        return !too_large;
      };
      std::optional<GzipReader> gzip;
      if (current->is_gzip) gzip.emplace();
      complete = reader([&](const char* bytes, size_t count) {
        return gzip ? gzip->read({bytes, count}, take) : take({bytes, count});
      });
      if (gzip && !gzip->is_whole()) complete = false;
    }
    if (too_large) {
      const auto reason = fmt::format("the body has more than {} bytes, which is the limit",
                                      options_.max_body_bytes);
      return fill_response(handler_.on_refused(request, 413, reason), response);
    }
    // Newer versions take a chunked body without its last line for complete.
    if (!complete || current->connection.broke_off()) return refuse(response);
    current->must_close = false;
    fill_response(handler_.on_request(request), response);
  }

  // The library gave up: say why, and close.
  void refuse(httplib::Response& response) {
    current->must_close = true;
    int status = response.status > 0 ? response.status : 400;
    std::string reason = "the request is not valid HTTP/1.1";
    if (current->connection.headers_too_large()) {
      status = 431;
      reason = fmt::format("request line and headers have more than {} bytes, which is the limit",
                           options_.connection.max_header_bytes);
    } else if (current->connection.timed_out()) {
      status = 408;
      reason = "the request did not come in time";
    } else if (!current_filter->problem().empty()) {
      status = 400;
      reason = current_filter->problem();
    } else if (status == 400 && has_too_many_headers(current->connection.head())) {
      status = 431;
      reason = fmt::format("the request has more than {} headers, which is the limit", kMaxHeaders);
    } else if (status == 400 && has_too_long_header(current->connection.head())) {
      status = 431;
      reason = fmt::format("a header has more than {} bytes, which is the limit", kMaxHeaderLength);
    } else if (status == 414) {
      reason = "the address has more than 8192 bytes, which is the limit";
    } else if (status == 413) {
      reason = fmt::format("the body has more than {} bytes, which is the limit",
                           options_.max_body_bytes);
    } else if (status == 400 && is_compressed(current->request) &&
               !current->connection.broke_off()) {
      reason = fmt::format(
          "the body can't be decompressed: it is not what its Content-Encoding says, {}",
          current->request.header("Content-Encoding").substr(0, 100));
    } else if (status == 500) {
      reason = "internal error";
    }
    fill_response(handler_.on_refused(current->request, status, reason), response);
  }

  const ServerOptions& options_;
  RequestHandler& handler_;
};

}  // namespace

std::unique_ptr<HttpLibrary> make_http_library(const ServerOptions& options,
                                               RequestHandler& handler) {
  return std::make_unique<Server>(options, handler);
}

}  // namespace tgi::http
