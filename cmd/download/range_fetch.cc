#include "cmd/download/range_fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/download/retry.h"

namespace tgi::download {
namespace {

constexpr size_t kWriteBytes = size_t{256} << 10;  // libcurl hands out 16 KiB at a time
constexpr int kMaxLocations = 5;  // a signed address may expire; one that always fails is wrong

// The server answers a range with the whole file.
struct NoRanges {};
// The file is done already: what this worker fetches is not needed any more.
struct NotNeeded {};

struct ContentRange {
  int64_t first = -1;
  int64_t last = -1;
  int64_t total = -1;  // -1: "*"
};

// "bytes 0-99/1234". Members stay -1 when it can't be understood.
ContentRange parse_content_range(std::string_view text) {
  ContentRange out;
  if (!text.starts_with("bytes ")) return out;
  const char* const end = text.data() + text.size();
  auto at = std::from_chars(text.data() + 6, end, out.first);
  if (at.ec != std::errc() || at.ptr == end || *at.ptr != '-') return {};
  at = std::from_chars(at.ptr + 1, end, out.last);
  if (at.ec != std::errc() || at.ptr == end || *at.ptr != '/') return {};
  std::from_chars(at.ptr + 1, end, out.total);
  return out;
}

class SpanFetch {
 public:
  SpanFetch(FileWork& work, Span span, const FetchContext& context, std::stop_token stop)
      : work_(work),
        span_(span),
        context_(context),
        stop_(stop),
        chunk_(span.first),
        at_(work.part.begin_of(span.first)),
        end_(std::min(work.part.begin_of(span.end), work.part.size())) {}

  void run() {
    try {
      while (at_ < end_) try_once();
    } catch (const NoRanges&) {
      back_to_chunk();
      count(-work_.set_no_ranges());
    } catch (const NotNeeded&) {
      back_to_chunk();
    } catch (...) {
      back_to_chunk();
      throw;
    }
  }

 private:
  // The bytes of the chunk in progress don't count any more, and whoever comes may take it.
  void back_to_chunk() {
    count(work_.part.begin_of(chunk_) - at_);
    work_.give_back(span_, chunk_);
  }

  void count(int64_t bytes) {
    if (!span_.second_look && bytes != 0) context_.observer.on_bytes(work_.index, bytes);
  }

  bool is_whole() const { return span_.first == 0 && span_.end == work_.part.num_chunks(); }
  // A whole file is asked for without a range, which every server understands.
  bool wants_range() const { return work_.has_ranges() && !(is_whole() && at_ == 0); }

  void wait_or_throw(const std::string& trouble,
                     std::optional<double> retry_after_s,
                     const Error& end) {
    const auto tell = [&](const std::string& what, double seconds) {
      context_.observer.on_note(
          fmt::format("{}: {}; trying again in {:.1f} s", work_.item.file.path, what, seconds));
    };
    if (!backoff_.wait(trouble, retry_after_s, stop_, tell)) throw end;
  }

  void try_once() {
    if (!work_.has_ranges()) {
      if (!is_whole()) throw NoRanges{};  // another worker found that out
      restart();
    }
    const int64_t began = at_;
    try {
      const std::string location = work_.location();
      HttpReply reply = ask(location);
      if (at_ > began) progressed();
      if (!reply.ok()) return refused(reply, location);
      if (at_ < end_) {
        throw NetworkError(
            fmt::format("{}: the answer ended {} bytes early", origin_of(reply.url), end_ - at_));
      }
    } catch (const NetworkError& error) {
      if (at_ > began) progressed();
      wait_or_throw(error.what(), std::nullopt, error.in(work_.item.file.path));
    }
  }

  void progressed() {
    backoff_.reset();
    num_locations_ = 0;
  }

  // Without ranges nothing can go on from the middle.
  void restart() {
    count(work_.part.begin_of(span_.first) - at_);
    chunk_ = span_.first;
    at_ = work_.part.begin_of(chunk_);
    sum_ = ChunkSum();
    held_.clear();
  }

  HttpReply ask(const std::string& location) {
    HttpRequest request = context_.source.request(work_.item.file);
    if (!location.empty()) {
      request.url = location;
      request.credentials = {};
    }
    if (wants_range()) {
      request.first = at_;
      request.last = end_ - 1;
    }
    const bool ranged = request.last >= 0;
    const BodySink sink{.begin = [&](const HttpReply& head) { check_head(head, ranged); },
                        .take = [&](std::span<const std::byte> bytes) { take(bytes); }};
    HttpReply reply = context_.client.exchange(request, stop_, &sink);
    // The source's own answer may lead to another place each time; the one found works for all
    // parts.
    if (reply.ok() && reply.left_origin && location.empty()) work_.set_location(reply.url);
    return reply;
  }

  void refused(const HttpReply& reply, const std::string& location) {
    // A signed address that ran out: ask the source for another.
    if (reply.left_origin || !location.empty()) {
      if (!is_worth_another_try(reply.status) && ++num_locations_ < kMaxLocations) {
        return work_.drop_location(location);
      }
    }
    const Error refusal = context_.source.refusal(reply, &work_.item.file);
    if (!is_worth_another_try(reply.status)) throw refusal;
    wait_or_throw(describe_status(reply), retry_after(reply), refusal);
  }

  void check_head(const HttpReply& head, bool ranged) {
    check_promises(work_.item.file, head);
    work_.check_etag(head);
    const int64_t size = work_.part.size();
    if (!ranged) return check_length(head, size);
    if (head.status != 206) {
      check_length(head, size);
      throw NoRanges{};
    }
    const ContentRange range = parse_content_range(head.header("content-range"));
    if (range.total >= 0 && range.total != size) throw_size(range.total);
    if (range.first != at_ || range.last >= end_) {
      throw NetworkError(fmt::format("{}: asked for bytes {}-{}, the answer is \"{}\"",
                                     origin_of(head.url), at_, end_ - 1,
                                     head.header("content-range")));
    }
  }

  void check_length(const HttpReply& head, int64_t expected) const {
    const std::string text = head.header("content-length");
    int64_t length = -1;
    std::from_chars(text.data(), text.data() + text.size(), length);
    if (length >= 0 && length != expected) throw_size(length);
  }

  [[noreturn]] void throw_size(int64_t got) const {
    throw Error(Code::kUnavailable,
                fmt::format("{}: expected {} bytes, as the list of files says, the server has {}; "
                            "nothing of it was used",
                            work_.item.file.path, work_.part.size(), got));
  }

  void take(std::span<const std::byte> bytes) {
    if (static_cast<int64_t>(bytes.size()) > end_ - at_) {
      throw NetworkError(
          fmt::format("the answer goes on after the {} bytes asked for", end_ - at_));
    }
    while (!bytes.empty()) {
      const int64_t left = work_.part.begin_of(chunk_) + work_.part.bytes_of(chunk_) - at_;
      const auto now = bytes.first(std::min(bytes.size(), static_cast<size_t>(left)));
      held_.insert(held_.end(), now.begin(), now.end());
      if (!span_.second_look && held_.size() >= kWriteBytes)
        flush(at_ + static_cast<int64_t>(now.size()));
      at_ += static_cast<int64_t>(now.size());
      count(static_cast<int64_t>(now.size()));
      if (static_cast<int64_t>(now.size()) == left) end_chunk();
      bytes = bytes.subspan(now.size());
    }
  }

  // What is held are the bytes before `end`.
  void flush(int64_t end) {
    sum_.add(held_);
    if (!span_.second_look) work_.part.write(held_, end - static_cast<int64_t>(held_.size()));
    if (!span_.second_look) held_.clear();
  }

  void end_chunk() {
    flush(at_);
    if (span_.second_look) {
      if (work_.is_closed()) throw NotNeeded{};
      if (work_.looked_again(chunk_, sum_.value(), held_)) {
        context_.observer.on_note(fmt::format("{}: bytes {} to {} were wrong and came again",
                                              work_.item.file.path, work_.part.begin_of(chunk_),
                                              at_ - 1));
      }
      held_.clear();
    } else {
      work_.arrived(chunk_, sum_.value());
    }
    sum_ = ChunkSum();
    ++chunk_;
    context_.on_chunk();
  }

  FileWork& work_;
  const Span span_;
  const FetchContext& context_;
  const std::stop_token stop_;
  int64_t chunk_;  // in progress
  int64_t at_;     // the next byte
  const int64_t end_;
  ChunkSum sum_;
  std::vector<std::byte> held_;  // before at_, not written yet; in a second look the chunk so far
  Backoff backoff_;
  int num_locations_ = 0;
};

// Large files are asked for in many parts: the source is asked once where they are. HEAD is not
// followed to another host, whose signed addresses often are for GET only.
void find_location(FileWork& work, const FetchContext& context, std::stop_token stop) {
  const std::lock_guard lock(work.resolving);
  if (work.located) return;
  HttpRequest request = context.source.request(work.item.file);
  request.head = true;
  request.stay = true;
  const auto tell = [&](const std::string& what, double seconds) {
    context.observer.on_note(
        fmt::format("{}: {}; trying again in {:.1f} s", work.item.file.path, what, seconds));
  };
  const HttpReply reply = exchange_patiently(context.client, request, stop, tell);
  work.located = true;
  if (reply.status == 405 || reply.status == 501) return;  // no HEAD: the first GET finds it
  const bool leads_on = reply.status >= 300 && reply.status < 400;
  if (!reply.ok() && !leads_on) throw context.source.refusal(reply, &work.item.file);
  check_promises(work.item.file, reply);
  const std::string location = leads_on ? resolve_url(reply.url, reply.header("location")) : "";
  if (location.starts_with("https://") ||
      (location.starts_with("http://") && reply.url.starts_with("http://"))) {
    work.set_location(location);
  }
}

}  // namespace

void fetch_span(FileWork& work, Span span, const FetchContext& context, std::stop_token stop) {
  SpanFetch fetch(work, span, context, stop);
  if (span.end - span.first < work.part.num_chunks()) {
    try {
      find_location(work, context, stop);
    } catch (...) {
      work.give_back(span, span.first);
      throw;
    }
  }
  fetch.run();
}

}  // namespace tgi::download
