// The asking end of the protocol. A Client holds no connection: each call dials, checks that the
// daemon is the user's own and speaks the same protocol, asks one thing, and closes. Safe to use
// from several threads at once.
//
// Every wait also watches `cancel_fd` and `output_fd`; when one of them fires the connection is
// closed, which cancels the request in the daemon, and Stopped is thrown. A signalfd or
// the read end of a pipe makes a good cancel_fd: it is never read here, so it stops all calls that
// are under way.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "ipc/protocol.h"

namespace tgi::ipc {

struct ClientOptions {
  std::string socket_path;
  int cancel_fd = -1;  // readable: stop (optional)
  int peer_fd = -1;    // a connected socket: stop when its other end has closed (optional)
  int output_fd = -1;  // where the answer goes: stop when its reader is gone (optional)
  int hello_timeout_ms = 10'000;
};

// Stopped from this side, unlike a cancellation that the daemon reports.
class Stopped : public Error {
 public:
  enum class Why { kCancelFd, kOutputGone, kPeerGone };

  explicit Stopped(Why why)
      : Error(Code::kCancelled,
              why == Why::kCancelFd   ? "cancelled"
              : why == Why::kPeerGone ? "the client is gone"
                                      : "nobody reads the output any more"),
        why_(why) {}

  Why why() const { return why_; }

 private:
  Why why_;
};

class Connection;

// One request under way, from dialling to the last reply. Belongs to one thread at a time.
// Destroying it closes the connection, which cancels the request in the daemon.
class Exchange {
 public:
  Exchange(ClientOptions options, std::string_view method, const OrderedJson& params);
  Exchange(Exchange&&) noexcept;
  ~Exchange();

  // The next reply, or nothing when `timeout_ms` (-1: no limit) is up. Throws what the daemon
  // answers, kUnavailable when it goes away, Stopped.
  std::optional<Reply> next(int timeout_ms);

  // The next of the replies that have arrived: for polling several exchanges at once, on fd() for
  // POLLIN.
  std::optional<Reply> try_next();

  // The same in two steps: read() takes in what is there with one call to the system, next_read()
  // gives the replies of what was taken in, and at its end what ended it.
  void read();
  std::optional<Reply> next_read();
  int fd() const;

 private:
  std::unique_ptr<ClientOptions> options_;  // the connection refers to it
  std::unique_ptr<Connection> connection_;
};

class Client {
 public:
  using OnToken = std::function<void(const TokenEvent&)>;

  explicit Client(ClientOptions options) : options_(std::move(options)) {}

  // The result of one method other than generate. Throws what the daemon answers, kUnavailable when
  // it is not there or goes away, kUnsupported when it speaks another protocol.
  OrderedJson call(std::string_view method,
                   const OrderedJson& params = OrderedJson::object()) const;

  // With request.stream, `on_token` gets every token event in order before this returns. What
  // `on_token` throws closes the connection and comes out.
  DoneEvent generate(const GenerateRequest& request, const OnToken& on_token) const;

  Exchange open(std::string_view method, const OrderedJson& params) const {
    return {options_, method, params};
  }

  Status status() const { return status_from_json(call(kStatus)); }

  // Sleeps; throws Stopped like every wait.
  void pause(int milliseconds) const;

  const std::string& socket_path() const { return options_.socket_path; }

 private:
  ClientOptions options_;
};

}  // namespace tgi::ipc
