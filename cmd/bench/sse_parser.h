// Server-sent events out of a byte stream that is cut anywhere (WHATWG HTML, section 9.2.6), as
// tolerant as real servers need: `data:` with or without a space, LF, CRLF or CR, comments, a byte
// order mark, several data lines (joined by a newline), a last event without its empty line. The
// fields event, id and retry are passed over.
//
// Not thread-safe. What it gives depends on the bytes alone, never on how they were cut.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace tgi::bench {

class SseParser {
 public:
  using OnData = std::function<void(std::string_view data)>;

  explicit SseParser(size_t max_event_bytes = size_t{16} << 20)
      : max_event_bytes_(max_event_bytes) {}

  // Calls `on_data` for each event that these bytes complete; the view is good during the call.
  // Throws kInvalidArgument for an event over the limit; the stream is of no more use then.
  void feed(std::string_view bytes, const OnData& on_data);

  // At the end of the stream: gives an event whose empty line is missing.
  void finish(const OnData& on_data);

 private:
  void take_line(std::string_view line, const OnData& on_data);
  void give(const OnData& on_data);

  size_t max_event_bytes_;
  std::string partial_;       // of a line whose end has not come
  std::string data_;          // of the event under way
  bool has_data_ = false;     // a data line may be empty
  bool after_cr_ = false;     // a newline that follows belongs to the same line end
  bool at_beginning_ = true;  // a byte order mark may come
};

}  // namespace tgi::bench
