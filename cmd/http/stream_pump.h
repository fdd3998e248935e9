// Streams of events, many on one thread: a stream's own thread sleeps while a pump reads what the
// daemon says for all of them and writes it to their clients. A token then costs no change of
// threads, and a step of the daemon that has a token for each of 200 streams wakes one thread and
// not 200.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <vector>

#include "base/unique_fd.h"
#include "cmd/http/generation.h"
#include "cmd/http/message.h"
#include "cmd/http/sse.h"

namespace tgi::http {

// What a stream says. The functions may throw ApiError, which ends it with on_error, and
// ClientGone; start is called on the connection's thread, the others on a pump's.
struct StreamTask {
  std::shared_ptr<Scope> scope;
  std::function<std::shared_ptr<Generation>()> start;  // asks the daemon
  std::function<void(Generation::Event& event, EventWriter& events)> on_event;
  std::function<void(EventWriter& events)> on_end;
  std::function<void(const ApiError& error, EventWriter& events)> on_error;
  const StreamFraming* framing = &kServerSentEvents;
};

// 200, and the stream of `task`.
Response stream_response(StreamTask task, int64_t num_prompt_characters);

class StreamPump {
 public:
  // `cut_off_fd` becomes readable when what runs must end.
  StreamPump(int cut_off_fd, std::chrono::milliseconds write_timeout);
  ~StreamPump();  // REQUIRES: no run() is under way

  // Returns when the stream is over. `client_fd` takes the bytes of a chunked body.
  // False: the client left or took nothing for too long, its bytes are cut off somewhere.
  bool run(const StreamTask& task, std::shared_ptr<Generation> generation, int client_fd);

 private:
  class Job;

  void loop();
  void take_new_jobs();
  void look_at_clock();
  void settle(Job& job);
  void make_ready(Job& job);
  bool watch(int fd, uint32_t events, Job* job, int operation) const;

  const std::chrono::milliseconds write_timeout_;
  const int cut_off_fd_;
  const UniqueFd epoll_;
  const UniqueFd wake_;  // eventfd: new jobs, or the end
  std::mutex mutex_;
  std::vector<Job*> new_jobs_;  // guarded by mutex_
  bool ending_ = false;         // guarded by mutex_
  // Used by the pump's thread alone:
  std::unordered_set<Job*> jobs_;
  std::vector<Job*> ready_;
  bool cut_off_ = false;
  std::chrono::steady_clock::time_point last_look_;
  std::jthread thread_;
};

// A few of them; streams are dealt out in turn.
class StreamPumps {
 public:
  StreamPumps(int count, int cut_off_fd, std::chrono::milliseconds write_timeout);
  StreamPump& next() { return *pumps_[turn_.fetch_add(1) % pumps_.size()]; }

 private:
  std::vector<std::unique_ptr<StreamPump>> pumps_;
  std::atomic<size_t> turn_{0};
};

}  // namespace tgi::http
