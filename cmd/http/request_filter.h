// What the library stumbles over is kept from it: the bytes of one request on their way from the
// connection. A Range that it can't read ends the request before anybody asks us (RFC 9110, section
// 14.2: a server may ignore Range, and must where it is malformed), and trailer fields make a
// chunked body a broken one (RFC 9112, section 7.1.2: they may be dropped).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "cmd/http/connection.h"

namespace tgi::http {

class RequestFilter {
 public:
  explicit RequestFilter(Connection& connection) : connection_(connection) {}

  // As Connection::read.
  ssize_t read(char* to, size_t size);

  // What follows is the body.
  void head_is_complete(bool is_chunked) {
    state_ = is_chunked ? State::kChunkSize : State::kPlain;
  }

 private:
  enum class State { kHead, kPlain, kChunkSize, kChunk, kTrailer };

  ssize_t read_head(char* to);
  ssize_t read_chunk_size(char* to);
  ssize_t read_trailer(char* to);

  Connection& connection_;
  State state_ = State::kHead;
  std::string line_;  // the beginning of the line that is read
  bool owes_colon_ = false;
  size_t left_in_chunk_ = 0;  // with the end of the line behind it
};

}  // namespace tgi::http
