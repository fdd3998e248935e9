// Speaks the daemon's side of ipc/protocol.h without an engine: tokens come at a given rate and
// carry stamps. What a gateway adds can then be measured without a model's noise. One thread of its
// own serves all sessions with epoll; the public functions are for the thread that made it.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/unique_fd.h"
#include "ipc/line_socket.h"
#include "ipc/protocol.h"

namespace tgi {

struct Pace {
  size_t num_streams = 1;    // tokens begin when so many requests are there
  double tokens_per_s = 50;  // of each stream; 0: as fast as its socket takes them
  bool in_step = false;      // all streams get their token at once, as from one batch
};

class StandInDaemon {
 public:
  explicit StandInDaemon(const std::string& socket_path);
  ~StandInDaemon();

  // For the streams that come from now on. REQUIRES: none is under way. `on_start` is called on the
  // daemon's thread when all of them are there, just before the first token.
  void set_pace(const Pace& pace, std::function<void()> on_start);

 private:
  struct Session;

  void run();
  void accept_all();
  void on_readable(Session& session);
  void on_request(Session& session, const std::string& line);
  void on_generate(Session& session, const ipc::OrderedJson& params);
  void start_if_all_came();
  void write_due();
  void write_token(Session& session);
  void fill(Session& session);
  void send(Session& session, std::string_view line);
  void flush(Session& session);
  void watch(Session& session, bool writable);
  void close(Session& session);

  ipc::UnixListener listener_;
  UniqueFd epoll_;
  UniqueFd stop_;  // eventfd
  std::mutex mutex_;
  Pace next_pace_;                       // guarded by mutex_
  std::function<void()> next_on_start_;  // guarded by mutex_
  // The rest belongs to the thread.
  Pace pace_;
  std::function<void()> on_start_;                              // null once it was called
  std::unordered_map<int, std::unique_ptr<Session>> sessions_;  // by descriptor
  std::vector<Session*> waiting_;                               // for the others to come
  struct Due {
    int64_t at_ns;
    int fd;
    uint64_t session_id;  // descriptors are used again
    bool operator>(const Due& other) const { return at_ns > other.at_ns; }
  };
  std::vector<Due> due_;  // a heap, the earliest first
  uint64_t num_sessions_ = 0;
  std::string token_head_;  // of an event's line, until the stamp
  std::string token_tail_;
  std::jthread thread_;
};

}  // namespace tgi
