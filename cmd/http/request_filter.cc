#include "cmd/http/request_filter.h"

#include <strings.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace tgi::http {
namespace {

constexpr size_t kMostOfLine = 32;  // that is looked at
constexpr size_t kMostTrailerBytes = 8192;
constexpr size_t kMostChunkLineBytes = 8192;
constexpr size_t kLargestChunk = SIZE_MAX >> 4;  // no server has the memory for it

}  // namespace

bool ChunkLine::take(char byte) {
  if (++num_bytes_ > kMostChunkLineBytes) return false;
  const bool is_blank = byte == ' ' || byte == '\t';
  switch (part_) {
    case Part::kSize:
      if (std::isxdigit(static_cast<unsigned char>(byte)) != 0) {
        if (size_ > kLargestChunk) return false;
        const std::array<char, 2> digit = {byte, '\0'};
        size_ = size_ * 16 + std::strtoul(digit.data(), nullptr, 16);
        return true;
      }
      if (num_bytes_ == 1) return false;
      [[fallthrough]];
    case Part::kBlanks:
      part_ = byte == ';' ? Part::kExtension : byte == '\r' ? Part::kReturn : Part::kBlanks;
      return is_blank || part_ != Part::kBlanks;
    case Part::kExtension:
      if (byte == '\r') part_ = Part::kReturn;
      return byte == '\r' || is_blank || std::iscntrl(static_cast<unsigned char>(byte)) == 0;
    case Part::kReturn:
      part_ = Part::kEnded;
      return byte == '\n';
    case Part::kEnded:
      break;
  }
  return false;
}

ssize_t RequestFilter::read(char* to, size_t size) {
  if (size == 0) return 0;
  if (!problem_.empty()) return -1;
  switch (state_) {
    case State::kHead:
      return read_head(to);
    case State::kChunkSize:
      return read_chunk_size(to);
    case State::kChunk:
      return read_chunk(to, size);
    case State::kChunkEnd:
      return read_chunk_end(to);
    case State::kTrailer:
      return read_trailer(to);
    case State::kPlain:
      break;
  }
  return connection_.read(to, size);
}

ssize_t RequestFilter::fail(std::string problem) {
  problem_ = std::move(problem);
  return -1;
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
  if (!chunk_line_.take(*to)) {
    return fail(
        "a chunk of the body: expected its size in hexadecimal digits, and CR LF behind it");
  }
  if (!chunk_line_.has_ended()) return 1;
  left_in_chunk_ = chunk_line_.size();
  chunk_line_ = {};
  state_ = left_in_chunk_ == 0 ? State::kTrailer : State::kChunk;
  return 1;
}

ssize_t RequestFilter::read_chunk(char* to, size_t size) {
  const ssize_t count = connection_.read(to, std::min(size, left_in_chunk_));
  if (count > 0) left_in_chunk_ -= static_cast<size_t>(count);
  if (left_in_chunk_ == 0) state_ = State::kChunkEnd;
  return count;
}

ssize_t RequestFilter::read_chunk_end(char* to) {
  const ssize_t count = connection_.read(to, 1);
  if (count <= 0) return count;
  if (*to != (owes_newline_ ? '\n' : '\r')) {
    return fail("a chunk of the body: expected CR LF behind as many bytes as it says it has");
  }
  if (owes_newline_) state_ = State::kChunkSize;
  owes_newline_ = !owes_newline_;
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
