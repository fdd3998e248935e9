// What one rendering of a template may use. A chat template comes with a model and the conversation
// with a request, so neither may be able to hang or exhaust the process: the interpreter charges
// its work here (so that the clock is looked at often enough) and asks before it takes much memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace tgi::jinja {

struct Limits {
  size_t max_source_bytes = size_t{1} << 20;
  int max_nesting = 128;      // of blocks in blocks and of parts in one expression, when parsing
  int max_macro_depth = 100;  // macros, call blocks and recursive loops inside each other
  int max_eval_depth = 1500;  // nodes under evaluation at once: bounds the use of the C++ stack
  double max_seconds = 5;     // of processor time: another's load doesn't make a rendering fail
  size_t max_memory_bytes = size_t{512} << 20;  // of all values and texts at one time
  size_t max_text_bytes = size_t{64} << 20;     // of the output and of any one string
  size_t max_range = 100'000;                   // elements of range(), as in jinja2's sandbox
  // Nodes evaluated, elements visited, 16 bytes of text built. Bounded where a rendering must end
  // in the same way every time; else time is the limit, since what a step costs differs too much.
  int64_t max_steps = std::numeric_limits<int64_t>::max();
};

// Throws kInvalidArgument / kUnsupported; the interpreter puts the line before the message.
[[noreturn]] void fail(const std::string& message);
[[noreturn]] void fail_unsupported(const std::string& message);

// The bytes of one value on the heap, counted together for the thread they live on. A rendering
// makes its values and lets them go on one thread.
class MemoryCount {
 public:
  explicit MemoryCount(size_t bytes) : bytes_(static_cast<int64_t>(bytes)) { live_ += bytes_; }
  MemoryCount(const MemoryCount& other) : bytes_(other.bytes_) { live_ += bytes_; }
  MemoryCount& operator=(const MemoryCount& other) {
    live_ += other.bytes_ - bytes_;
    bytes_ = other.bytes_;
    return *this;
  }
  ~MemoryCount() { live_ -= bytes_; }

  void add(size_t bytes) {
    bytes_ += static_cast<int64_t>(bytes);
    live_ += static_cast<int64_t>(bytes);
  }
  void remove(size_t bytes) {
    bytes_ -= static_cast<int64_t>(bytes);
    live_ -= static_cast<int64_t>(bytes);
  }
  static int64_t live() { return live_; }

 private:
  inline static thread_local int64_t live_ = 0;

  int64_t bytes_;
};

// Belongs to one rendering, hence to one thread.
class Budget {
 public:
  explicit Budget(const Limits& limits);

  void charge(size_t steps) {
    steps_ += static_cast<int64_t>(steps);
    if (steps_ >= next_look_) look();
  }

  // For a string of `bytes` that is about to be built. Throws when it would be too long.
  void charge_text(size_t bytes) { charge_appended(bytes, bytes); }

  // For `bytes` that are about to be appended to a string, which has `total` afterwards.
  void charge_appended(size_t bytes, size_t total) {
    if (total > limits_.max_text_bytes) fail_text(total);
    check_memory(total);
    charge(bytes / 16 + 1);
  }

  // For `count` elements that are about to be copied. Throws when they can't be afforded, before
  // memory is taken.
  void charge_elements(size_t count) {
    check_memory(count > limits_.max_memory_bytes ? count : count * kElementBytes);
    charge(2 * count);
  }

  // Throws when `bytes` more would be too much.
  void check_memory(size_t bytes) const {
    if (used() + static_cast<int64_t>(bytes) > static_cast<int64_t>(limits_.max_memory_bytes)) {
      fail_memory();
    }
  }

  size_t max_text_bytes() const { return limits_.max_text_bytes; }

 private:
  static constexpr size_t kElementBytes = 32;  // sizeof(Value)

  int64_t used() const { return MemoryCount::live() - live_before_; }
  void look();
  [[noreturn]] void fail_text(size_t bytes) const;
  [[noreturn]] void fail_memory() const;

  const Limits& limits_;
  int64_t steps_ = 0;
  int64_t next_look_ = 0;
  double started_;
  int64_t live_before_;
};

}  // namespace tgi::jinja
