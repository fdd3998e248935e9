#include "cmd/http/gzip_reader.h"

#include <zlib.h>

#include <array>

#include "base/error.h"

namespace tgi::http {

GzipReader::GzipReader() : stream_(std::make_unique<z_stream>()) {
  constexpr int kGzipHeader = 16;  // added to the window's size: expect its header
  if (::inflateInit2(stream_.get(), kGzipHeader + MAX_WBITS) != Z_OK) {
    throw Error(Code::kInternal, "zlib could not be started");
  }
}

GzipReader::~GzipReader() {
  ::inflateEnd(stream_.get());
}

bool GzipReader::read(std::string_view bytes, const std::function<bool(std::string_view)>& write) {
  // zlib never writes to its input; without ZLIB_CONST its type says otherwise.
  stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream_->avail_in = static_cast<uInt>(bytes.size());
  std::array<char, 16384> part{};
  bool is_full = false;  // there may be more without further input
  while (stream_->avail_in > 0 || is_full) {
    if (state_ == State::kBetween) ::inflateReset(stream_.get());
    state_ = State::kWithin;
    stream_->next_out = reinterpret_cast<Bytef*>(part.data());
    stream_->avail_out = static_cast<uInt>(part.size());
    const int status = ::inflate(stream_.get(), Z_NO_FLUSH);
    // Nothing was left to do, after a piece that ended where the room for it did.
    const bool is_idle = is_full && status == Z_BUF_ERROR;
    if (status != Z_OK && status != Z_STREAM_END && !is_idle) return false;
    const size_t size = part.size() - stream_->avail_out;
    if (size > 0 && !write({part.data(), size})) return false;
    if (status == Z_STREAM_END) state_ = State::kBetween;
    is_full = status == Z_OK && stream_->avail_out == 0;
  }
  return true;
}

}  // namespace tgi::http
