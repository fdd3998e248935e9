// The HTTP side: accepts connections, gives each a thread, and turns bytes into Requests and
// Responses back into bytes with an HTTP library (http_library.h). Knows no route and no model.
//
// A connection has a thread of its own, so no new one ever waits behind open streams. Past
// max_connections a client is told 429 at once.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>

#include "base/unique_fd.h"
#include "cmd/http/connection.h"
#include "cmd/http/message.h"
#include "cmd/http/turned_away.h"

namespace tgi::http {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 0;  // 0: any that is free
  int max_connections = 4096;
  size_t max_body_bytes = 2'000'000;
  ConnectionLimits connection;
};

// What answers. Both are called on the thread of the connection, any number of them at once, and
// must not throw.
class RequestHandler {
 public:
  virtual ~RequestHandler() = default;

  // Before the body is read. An answer ends the request there; the body is then never read.
  virtual std::optional<Response> on_headers(const Request& request) = 0;

  virtual Response on_request(const Request& request) = 0;

  // What to answer to a request that is refused by its form alone: malformed, too large, too slow.
  // `request` holds only what could be read.
  virtual Response on_refused(const Request& request, int status, const std::string& reason) = 0;
};

class HttpLibrary;

// Throws what an HttpServer would throw for its address now. It listens to nothing: a client that
// comes before the server is there is refused.
void try_address(const ServerOptions& options);

class HttpServer {
 public:
  // Binds and listens. Throws kInvalidArgument when the address is not available. `handler` must
  // outlive it.
  HttpServer(const ServerOptions& options, RequestHandler& handler);
  ~HttpServer();

  int port() const { return port_; }

  // Accepts until close_listener() is called from another thread, or `stop_fd` is readable.
  void run(int stop_fd);

  // Idle connections are closed from now on, and each that answers a request afterwards.
  void close_idle();

  // Waits until no connection is left; false when there still are some after `timeout`.
  bool wait_until_empty(std::chrono::milliseconds timeout);

  // Cuts all connections off.
  void shutdown_all();

 private:
  void accept_one();
  void serve(UniqueFd socket);
  void turn_away(UniqueFd socket, const std::string& reason);

  const ServerOptions options_;
  RequestHandler& handler_;
  std::unique_ptr<HttpLibrary> library_;
  int port_ = 0;
  TurnedAway turned_away_;      // of the acceptor's thread
  bool lacks_threads_ = false;  // of the acceptor's thread: the last connection got none
  UniqueFd idle_stop_;          // eventfd: readable after close_idle
  std::mutex mutex_;
  std::condition_variable emptied_;
  std::unordered_set<int> connections_;  // guarded by mutex_: descriptors of live connections
  int num_threads_ = 0;                  // guarded by mutex_: that serve one
};

}  // namespace tgi::http
