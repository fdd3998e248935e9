// A small HTTP server for tests and benches of clients: one thread, epoll, answers made of pieces
// that are sent at told times. It does no work of its own, so that what is measured is the client.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace tgi {

struct SseRequest {
  std::string method;
  std::string path;
  std::string headers;  // lower case, lines ended by "\r\n"
  std::string body;
};

// The first piece is sent at once, each next one `gap` after the one before (0: as fast as the
// client takes them).
struct SseReply {
  int status = 200;
  std::string headers = "content-type: text/event-stream\r\n";
  std::vector<std::string> pieces;
  // Instead of many pieces: `repeated` so many times before `pieces`.
  std::string repeated;
  size_t num_repeated = 0;
  std::chrono::nanoseconds gap{0};
  bool cut = false;  // close without the end that HTTP asks for
};

class SseServer {
 public:
  // Called in the server's thread, or with run() in the caller's.
  using Handler = std::function<SseReply(const SseRequest&)>;

  explicit SseServer(Handler handler, int port = 0);  // on 127.0.0.1
  ~SseServer();

  int port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  void start();  // serves in a thread until the end
  void run();    // serves here until stop()
  void stop();

  std::vector<SseRequest> requests() const;  // with start() only: those that came

 private:
  struct Connection;

  void accept_all();
  bool read_from(Connection& connection);
  void begin_reply(Connection& connection);
  bool advance(Connection& connection);
  bool flush(Connection& connection);
  void drop(int fd);
  int next_timeout_ms() const;

  const Handler handler_;
  UniqueFd listener_;
  UniqueFd epoll_;
  UniqueFd wake_;
  int port_ = 0;
  std::map<int, std::unique_ptr<Connection>> connections_;
  std::multimap<std::chrono::steady_clock::time_point, int> due_;  // next piece, by connection
  std::atomic<bool> stopping_ = false;
  bool keep_requests_ = false;
  mutable std::mutex mutex_;
  std::vector<SseRequest> requests_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace tgi
