// What the library stumbles over is kept from it: the bytes of one request on their way from the
// connection. A Range that it can't read ends the request before anybody asks us (RFC 9110, section
// 14.2: a server may ignore Range, and must where it is malformed), and trailer fields make a
// chunked body a broken one (RFC 9112, section 7.1.2: they may be dropped). And what it takes for a
// chunk though it is none, which somebody on the way may read as the beginning of a request.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "cmd/http/connection.h"

namespace tgi::http {

// The line before a chunk (RFC 9112, section 7.1), byte by byte: its size in hexadecimal, then
// perhaps blanks and extensions, which nobody reads.
class ChunkLine {
 public:
  // Whether the line may go on with it, or end.
  bool take(char byte);

  bool has_ended() const { return part_ == Part::kEnded; }
  size_t size() const { return size_; }

 private:
  enum class Part { kSize, kBlanks, kExtension, kReturn, kEnded };

  Part part_ = Part::kSize;
  size_t size_ = 0;
  size_t num_bytes_ = 0;
};

class RequestFilter {
 public:
  explicit RequestFilter(Connection& connection) : connection_(connection) {}

  // As Connection::read.
  ssize_t read(char* to, size_t size);

  // What is wrong with the chunks of the body, which then can't be read on; "": nothing.
  const std::string& problem() const { return problem_; }

  // What follows is the body.
  void head_is_complete(bool is_chunked) {
    state_ = is_chunked ? State::kChunkSize : State::kPlain;
  }

 private:
  enum class State { kHead, kPlain, kChunkSize, kChunk, kChunkEnd, kTrailer };

  ssize_t read_head(char* to);
  ssize_t read_chunk_size(char* to);
  ssize_t read_chunk(char* to, size_t size);
  ssize_t read_chunk_end(char* to);
  ssize_t read_trailer(char* to);
  ssize_t fail(std::string problem);

  Connection& connection_;
  State state_ = State::kHead;
  std::string line_;  // the beginning of the line that is read
  bool owes_colon_ = false;
  ChunkLine chunk_line_;
  size_t left_in_chunk_ = 0;
  bool owes_newline_ = false;  // of the line's end behind a chunk
  std::string problem_;
};

}  // namespace tgi::http
