#include "cmd/http/http_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "cmd/http/framing.h"

namespace tgi::http {
namespace {

constexpr int kListenBacklog = 4096;
constexpr int kRetryAcceptMs = 20;

// What the handlers of one connection need beside what the library hands to them. The library calls
// them on the connection's thread.
struct Current {
  Connection* connection = nullptr;
  Request request;
  std::function<void(bool)> on_end;
  bool answered = false;    // by our handlers: the status is not the library's doing
  bool must_close = false;  // what is left of the request was not read, or the end ends the body
  bool is_last = false;     // client or server want no other request on this connection
  bool is_http_1_0 = false;
};
thread_local Current* current = nullptr;

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
  const int chunked_fd = is_http_1_0 ? -1 : current->connection->fd();
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

// For an answer that is written without the library.
std::string plain_bytes(const Response& response) {
  std::string headers;
  for (const Header& header : response.headers) {
    headers += fmt::format("{}: {}\r\n", header.name, header.value);
  }
  return fmt::format(
      "HTTP/1.1 {} {}\r\n{}Content-Type: {}\r\nContent-Length: {}\r\nConnection: "
      "close\r\n\r\n{}",
      response.status, response.status == 429 ? "Too Many Requests" : "URI Too Long", headers,
      response.content_type, response.body.size(), response.body);
}

void write_plainly(Connection& connection, const Response& response) {
  const std::string bytes = plain_bytes(response);
  (void)connection.write(bytes.data(), bytes.size());
}

}  // namespace

// The library's server, of which only the reading and writing of one request is used.
class HttpServer::Library final : public httplib::Server {
 public:
  Library(const ServerOptions& options, RequestHandler& handler)
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
    Post("(.*)",
         [this](const httplib::Request& request, httplib::Response& response,
                const httplib::ContentReader& reader) { with_body(request, response, reader); });
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

  int bind() {
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

  int listener() const { return svr_sock_; }

  // False: the answer could not be written whole.
  bool serve_one(Connection& connection) {
    bool ignored = false;  // the library's opinion of the connection, which compares with case
    return process_request(connection, false, ignored, [&](httplib::Request& request) {
      connection.headers_are_complete();
      current->request.headers = headers_of(connection.head());
      current->is_http_1_0 = request.version == "HTTP/1.0";
      if (!keeps_connection(current->is_http_1_0, current->request.headers)) {
        current->is_last = true;
      }
      // Neither parts of a document nor compressed ones are what an API answers.
      request.ranges.clear();
      request.headers.erase("Range");
      request.headers.erase("Accept-Encoding");
      request.headers.erase("Connection");
    });
  }

 private:
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

  // What is known before the body is read.
  static void note_request(const httplib::Request& from) {
    Request& request = current->request;
    request.method = from.method;
    request.path = from.path.substr(std::min(authority_length(from.target), from.path.size()));
    if (request.path.empty()) request.path = "/";
    request.remote_address = from.remote_addr;
    request.peer_fd = current->connection->fd();
    request.arrived_at = current->connection->request_began();
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
    if (const std::string problem = framing_problem(from, request.headers); !problem.empty()) {
      current->must_close = true;
      fill_response(handler_.on_refused(request, 400, problem), response);
      return HandlerResponse::Handled;
    }
    if (auto answer = handler_.on_headers(request)) {
      fill_response(std::move(*answer), response);
      return HandlerResponse::Handled;
    }
    if (from.method != "POST") {
      fill_response(handler_.on_request(request), response);
      return HandlerResponse::Handled;
    }
    return HandlerResponse::Unhandled;
  }

  void with_body(const httplib::Request& from,
                 httplib::Response& response,
                 const httplib::ContentReader& reader) {
    Request& request = current->request;
    bool too_large = is_too_large(from);
    bool complete = true;
    if (!too_large && (from.has_header("Content-Length") || from.has_header("Transfer-Encoding"))) {
      complete = reader([&](const char* bytes, size_t count) {
        too_large = too_large || request.body.size() + count > options_.max_body_bytes;
        if (!too_large) request.body.append(bytes, count);
        return !too_large;
      });
    }
    if (too_large) {
      const auto reason = fmt::format("the body has more than {} bytes, which is the limit",
                                      options_.max_body_bytes);
      return fill_response(handler_.on_refused(request, 413, reason), response);
    }
    if (!complete) return refuse(response);
    current->must_close = false;
    fill_response(handler_.on_request(request), response);
  }

  // The library gave up: say why, and close.
  void refuse(httplib::Response& response) {
    current->must_close = true;
    int status = response.status > 0 ? response.status : 400;
    std::string reason = "the request is not valid HTTP/1.1";
    if (current->connection->headers_too_large()) {
      status = 431;
      reason = fmt::format("request line and headers have more than {} bytes, which is the limit",
                           options_.connection.max_header_bytes);
    } else if (current->connection->timed_out()) {
      status = 408;
      reason = "the request did not come in time";
    } else if (status == 414) {
      reason = "the address has more than 8192 bytes, which is the limit";
    } else if (status == 413) {
      reason = fmt::format("the body has more than {} bytes, which is the limit",
                           options_.max_body_bytes);
    } else if (status == 500) {
      reason = "internal error";
    }
    fill_response(handler_.on_refused(current->request, status, reason), response);
  }

  const ServerOptions& options_;
  RequestHandler& handler_;
};

HttpServer::HttpServer(const ServerOptions& options, RequestHandler& handler)
    : options_(options),
      handler_(handler),
      library_(std::make_unique<Library>(options_, handler)),
      idle_stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  port_ = library_->bind();
  if (port_ <= 0) {
    throw Error(Code::kInvalidArgument,
                fmt::format("can't listen on {} port {}: {}; is another server there?",
                            options.host, options.port, std::strerror(errno)));
  }
}

HttpServer::~HttpServer() {
  close_idle();
  shutdown_all();
  wait_until_empty(std::chrono::hours(1));
  ::close(library_->listener());
}

void HttpServer::run(int stop_fd) {
  for (;;) {
    std::vector<pollfd> fds = {{.fd = library_->listener(), .events = POLLIN, .revents = 0},
                               {.fd = stop_fd, .events = POLLIN, .revents = 0}};
    turned_away_.append_to(fds);
    if (::poll(fds.data(), fds.size(), turned_away_.timeout_ms()) < 0 && errno != EINTR) {
      throw Error(Code::kInternal, fmt::format("poll: {}", std::strerror(errno)));
    }
    if (fds[1].revents != 0) return;
    turned_away_.look();
    if (fds[0].revents != 0) accept_one();
  }
}

void HttpServer::accept_one() {
  UniqueFd socket(::accept4(library_->listener(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) {
    // Out of descriptors or memory: those who wait are served when others have left.
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      std::this_thread::sleep_for(std::chrono::milliseconds(kRetryAcceptMs));
    }
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    if (static_cast<int>(connections_.size()) < options_.max_connections) {
      connections_.insert(socket.get());
      ++num_threads_;
    } else {
      return turn_away(std::move(socket));
    }
  }
  const int fd = socket.get();
  try {
    std::thread([this, moved = std::move(socket)]() mutable { serve(std::move(moved)); }).detach();
  } catch (const std::system_error& error) {
    log_error("no thread for a connection", {{"error", error.what()}});
    const std::lock_guard lock(mutex_);
    connections_.erase(fd);
    --num_threads_;
  }
}

void HttpServer::turn_away(UniqueFd socket) {
  const Response response = handler_.on_refused(
      {}, 429,
      fmt::format("{} connections are open, which is the limit", options_.max_connections));
  turned_away_.add(std::move(socket), plain_bytes(response));
}

void HttpServer::serve(UniqueFd socket) {
  const int fd = socket.get();
  bool cut_off = false;
  {
    Connection connection(std::move(socket), options_.connection, idle_stop_.get());
    while (connection.wait_for_request()) {
      Current state;
      state.connection = &connection;
      current = &state;
      pollfd stopping{.fd = idle_stop_.get(), .events = POLLIN, .revents = 0};
      state.is_last = ::poll(&stopping, 1, 0) > 0;
      const bool ok = library_->serve_one(connection);
      current = nullptr;
      // The library says nothing when not even the first line could be read.
      if (!ok && !state.answered && connection.headers_too_large()) {
        write_plainly(connection, handler_.on_refused({}, 414, "the address is too long"));
        state.must_close = true;
      }
      if (state.on_end) state.on_end(ok);
      cut_off = state.must_close;
      if (!ok || state.must_close || state.is_last) break;
    }
    if (cut_off) connection.linger();
    const std::lock_guard lock(mutex_);
    connections_.erase(fd);
  }
  // The last touch of the server: it may be gone as soon as the lock is free.
  const std::lock_guard lock(mutex_);
  if (--num_threads_ == 0) emptied_.notify_all();
}

void HttpServer::close_idle() {
  const uint64_t one = 1;
  (void)!::write(idle_stop_.get(), &one, sizeof one);
}

bool HttpServer::wait_until_empty(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return emptied_.wait_for(lock, timeout, [this] { return num_threads_ == 0; });
}

void HttpServer::shutdown_all() {
  const std::lock_guard lock(mutex_);
  for (const int fd : connections_) ::shutdown(fd, SHUT_RDWR);
}

}  // namespace tgi::http
