#include "cmd/bench/load_driver.h"

#include <sys/resource.h>

#include <algorithm>
#include <optional>

namespace tgi::bench {
namespace {

constexpr double kProgressEveryS = 0.25;

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class Driver {
 public:
  Driver(const LoadPlan& plan, Transport& transport, const OnProgress& on_progress)
      : plan_(plan), transport_(transport), on_progress_(on_progress) {}

  LoadResult run() {
    const double cpu_begin = cpu_seconds();
    begin_ = BenchClock::now();
    transport_.begin();
    next_ = plan_.source(0);
    while (!transport_.interrupted()) {
      start_due();
      if (num_running_ == 0 && !more_to_come()) break;
      num_running_ -= wait_for_something();
      tell();
    }
    result_.interrupted = transport_.interrupted();
    if (result_.interrupted) transport_.cancel_all();
    result_.wall_s = result_.interrupted ? now_s() : last_end_s();
    result_.cpu_s = cpu_seconds() - cpu_begin;
    return std::move(result_);
  }

 private:
  double now_s() const { return std::chrono::duration<double>(BenchClock::now() - begin_).count(); }

  bool more_to_come() const {
    return next_ && !(plan_.start_for_s && now_s() >= *plan_.start_for_s);
  }

  bool has_room() const {
    return plan_.max_running == 0 || static_cast<int64_t>(num_running_) < plan_.max_running;
  }

  void start_due() {
    while (has_room() && more_to_come() && !transport_.interrupted()) {
      const double now = now_s();
      if (plan_.open_loop && next_->at_s > now) return;
      RequestRecord& record = result_.records.emplace_back();
      record.planned_s = plan_.open_loop ? next_->at_s : now;
      record.start_s = now;
      record.num_wanted_prompt_tokens = num_prompt_tokens(*next_);
      record.num_wanted_output_tokens = next_->num_output_tokens;
      ++num_running_;
      transport_.start(*next_, record);
      next_ = plan_.source(result_.records.size());
      // A burst of starts must not hold up the answers that come meanwhile.
      if (result_.records.size() % kBurst == 0) return;
    }
  }

  size_t wait_for_something() {
    double until = std::max(last_told_s_, 0.0) + kProgressEveryS;
    if (more_to_come() && has_room()) {
      until = plan_.open_loop ? std::min(until, next_->at_s) : 0;
    }
    const auto when = begin_ + std::chrono::duration_cast<BenchClock::duration>(
                                   std::chrono::duration<double>(std::max(until, 0.0)));
    const size_t num_done = transport_.wait(when).size();
    num_finished_ += num_done;
    return num_done;
  }

  void tell() {
    const double now = now_s();
    if (now < last_told_s_ + kProgressEveryS) return;
    last_told_s_ = now;
    if (on_progress_) {
      on_progress_({.records = result_.records,
                    .now_s = now,
                    .num_running = num_running_,
                    .num_finished = num_finished_});
    }
  }

  double last_end_s() const {
    double last = 0;
    for (const RequestRecord& record : result_.records) last = std::max(last, record.end_s);
    return last;
  }

  static constexpr size_t kBurst = 32;

  const LoadPlan& plan_;
  Transport& transport_;
  const OnProgress& on_progress_;
  BenchClock::time_point begin_;
  std::optional<PlannedRequest> next_;
  LoadResult result_;
  size_t num_running_ = 0;
  size_t num_finished_ = 0;
  double last_told_s_ = -kProgressEveryS;  // at once, so that short loads are seen too
};

}  // namespace

LoadResult run_load(const LoadPlan& plan, Transport& transport, const OnProgress& on_progress) {
  return Driver(plan, transport, on_progress).run();
}

}  // namespace tgi::bench
