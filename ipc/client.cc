#include "ipc/client.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/unique_fd.h"
#include "ipc/line_socket.h"
#include "ipc/socket_access.h"

namespace tgi::ipc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRetryMs = 10;

// Waits until `fd` (-1: none) is ready for `events` or the time is up (-1: no limit); false when it
// is up. Throws Stopped.
bool wait_for(const ClientOptions& options, int fd, short events, int timeout_ms) {
  // The reader of a pipe that goes away shows as POLLERR, which is reported unasked.
  std::array<pollfd, 4> fds = {{{.fd = fd, .events = events, .revents = 0},
                                {.fd = options.cancel_fd, .events = POLLIN, .revents = 0},
                                {.fd = options.output_fd, .events = 0, .revents = 0},
                                {.fd = options.peer_fd, .events = POLLRDHUP, .revents = 0}}};
  const auto deadline = Clock::now() + std::chrono::milliseconds(std::max(timeout_ms, 0));
  for (;;) {
    int left_ms = -1;
    if (timeout_ms >= 0) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      left_ms = static_cast<int>(std::max<int64_t>(left.count(), 0));
    }
    const int count = ::poll(fds.data(), fds.size(), left_ms);
    if (count < 0 && errno != EINTR) {
      throw Error(Code::kInternal, fmt::format("poll: {}", std::strerror(errno)));
    }
    if (count < 0) continue;
    if ((fds[1].revents & POLLIN) != 0) throw Stopped(Stopped::Why::kCancelFd);
    if ((fds[2].revents & (POLLERR | POLLHUP)) != 0) {
      throw Stopped(Stopped::Why::kOutputGone);
    }
    if ((fds[3].revents & (POLLERR | POLLHUP | POLLRDHUP)) != 0) {
      throw Stopped(Stopped::Why::kPeerGone);
    }
    if (fds[0].revents != 0) return true;
    if (count == 0) return false;
  }
}

}  // namespace

// One connection, from dialling to closing.
class Connection {
 public:
  explicit Connection(const ClientOptions& options) : options_(options) {
    dial();
    check_hello();
  }

  void send(std::string_view method, const OrderedJson& params) {
    std::string line = encode_request(method, params);
    if (line.size() > kMaxLineBytes) {
      throw Error(Code::kInvalidArgument, fmt::format("the request has {} bytes, the limit is {}",
                                                      line.size(), kMaxLineBytes));
    }
    line.push_back('\n');
    std::string_view rest = line;
    for (;;) {
      // A daemon that refuses a request before its end has said why: receive() finds it.
      if (write_from(fd_.get(), rest) != WriteStatus::kWouldBlock) return;
      wait_for(options_, fd_.get(), POLLOUT, -1);
    }
  }

  // Throws the error that the line carries, if it does. Without a time limit it never gives
  // nothing.
  std::optional<Reply> receive(int timeout_ms) {
    std::optional<std::string> line;
    return take(next_line(timeout_ms, line), line);
  }

  void read() { is_closed_ = read_into(fd_.get(), reader_) == ReadStatus::kClosed; }

  std::optional<Reply> next_read() {
    std::optional<std::string> line = reader_.next();
    if (!line && !is_closed_) return std::nullopt;
    return take(line ? ReadStatus::kData : ReadStatus::kClosed, line);
  }

  Reply receive() { return std::move(*receive(-1)); }

  int fd() const { return fd_.get(); }

 private:
  std::optional<Reply> take(ReadStatus status, const std::optional<std::string>& line) {
    if (status == ReadStatus::kWouldBlock) return std::nullopt;
    if (status == ReadStatus::kClosed) {
      throw Error(Code::kUnavailable,
                  num_replies_ > 0 ? std::string("the daemon went away in the middle of the answer")
                                   : fmt::format("the daemon at {} went away without an answer",
                                                 options_.socket_path));
    }
    ++num_replies_;
    Reply reply = decode_reply(*line);
    if (reply.error) throw Error(*reply.error);
    return reply;
  }

  void dial() {
    const auto deadline = Clock::now() + std::chrono::milliseconds(options_.hello_timeout_ms);
    while (!fd_) {
      try {
        fd_ = connect_unix(options_.socket_path);
      } catch (const Error& error) {
        if (error.code() != Code::kOverloaded || Clock::now() > deadline) throw;
        wait_for(options_, -1, 0, kRetryMs);
      }
    }
    const Peer peer = peer_of(fd_.get());
    if (!may_trust(peer, options_.socket_path)) {
      throw Error(
          Code::kUnavailable,
          fmt::format("the daemon at {} belongs to user {}, not to user {}: nothing is sent "
                      "to it; run the command as that user",
                      options_.socket_path, peer.uid, ::geteuid()));
    }
    pid_ = peer.pid;
  }

  void check_hello() {
    std::optional<std::string> line;
    const ReadStatus status = next_line(options_.hello_timeout_ms, line);
    if (status == ReadStatus::kWouldBlock) {
      throw Error(
          Code::kUnavailable,
          fmt::format("the daemon at {} (pid {}) did not say hello within {} ms; is it stuck",
                      options_.socket_path, pid_, options_.hello_timeout_ms));
    }
    if (status == ReadStatus::kClosed) {
      throw Error(Code::kUnavailable, fmt::format("the daemon at {} closed the connection at once",
                                                  options_.socket_path));
    }
    const Hello hello = decode_hello(*line);
    if (hello.protocol != kProtocolVersion) {
      throw Error(Code::kUnsupported,
                  fmt::format("the daemon at {} is version {} and speaks protocol {}, this tgi is "
                              "version {} and speaks protocol {}; stop the daemon (kill {}) and "
                              "start one of the same version",
                              options_.socket_path, hello.version, hello.protocol, kVersion,
                              kProtocolVersion, pid_));
    }
  }

  // kData: `line` is one. kWouldBlock: the time is up. The time is for the whole line.
  ReadStatus next_line(int timeout_ms, std::optional<std::string>& line) {
    for (;;) {
      line = reader_.next();
      if (line) return ReadStatus::kData;
      // What was there has been read: asking again would cost a call per line for nothing.
      if (drained_ && timeout_ms != 0 && !wait_for(options_, fd_.get(), POLLIN, timeout_ms)) {
        return ReadStatus::kWouldBlock;
      }
      const ReadStatus status = read_into(fd_.get(), reader_);
      if (status == ReadStatus::kClosed) return status;
      drained_ = true;
      if (status == ReadStatus::kWouldBlock && timeout_ms == 0) return status;
    }
  }

  const ClientOptions& options_;
  UniqueFd fd_;
  LineReader reader_;
  bool is_closed_ = false;  // read() met the end
  bool drained_ = false;    // the last read took what there was, or nearly
  pid_t pid_ = 0;
  int64_t num_replies_ = 0;
};

namespace {

[[noreturn]] void fail_reply(std::string_view expected) {
  throw Error(Code::kInternal,
              fmt::format("the daemon answered with another kind of line than {}", expected));
}

}  // namespace

Exchange::Exchange(ClientOptions options, std::string_view method, const OrderedJson& params)
    : options_(std::make_unique<ClientOptions>(std::move(options))),
      connection_(std::make_unique<Connection>(*options_)) {
  connection_->send(method, params);
}

Exchange::Exchange(Exchange&&) noexcept = default;
Exchange::~Exchange() = default;

std::optional<Reply> Exchange::next(int timeout_ms) {
  return connection_->receive(timeout_ms);
}

std::optional<Reply> Exchange::try_next() {
  return connection_->receive(0);
}

void Exchange::read() {
  connection_->read();
}

std::optional<Reply> Exchange::next_read() {
  return connection_->next_read();
}

int Exchange::fd() const {
  return connection_->fd();
}

OrderedJson Client::call(std::string_view method, const OrderedJson& params) const {
  Connection connection(options_);
  connection.send(method, params);
  Reply reply = connection.receive();
  if (!reply.result) fail_reply("a result");
  return std::move(*reply.result);
}

DoneEvent Client::generate(const GenerateRequest& request, const OnToken& on_token) const {
  Connection connection(options_);
  connection.send(kGenerate, to_json(request));
  for (;;) {
    Reply reply = connection.receive();
    if (reply.done) return std::move(*reply.done);
    if (!reply.token) fail_reply("a token or the end");
    on_token(*reply.token);
  }
}

void Client::pause(int milliseconds) const {
  wait_for(options_, -1, 0, milliseconds);
}

}  // namespace tgi::ipc
