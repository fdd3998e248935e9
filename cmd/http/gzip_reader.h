// Undoes gzip (RFC 1952) of bytes that come in pieces: of one member, or of several, one after the
// other. Belongs to one thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

struct z_stream_s;

namespace tgi::http {

class GzipReader {
 public:
  GzipReader();
  ~GzipReader();

  // Gives what these bytes come to to `write`, which says whether it wants more. False: it does
  // not, or they are no gzip.
  bool read(std::string_view bytes, const std::function<bool(std::string_view)>& write);
  // Whether there was a member, and none is broken off.
  bool is_whole() const { return state_ == State::kBetween; }

 private:
  enum class State { kBegin, kWithin, kBetween };

  const std::unique_ptr<z_stream_s> stream_;
  State state_ = State::kBegin;
};

}  // namespace tgi::http
