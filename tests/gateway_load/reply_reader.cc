#include "tests/gateway_load/reply_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "tests/gateway_load/stamp.h"

namespace tgi {
namespace {

constexpr std::string_view kHeadersEnd = "\r\n\r\n";
constexpr size_t kQuoted = 300;  // bytes of an answer that a problem shows

// What marks the one event that says how a stream ended.
std::string_view final_mark(Way way) {
  switch (way) {
    case Way::kSocket:
      return "{\"done\":";
    case Way::kNative:
      return "\"generated_text\":\"";
    case Way::kChat:
      return "\"finish_reason\":\"length\"";
  }
  return "";
}

}  // namespace

void ReplyReader::fail(const std::string& problem) {
  if (problem_.empty()) problem_ = fmt::format("stream {}: {}", stream_, problem);
}

void ReplyReader::feed(std::string_view bytes, int64_t now_ns, std::vector<int64_t>& latencies_ns) {
  now_ns_ = now_ns;
  latencies_ns_ = &latencies_ns;
  if (way_ == Way::kSocket) return on_text(bytes);
  while (!bytes.empty() && !is_done()) {
    if (in_headers_) {
      on_headers(bytes);
    } else {
      on_chunk_bytes(bytes);
    }
  }
}

void ReplyReader::on_headers(std::string_view& bytes) {
  const size_t before = headers_.size();
  headers_ += bytes;
  const size_t end = headers_.find(kHeadersEnd);
  if (end == std::string::npos) {
    bytes = {};
    return;
  }
  bytes.remove_prefix(end + kHeadersEnd.size() - before);
  in_headers_ = false;
  if (!headers_.starts_with("HTTP/1.1 200 ") ||
      headers_.find("Transfer-Encoding: chunked") == std::string::npos) {
    fail("expected a stream, got " + headers_.substr(0, kQuoted));
  }
}

void ReplyReader::on_chunk_bytes(std::string_view& bytes) {
  if (chunk_left_ > 0) {
    const size_t count = std::min(chunk_left_, bytes.size());
    // The last two are the line end after the chunk.
    const size_t num_text = chunk_left_ > 2 ? std::min(count, chunk_left_ - 2) : 0;
    on_text(bytes.substr(0, num_text));
    chunk_left_ -= count;
    bytes.remove_prefix(count);
    if (chunk_left_ == 0 && last_chunk_) on_end();
    return;
  }
  const size_t newline = bytes.find('\n');
  chunk_head_ += bytes.substr(0, newline);
  bytes.remove_prefix(newline == std::string_view::npos ? bytes.size() : newline + 1);
  if (newline == std::string_view::npos) return;
  size_t size = 0;
  const char* const end = chunk_head_.data() + chunk_head_.size();
  if (std::from_chars(chunk_head_.data(), end, size, 16).ec != std::errc{}) {
    return fail("expected the size of a chunk, got " + chunk_head_.substr(0, kQuoted));
  }
  last_chunk_ = size == 0;
  chunk_left_ = size + 2;
  chunk_head_.clear();
}

void ReplyReader::on_text(std::string_view text) {
  for (;;) {
    const size_t newline = text.find('\n');
    if (newline == std::string_view::npos) break;
    if (line_.empty()) {
      on_line(text.substr(0, newline));
    } else {
      line_ += text.substr(0, newline);
      on_line(line_);
      line_.clear();
    }
    text.remove_prefix(newline + 1);
  }
  line_ += text;
}

void ReplyReader::on_line(std::string_view line) {
  if (line.empty()) return;
  if (line.find("\"error\":") != std::string_view::npos) {
    return fail("an error: " + std::string(line.substr(0, kQuoted)));
  }
  saw_final_event_ = saw_final_event_ || line.find(final_mark(way_)) != std::string_view::npos;
  if (const std::optional<Stamp> stamp = find_stamp(line)) {
    if (stamp->stream != stream_ || stamp->token != num_received_) {
      return fail(fmt::format("expected token {}, got token {} of stream {}", num_received_,
                              stamp->token, stamp->stream));
    }
    ++num_received_;
    latencies_ns_->push_back(now_ns_ - stamp->written_ns);
  }
  if (way_ == Way::kSocket && saw_final_event_) on_end();
}

void ReplyReader::on_end() {
  done_ = true;
  if (num_received_ != num_tokens_) {
    fail(fmt::format("expected {} tokens, got {}", num_tokens_, num_received_));
  }
  if (!saw_final_event_) fail("no event said how it ended");
}

void ReplyReader::on_closed() {
  if (!is_done()) fail(fmt::format("cut off after {} of {} tokens", num_received_, num_tokens_));
}

}  // namespace tgi
