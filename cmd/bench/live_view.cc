#include "cmd/bench/live_view.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "cmd/bench/stats.h"

namespace tgi::bench {
namespace {

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // a view that can't be drawn is no reason to stop measuring
    text.remove_prefix(static_cast<size_t>(count));
  }
}

winsize terminal_size(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) size.ws_col = 80;
  if (size.ws_row == 0) size.ws_row = 24;
  return size;
}

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

bool can_draw_on(int fd) {
  const char* term = std::getenv("TERM");
  return ::isatty(fd) == 1 && !is_set("NO_COLOR") && term != nullptr &&
         std::string_view(term) != "dumb";
}

void LiveView::draw(const std::vector<std::string>& lines) {
  if (!enabled_) return;
  // The last row is left to the cursor: scrolling would break "up".
  const winsize size = terminal_size(fd_);
  const size_t num_lines = std::min<size_t>(lines.size(), size.ws_row > 1 ? size.ws_row - 1u : 1u);
  std::string frame;
  if (const size_t up = num_rows(); up > 0) frame += fmt::format("\x1b[{}A\r", up);
  drawn_.clear();
  for (size_t i = 0; i < num_lines; ++i) {
    const std::string line = lines[i].substr(0, size.ws_col - 1u);
    frame += line + "\x1b[K\n";
    drawn_.push_back(line.size());
  }
  frame += "\x1b[J";
  write_all(fd_, frame);
}

void LiveView::erase() {
  if (drawn_.empty()) return;
  write_all(fd_, fmt::format("\x1b[{}A\r\x1b[J", num_rows()));
  drawn_.clear();
}

size_t LiveView::width() const {
  return terminal_size(fd_).ws_col - 1u;
}

// That the lines take: a terminal that became narrower has broken them.
size_t LiveView::num_rows() const {
  const size_t columns = terminal_size(fd_).ws_col;
  size_t out = 0;
  for (const size_t length : drawn_) out += std::max<size_t>((length + columns - 1) / columns, 1);
  return out;
}

std::string gauge(double share, size_t width) {
  const double clamped = std::clamp(share, 0.0, 1.0);
  const auto num_full = static_cast<size_t>(std::llround(clamped * static_cast<double>(width)));
  return fmt::format("[{}{}]", std::string(num_full, '#'), std::string(width - num_full, '-'));
}

std::vector<std::string> draw_histogram(const std::vector<double>& seconds,
                                        size_t num_bins,
                                        size_t width) {
  if (seconds.empty()) return {};
  const Bins bins = bin_values(seconds, num_bins);
  const size_t highest = *std::max_element(bins.counts.begin(), bins.counts.end());
  const double bin_width = (bins.high - bins.low) / static_cast<double>(num_bins);
  std::vector<std::string> out;
  for (size_t i = 0; i < num_bins; ++i) {
    const size_t count = bins.counts[i];
    const double low = bins.low + bin_width * static_cast<double>(i);
    // Whatever happened once is seen.
    const size_t length = (count * width + highest - 1) / highest;
    const bool is_last = i + 1 == num_bins;
    out.push_back(fmt::format("{:>9.2f} {} {:>9} ms  {:<{}}  {}", 1000 * low, is_last ? '+' : '-',
                              is_last ? "" : fmt::format("{:.2f}", 1000 * (low + bin_width)),
                              std::string(length, '#'), width, count));
  }
  return out;
}

}  // namespace tgi::bench
