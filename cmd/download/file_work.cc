#include "cmd/download/file_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

namespace tgi::download {

FileWork::FileWork(size_t index_, TransferItem item_, FileLock lock)
    : index(index_),
      item(std::move(item_)),
      part(item.partial, item.file.size, item.file.blob),
      lock_(std::move(lock)),
      taken_(static_cast<size_t>(part.num_chunks())),
      etag_(bare_etag(item.file.etag)) {}

FileWork::~FileWork() {
  if (lock_ && part.num_complete_bytes() == 0) part.remove();
}

std::optional<Span> FileWork::take(int64_t max_chunks) {
  const std::lock_guard lock(mutex_);
  if (closed_) return std::nullopt;
  const bool again = !looked_.empty();
  const auto is_free = [&](int64_t chunk) {
    const auto at = static_cast<size_t>(chunk);
    return !taken_[at] && (again ? !looked_[at] : !part.is_complete(chunk));
  };
  Span span{.first = 0, .end = part.num_chunks(), .second_look = again};
  if (ranges_) {
    while (span.first < part.num_chunks() && !is_free(span.first)) ++span.first;
    span.end = span.first;
    while (span.end < part.num_chunks() && span.end - span.first < max_chunks &&
           is_free(span.end)) {
      ++span.end;
    }
  } else {
    for (int64_t chunk = 0; chunk < span.end; ++chunk) {
      if (taken_[static_cast<size_t>(chunk)]) return std::nullopt;
    }
    bool any = false;
    for (int64_t chunk = 0; chunk < span.end && !any; ++chunk) any = is_free(chunk);
    if (!any) return std::nullopt;
  }
  if (span.first >= span.end) return std::nullopt;
  std::fill(taken_.begin() + span.first, taken_.begin() + span.end, true);
  return span;
}

void FileWork::give_back(Span span, int64_t first) {
  const std::lock_guard lock(mutex_);
  std::fill(taken_.begin() + first, taken_.begin() + span.end, false);
}

void FileWork::arrived(int64_t chunk, uint64_t sum) {
  part.complete(chunk, sum);
  const std::lock_guard lock(mutex_);
  taken_[static_cast<size_t>(chunk)] = false;
}

bool FileWork::looked_again(int64_t chunk, uint64_t sum, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  const auto at = static_cast<size_t>(chunk);
  taken_[at] = false;
  if (closed_ || looked_[at]) return false;
  const bool differs = part.sum_of(chunk) != sum;
  if (differs) {
    part.write(bytes, part.begin_of(chunk));
    part.complete(chunk, sum);
    ++num_replaced_;
  }
  looked_[at] = true;
  --num_to_look_;
  return differs;
}

bool FileWork::begin_second_look() {
  const std::lock_guard lock(mutex_);
  if (!looked_.empty()) return false;
  looked_.assign(taken_.size(), false);
  num_to_look_ = part.num_chunks();
  return true;
}

bool FileWork::is_second_look() const {
  const std::lock_guard lock(mutex_);
  return !looked_.empty();
}

FileWork::Look FileWork::look() const {
  const std::lock_guard lock(mutex_);
  return {.all = num_to_look_ == 0, .num_replaced = num_replaced_};
}

bool FileWork::close(int64_t num_replaced) {
  const std::lock_guard lock(mutex_);
  if (num_replaced != num_replaced_) return false;
  closed_ = true;
  return true;
}

bool FileWork::is_closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

void FileWork::unlock() {
  const std::lock_guard lock(mutex_);
  lock_.reset();
}

int64_t FileWork::set_no_ranges() {
  const std::lock_guard lock(mutex_);
  if (!ranges_) return 0;
  ranges_ = false;
  ++num_replaced_;  // what comes in their place is hashed again
  if (!looked_.empty()) return 0;
  const int64_t bytes = part.num_complete_bytes();
  for (int64_t chunk = 0; chunk < part.num_chunks(); ++chunk) part.forget(chunk);
  return bytes;
}

bool FileWork::has_ranges() const {
  const std::lock_guard lock(mutex_);
  return ranges_;
}

std::string FileWork::location() const {
  const std::lock_guard lock(mutex_);
  return location_;
}

void FileWork::set_location(std::string url) {
  const std::lock_guard lock(mutex_);
  location_ = std::move(url);
}

void FileWork::drop_location(const std::string& url) {
  const std::lock_guard lock(mutex_);
  if (location_ == url) location_.clear();
}

void FileWork::check_etag(const HttpReply& reply) {
  const std::string etag = bare_etag(reply.header("etag"));
  if (etag.empty()) return;
  const std::string origin = origin_of(reply.url);
  const std::lock_guard lock(mutex_);
  const bool is_first = etag_.empty() || (origin != etag_origin_ && !etag_origin_.empty());
  if (is_first) {
    etag_ = etag;
  } else if (etag_ != etag) {
    throw Error(
        Code::kUnavailable,
        fmt::format("{} changed on the server while it was downloaded (its ETag was {}, now it "
                    "is {}); run the same command again",
                    item.file.path, etag_, etag));
  }
  etag_origin_ = origin;
}

}  // namespace tgi::download
