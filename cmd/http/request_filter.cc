#include "cmd/http/request_filter.h"

#include <strings.h>

#include <algorithm>
#include <climits>
#include <cstdlib>

namespace tgi::http {
namespace {

constexpr size_t kMostOfLine = 32;  // that is looked at
constexpr size_t kMostTrailerBytes = 8192;

}  // namespace

ssize_t RequestFilter::read(char* to, size_t size) {
  if (size == 0) return 0;
  switch (state_) {
    case State::kHead:
      return read_head(to);
    case State::kChunkSize:
      return read_chunk_size(to);
    case State::kTrailer:
      return read_trailer(to);
    case State::kPlain:
    case State::kChunk:
      break;
  }
  if (state_ == State::kChunk) size = std::min(size, left_in_chunk_);
  const ssize_t count = connection_.read(to, size);
  if (state_ == State::kChunk && count > 0) {
    left_in_chunk_ -= static_cast<size_t>(count);
    if (left_in_chunk_ == 0) state_ = State::kChunkSize;
  }
  return count;
}

// A header of the name Range gets another, which means nothing.
ssize_t RequestFilter::read_head(char* to) {
  if (owes_colon_) {
    owes_colon_ = false;
    *to = ':';
    return 1;
  }
  const ssize_t count = connection_.read(to, 1);
  if (count <= 0) return count;
  if (*to == '\n') {
    line_.clear();
  } else if (*to == ':' && ::strcasecmp(line_.c_str(), "Range") == 0) {
    owes_colon_ = true;
    *to = '-';
    line_ += '-';
  } else if (line_.size() < kMostOfLine) {
    line_ += *to;
  }
  return 1;
}

ssize_t RequestFilter::read_chunk_size(char* to) {
  const ssize_t count = connection_.read(to, 1);
  if (count <= 0) return count;
  if (*to != '\n') {
    const bool says_nothing = *to == '0' && line_ == "0";
    if (line_.size() < kMostOfLine && !says_nothing) line_ += *to;
    return 1;
  }
  // As the library reads it, which looks for what is wrong with it.
  const unsigned long size = std::strtoul(line_.c_str(), nullptr, 16);
  line_.clear();
  constexpr size_t kLineEnd = 2;
  left_in_chunk_ = std::min<unsigned long>(size, ULONG_MAX - kLineEnd) + kLineEnd;
  state_ = size == 0 ? State::kTrailer : State::kChunk;
  return 1;
}

// Only the empty line behind the fields is passed on.
ssize_t RequestFilter::read_trailer(char* to) {
  for (size_t i = 0; i < kMostTrailerBytes; ++i) {
    const ssize_t count = connection_.read(to, 1);
    if (count <= 0) return count;
    const bool is_empty_line = *to == '\n' && (line_.empty() || line_ == "\r");
    if (is_empty_line) state_ = State::kPlain;
    const bool may_end = *to == '\r' && line_.empty();
    if (*to == '\n') {
      line_.clear();
    } else if (line_.size() < kMostOfLine) {
      line_ += *to;
    }
    if (is_empty_line || may_end) return 1;
  }
  return -1;
}

}  // namespace tgi::http
