#include "cmd/http/http_server.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "cmd/http/http_library.h"

namespace tgi::http {
namespace {

constexpr size_t kLongTargetBytes = 8192;  // more than the library takes
constexpr int kRetryAcceptMs = 20;

std::string_view reason_of(int status) {
  if (status == 400) return "Bad Request";
  return status == 429 ? "Too Many Requests" : "URI Too Long";
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
      response.status, reason_of(response.status), headers, response.content_type,
      response.body.size(), response.body);
}

void write_plainly(Connection& connection, const Response& response) {
  const std::string bytes = plain_bytes(response);
  const bool was_sent = connection.write(bytes.data(), bytes.size()) == std::ssize(bytes);
  if (response.on_end) response.on_end(was_sent);
}

// No request begins with a control character, but what speaks another protocol does: TLS's hello
// has no end of a line to wait for.
bool is_no_http(const Connection& connection) {
  const char first = connection.first_byte();
  return first >= '\0' && first < ' ' && first != '\r' && first != '\n';
}

bool is_first_line_too_long(const Connection& connection) {
  const std::string& head = connection.head();
  return connection.headers_too_large() ||
         (head.size() > kLongTargetBytes && head.find('\n') == std::string::npos &&
          !connection.timed_out());
}

Error bind_error(const ServerOptions& options, int cause) {
  const std::string_view advice =
      cause == EADDRINUSE ? "is another server there?"
      : cause == EACCES   ? "ports below 1024 are the system's; choose a larger one"
                          : "give an address of this machine, or 0.0.0.0 for all of them";
  // Without a cause the name led to no address.
  return {Code::kInvalidArgument,
          fmt::format("can't listen on {} port {}: {}; {}", options.host, options.port,
                      cause == 0 ? "no such address" : std::strerror(cause), advice)};
}

// As the library does, so that it finds what the library will find.
bool can_bind(const addrinfo& address) {
  const UniqueFd socket(::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, 0));
  if (!socket) return false;
  const int on = 1;
  const int off = 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.ai_family == AF_INET6) {
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  return ::bind(socket.get(), address.ai_addr, address.ai_addrlen) == 0;
}

}  // namespace

void try_address(const ServerOptions& options) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(options.port);
  if (::getaddrinfo(options.host.c_str(), port.c_str(), &wanted, &found) != 0) {
    throw bind_error(options, 0);
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    if (can_bind(*each)) return;
  }
  throw bind_error(options, errno);
}

HttpServer::HttpServer(const ServerOptions& options, RequestHandler& handler)
    : options_(options),
      handler_(handler),
      library_(make_http_library(options_, handler)),
      idle_stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  errno = 0;
  port_ = library_->bind();
  if (port_ <= 0) throw bind_error(options, errno);
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
      return turn_away(std::move(socket), fmt::format("{} connections are open, which is the limit",
                                                      options_.max_connections));
    }
  }
  const auto shared = std::make_shared<UniqueFd>(std::move(socket));
  try {
    std::thread([this, shared] { serve(std::move(*shared)); }).detach();
    lacks_threads_ = false;
  } catch (const std::system_error& error) {
    if (!lacks_threads_) {
      log_error("no thread for a connection: clients get 429 until there is one again",
                {{"error", error.what()}});
    }
    lacks_threads_ = true;
    {
      const std::lock_guard lock(mutex_);
      connections_.erase(shared->get());
      --num_threads_;
    }
    turn_away(std::move(*shared), "no thread can be started for another connection");
  }
}

void HttpServer::turn_away(UniqueFd socket, const std::string& reason) {
  const Response response = handler_.on_refused({}, 429, reason);
  turned_away_.add(std::move(socket), plain_bytes(response));
  if (response.on_end) response.on_end(true);
}

void HttpServer::serve(UniqueFd socket) {
  const int fd = socket.get();
  bool cut_off = false;
  {
    Connection connection(std::move(socket), options_.connection, idle_stop_.get());
    while (connection.wait_for_request()) {
      if (is_no_http(connection)) {
        write_plainly(connection,
                      handler_.on_refused({}, 400,
                                          "the request is not valid HTTP/1.1; this port speaks "
                                          "http:// and not https://"));
        cut_off = true;
        break;
      }
      Exchange exchange{.connection = connection};
      pollfd stopping{.fd = idle_stop_.get(), .events = POLLIN, .revents = 0};
      exchange.is_last = ::poll(&stopping, 1, 0) > 0;
      const bool ok = library_->serve_one(exchange);
      // The library says nothing when not even the first line could be read.
      if (!ok && !exchange.answered && is_first_line_too_long(connection)) {
        write_plainly(connection, handler_.on_refused({}, 414, "the address is too long"));
        exchange.must_close = true;
      }
      if (exchange.on_end) exchange.on_end(ok);
      cut_off = exchange.must_close;
      if (!ok || exchange.must_close || exchange.is_last) break;
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
