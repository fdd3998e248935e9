// The events of one answer that is made in the background, from the first on, for whoever asks for
// them: while they are written, or later. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/http/message.h"

namespace tgi::http {

class EventLog {
 public:
  // `num_bytes`: of all that is kept, in which these count too.
  explicit EventLog(std::shared_ptr<std::atomic<int64_t>> num_bytes);
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  void add(std::string_view event);
  void end();  // no more will come; may be called again

  struct Part {
    std::string bytes;
    size_t next = 0;     // the event after them
    bool is_all = true;  // and there will be none
  };
  // From the event of that number on, as many as are there and make up no more than some 64 KiB.
  Part read(size_t first) const;

  int64_t num_bytes() const;

  // Writes from the event of that number on until the end. False: the client, whose connection is
  // `peer_fd`, is gone.
  bool follow(size_t first, int peer_fd, BodyWriter& body);

 private:
  // Whether there is more than the events before that number, or an end, within the time.
  bool wait_beyond(size_t first, std::chrono::milliseconds timeout) const;

  const std::shared_ptr<std::atomic<int64_t>> all_bytes_;
  mutable std::mutex mutex_;
  std::vector<std::string> events_;  // guarded by mutex_, as all below
  int64_t num_bytes_ = 0;
  bool has_ended_ = false;
  mutable std::condition_variable changed_;
};

// What is written to it becomes events of a log: one for each call.
class LogWriter final : public BodyWriter {
 public:
  explicit LogWriter(EventLog& log) : log_(log) {}
  bool write(std::string_view bytes) override {
    log_.add(bytes);
    return true;
  }

 private:
  EventLog& log_;
};

}  // namespace tgi::http
