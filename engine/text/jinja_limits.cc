#include "engine/text/jinja_limits.h"

#include <fmt/format.h>

#include "base/error.h"

namespace tgi::jinja {

void fail(const std::string& message) {
  throw Error(Code::kInvalidArgument, message);
}

void fail_unsupported(const std::string& message) {
  throw Error(Code::kUnsupported, message);
}

void Budget::fail_steps() const {
  fail(fmt::format("the template does too much work: more than {} steps; is there an endless loop?",
                   max_steps_));
}

void Budget::fail_text(size_t bytes) const {
  fail(fmt::format("a text of {} bytes is too long: at most {} bytes are allowed", bytes,
                   max_text_bytes_));
}

}  // namespace tgi::jinja
