#include "daemon/jobs.h"

#include <exception>

#include "base/log.h"

namespace tgi::daemon {

Jobs::Jobs(int32_t num_threads) {
  for (int32_t i = 0; i < num_threads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { run(stop); });
  }
}

Jobs::~Jobs() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

void Jobs::post(std::function<void()> job, std::function<void()> dropped) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_dropping_) {
      queue_.push_back({std::move(job), std::move(dropped)});
      posted_.notify_one();
      return;
    }
  }
  if (dropped) dropped();
}

void Jobs::drop_waiting() {
  std::deque<Job> waiting;
  {
    const std::lock_guard lock(mutex_);
    is_dropping_ = true;
    waiting.swap(queue_);
  }
  for (const Job& job : waiting) {
    if (job.dropped) job.dropped();
  }
}

void Jobs::run(const std::stop_token& stop) {
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      posted_.wait(lock, stop, [this] { return !queue_.empty(); });
      if (queue_.empty()) return;  // stopped, and nothing left to do
      job = std::move(queue_.front());
      queue_.pop_front();
    }
    try {
      job.run();
    } catch (const std::exception& error) {
      log_error("a job threw", {{"error", error.what()}});
    }
  }
}

}  // namespace tgi::daemon
