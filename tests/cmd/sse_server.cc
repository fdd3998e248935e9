#include "tests/cmd/sse_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <stdexcept>

namespace tgi {
namespace {

using Clock = std::chrono::steady_clock;

// An unlimited answer is written in lumps of about this size, and not while more is unsent.
constexpr size_t kLumpBytes = 64 * 1024;

void require(bool condition) {
  if (!condition) throw std::runtime_error("sse server: a system call did not work");
}

std::string chunk(const std::string& piece) {
  std::array<char, 24> head;
  const int size = std::snprintf(head.data(), head.size(), "%zx\r\n", piece.size());
  return std::string(head.data(), static_cast<size_t>(size)) + piece + "\r\n";
}

size_t content_length(const std::string& headers) {
  const size_t at = headers.find("content-length:");
  return at == std::string::npos ? 0 : std::stoul(headers.substr(at + 15));
}

}  // namespace

struct SseServer::Connection {
  UniqueFd fd;
  std::string incoming;
  std::string outgoing;
  size_t sent = 0;
  SseReply reply;
  std::string repeated_chunk;
  size_t next_piece = 0;
  bool replying = false;
  bool close_after = false;
  bool wants_write = false;
  Clock::time_point due;  // of the next piece

  size_t num_pieces() const { return reply.num_repeated + reply.pieces.size(); }
};

SseServer::SseServer(Handler handler, int port) : handler_(std::move(handler)) {
  listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  require(static_cast<bool>(listener_));
  const int one = 1;
  ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  require(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  require(::listen(listener_.get(), 4096) == 0);
  socklen_t size = sizeof address;
  require(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  wake_.reset(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  for (const int fd : {listener_.get(), wake_.get()}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    require(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0);
  }
}

SseServer::~SseServer() {
  stop();
  if (thread_.joinable()) thread_.join();
}

void SseServer::start() {
  keep_requests_ = true;
  thread_ = std::thread([this] { run(); });
}

void SseServer::stop() {
  stopping_ = true;
  const uint64_t one = 1;
  if (::write(wake_.get(), &one, sizeof one) < 0) return;
}

std::vector<SseRequest> SseServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

int SseServer::next_timeout_ms() const {
  if (due_.empty()) return -1;
  const auto left = due_.begin()->first - Clock::now();
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return ms < 0 ? 0 : static_cast<int>(ms);
}

void SseServer::run() {
  std::array<epoll_event, 256> events;
  while (!stopping_) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                   next_timeout_ms());
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if (event.data.fd == listener_.get()) accept_all();
      const auto it = connections_.find(event.data.fd);
      if (it == connections_.end()) continue;
      const bool alive =
          ((event.events & ~static_cast<uint32_t>(EPOLLOUT)) == 0 || read_from(*it->second)) &&
          advance(*it->second);
      if (!alive) drop(event.data.fd);
    }
    const auto now = Clock::now();
    while (!due_.empty() && due_.begin()->first <= now) {
      const int fd = due_.begin()->second;
      due_.erase(due_.begin());
      const auto it = connections_.find(fd);
      if (it != connections_.end() && !advance(*it->second)) drop(fd);
    }
  }
}

void SseServer::accept_all() {
  for (;;) {
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) return;
    const int one = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd.get();
    require(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) == 0);
    auto connection = std::make_unique<Connection>();
    const int number = fd.get();
    connection->fd = std::move(fd);
    connections_[number] = std::move(connection);
  }
}

void SseServer::drop(int fd) {
  for (auto it = due_.begin(); it != due_.end();) {
    it = it->second == fd ? due_.erase(it) : std::next(it);
  }
  connections_.erase(fd);
}

bool SseServer::read_from(Connection& connection) {
  std::array<char, 65536> bytes;
  for (;;) {
    const ssize_t count = ::read(connection.fd.get(), bytes.data(), bytes.size());
    if (count == 0) return false;
    if (count < 0) return errno == EAGAIN;
    connection.incoming.append(bytes.data(), static_cast<size_t>(count));
    if (connection.incoming.front() < 'A') return false;  // no HTTP: the beginning of TLS, say
    const size_t end = connection.incoming.find("\r\n\r\n");
    if (end == std::string::npos || connection.replying) continue;
    std::string headers = connection.incoming.substr(0, end + 2);
    for (char& c : headers) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const size_t size = end + 4 + content_length(headers);
    if (connection.incoming.size() >= size) begin_reply(connection);
  }
}

void SseServer::begin_reply(Connection& connection) {
  const std::string& text = connection.incoming;
  const size_t end = text.find("\r\n\r\n");
  const size_t space = text.find(' ');
  SseRequest request;
  request.method = text.substr(0, space);
  request.path = text.substr(space + 1, text.find(' ', space + 1) - space - 1);
  request.headers = text.substr(text.find("\r\n") + 2, end - text.find("\r\n"));
  for (char& c : request.headers) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  const size_t body_size = content_length(request.headers);
  request.body = text.substr(end + 4, body_size);
  connection.incoming.erase(0, end + 4 + body_size);
  connection.reply = handler_(request);
  if (keep_requests_) {
    const std::lock_guard lock(mutex_);
    requests_.push_back(std::move(request));
  }
  connection.outgoing += "HTTP/1.1 " + std::to_string(connection.reply.status) + " X\r\n" +
                         connection.reply.headers + "transfer-encoding: chunked\r\n\r\n";
  connection.repeated_chunk = chunk(connection.reply.repeated);
  connection.next_piece = 0;
  connection.replying = true;
  connection.due = Clock::now();
}

// Sends what is due; false when the connection is done.
bool SseServer::advance(Connection& connection) {
  const auto now = Clock::now();
  bool more = connection.replying;
  while (more && connection.due <= now &&
         connection.outgoing.size() - connection.sent < kLumpBytes) {
    const SseReply& reply = connection.reply;
    if (connection.next_piece == connection.num_pieces()) {
      if (!reply.cut) connection.outgoing += "0\r\n\r\n";
      connection.close_after = reply.cut;
      connection.replying = more = false;
      break;
    }
    connection.outgoing += connection.next_piece < reply.num_repeated
                               ? connection.repeated_chunk
                               : chunk(reply.pieces[connection.next_piece - reply.num_repeated]);
    ++connection.next_piece;
    connection.due += reply.gap;
    if (reply.gap.count() > 0 && connection.due > now) {
      due_.emplace(connection.due, connection.fd.get());
    }
  }
  if (!flush(connection)) return false;
  return !(connection.close_after && connection.sent == connection.outgoing.size());
}

bool SseServer::flush(Connection& connection) {
  while (connection.sent < connection.outgoing.size()) {
    const ssize_t count = ::send(connection.fd.get(), connection.outgoing.data() + connection.sent,
                                 connection.outgoing.size() - connection.sent, MSG_NOSIGNAL);
    if (count < 0 && errno != EAGAIN) return false;
    if (count < 0) break;
    connection.sent += static_cast<size_t>(count);
  }
  const bool all_sent = connection.sent == connection.outgoing.size();
  if (all_sent) {
    connection.outgoing.clear();
    connection.sent = 0;
  }
  // As fast as the client takes it: go on as soon as there is room.
  const bool wants = !all_sent || (connection.replying && connection.due <= Clock::now());
  if (wants == connection.wants_write) return true;
  connection.wants_write = wants;
  epoll_event event{};
  event.events = wants ? EPOLLIN | EPOLLOUT : static_cast<uint32_t>(EPOLLIN);
  event.data.fd = connection.fd.get();
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.fd.get(), &event) == 0;
}

}  // namespace tgi
