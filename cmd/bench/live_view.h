// A few lines at the bottom of a terminal that are drawn over again and again, on stderr so that
// stdout stays pipeable. Plain ANSI: cursor up, erase. Nothing else about the terminal is changed,
// so there is nothing to restore when the program is killed. Belongs to one thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tgi::bench {

// Whether to draw at all: `fd` is a terminal that understands ANSI and NO_COLOR is not set.
bool can_draw_on(int fd);

class LiveView {
 public:
  LiveView(int fd, bool enabled) : fd_(fd), enabled_(enabled) {}
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;
  ~LiveView() { erase(); }

  bool enabled() const { return enabled_; }

  // Replaces what was drawn before. Lines are cut at the width of the terminal.
  void draw(const std::vector<std::string>& lines);
  void erase();

  // Characters that a line may have.
  size_t width() const;

 private:
  size_t num_rows() const;

  const int fd_;
  const bool enabled_;
  std::vector<size_t> drawn_;  // lengths of the lines that are there
};

// "[#########-----------]".
std::string gauge(double share, size_t width);

// Bins and length of the longest bar of a histogram in a live view.
inline constexpr size_t kLiveHistogramBins = 8;
inline constexpr size_t kLiveBarWidth = 36;

// A histogram of times in seconds, lying: one line a bin, "   1.2 -   1.8 ms  ######  123".
std::vector<std::string> draw_histogram(const std::vector<double>& seconds,
                                        size_t num_bins,
                                        size_t width);

}  // namespace tgi::bench
