#include "cmd/bench/sse_parser.h"

#include <fmt/format.h>

#include "base/error.h"

namespace tgi::bench {

void SseParser::feed(std::string_view bytes, const OnData& on_data) {
  if (after_cr_ && !bytes.empty()) {
    if (bytes.front() == '\n') bytes.remove_prefix(1);
    after_cr_ = false;
  }
  while (!bytes.empty()) {
    const size_t end = bytes.find_first_of("\r\n");
    if (partial_.size() + data_.size() + std::min(end, bytes.size()) > max_event_bytes_) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("an event of more than {} bytes", max_event_bytes_));
    }
    if (end == std::string_view::npos) {
      partial_.append(bytes);
      return;
    }
    if (partial_.empty()) {
      take_line(bytes.substr(0, end), on_data);
    } else {
      partial_.append(bytes.substr(0, end));
      take_line(partial_, on_data);
      partial_.clear();
    }
    const bool is_cr = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (!is_cr) continue;
    if (bytes.empty()) {
      after_cr_ = true;
    } else if (bytes.front() == '\n') {
      bytes.remove_prefix(1);
    }
  }
}

void SseParser::finish(const OnData& on_data) {
  if (!partial_.empty()) take_line(partial_, on_data);
  partial_.clear();
  give(on_data);
}

void SseParser::take_line(std::string_view line, const OnData& on_data) {
  if (at_beginning_) {
    at_beginning_ = false;
    if (line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  }
  if (line.empty()) return give(on_data);
  constexpr std::string_view kData = "data";
  if (!line.starts_with(kData)) return;  // a comment or another field
  line.remove_prefix(kData.size());
  if (!line.empty()) {
    if (line.front() != ':') return;  // a field whose name is longer
    line.remove_prefix(1);
    if (line.starts_with(' ')) line.remove_prefix(1);
  }
  if (has_data_) data_.push_back('\n');
  data_.append(line);
  has_data_ = true;
}

void SseParser::give(const OnData& on_data) {
  if (!has_data_) return;
  has_data_ = false;
  on_data(data_);
  data_.clear();
}

}  // namespace tgi::bench
