#include "engine/text/jinja/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/error.h"

namespace tgi::jinja {
namespace {

constexpr int64_t kStepsBetweenLooks = 1 << 16;  // about a millisecond

double thread_seconds() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

void fail(const std::string& message) {
  throw Error(Code::kInvalidArgument, message);
}

void fail_unsupported(const std::string& message) {
  throw Error(Code::kUnsupported, message);
}

Budget::Budget(const Limits& limits)
    : limits_(limits),
      next_look_(std::min(kStepsBetweenLooks, limits.max_steps)),
      started_(thread_seconds()),
      live_before_(MemoryCount::live()) {}

void Budget::look() {
  if (steps_ > limits_.max_steps) {
    fail(
        fmt::format("the template does too much work: more than {} steps; is there an endless "
                    "loop?",
                    limits_.max_steps));
  }
  check_memory(0);
  if (thread_seconds() - started_ > limits_.max_seconds) {
    fail(
        fmt::format("the template does too much work: more than {} seconds of processor time; is "
                    "there an endless loop?",
                    limits_.max_seconds));
  }
  next_look_ = steps_ + kStepsBetweenLooks;
  // One past the limit is too many, not the limit itself.
  if (limits_.max_steps < next_look_) next_look_ = limits_.max_steps + 1;
}

void Budget::fail_text(size_t bytes) const {
  fail(fmt::format("a text of {} bytes is too long: at most {} bytes are allowed", bytes,
                   limits_.max_text_bytes));
}

void Budget::fail_memory() const {
  fail(fmt::format("the template needs too much memory: at most {} bytes are allowed at one time",
                   limits_.max_memory_bytes));
}

}  // namespace tgi::jinja
