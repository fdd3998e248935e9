// What one rendering of a template may use. A chat template comes with a model and the conversation
// with a request, so neither may be able to hang or exhaust the process: every loop, copy and
// comparison of the interpreter is charged here, in one currency (steps).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tgi::jinja {

struct Limits {
  size_t max_source_bytes = size_t{1} << 20;
  int max_nesting = 128;      // of blocks in blocks and of parts in one expression, when parsing
  int max_macro_depth = 100;  // macros, call blocks and recursive loops inside each other
  int max_eval_depth = 1500;  // nodes under evaluation at once: bounds the use of the C++ stack
  int64_t max_steps = 50'000'000;  // nodes evaluated, elements visited, 16 bytes of text built
  size_t max_text_bytes = size_t{64} << 20;  // of the output and of any one string
  size_t max_range = 100'000;                // elements of range(), as in jinja2's sandbox
};

// Throws kInvalidArgument / kUnsupported; the interpreter puts the line before the message.
[[noreturn]] void fail(const std::string& message);
[[noreturn]] void fail_unsupported(const std::string& message);

// Belongs to one rendering, hence to one thread.
class Budget {
 public:
  explicit Budget(const Limits& limits)
      : steps_left_(limits.max_steps),
        max_steps_(limits.max_steps),
        max_text_bytes_(limits.max_text_bytes) {}

  void charge(size_t steps) {
    steps_left_ -= static_cast<int64_t>(steps);
    if (steps_left_ < 0) fail_steps();
  }

  // For a string of `bytes` that is about to be built. Throws when it would be too long.
  void charge_text(size_t bytes) {
    if (bytes > max_text_bytes_) fail_text(bytes);
    charge(bytes / 16 + 1);
  }

  // For `count` elements that are about to be copied. Throws when they can't be afforded, before
  // memory is taken.
  void charge_elements(size_t count) {
    if (count > static_cast<size_t>(max_steps_)) fail_steps();
    charge(2 * count);
  }

  size_t max_text_bytes() const { return max_text_bytes_; }

 private:
  [[noreturn]] void fail_steps() const;
  [[noreturn]] void fail_text(size_t bytes) const;

  int64_t steps_left_;
  int64_t max_steps_;
  size_t max_text_bytes_;
};

}  // namespace tgi::jinja
