#include "cmd/download/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "cmd/download/disk.h"

namespace tgi::download {
namespace {

constexpr double kSpeedWindow = 10;
constexpr double kSparse = 30;    // seconds between lines that are not on a terminal
constexpr double kJsonEvery = 1;  // seconds
constexpr size_t kBar = 20;

winsize terminal_size() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0) size = {};
  return size;
}

std::string bar(double part) {
  const auto full = static_cast<size_t>(std::lround(std::clamp(part, 0.0, 1.0) * kBar));
  return "[" + std::string(full, '#') + std::string(kBar - full, '.') + "]";
}

std::string cut(const std::string& text, size_t columns) {
  if (text.size() <= columns) return text + std::string(columns - text.size(), ' ');
  return "..." + text.substr(text.size() - (columns - 3));
}

double part_of(int64_t done, int64_t size) {
  return size > 0 ? static_cast<double>(done) / static_cast<double>(size) : 1;
}

}  // namespace

void SpeedMeter::add(double time_s, int64_t bytes) {
  points_.push_back({time_s, bytes});
  const auto old = [&](const Point& point) { return point.time_s < time_s - kSpeedWindow; };
  // The oldest that is kept is at least the window away, once there is one.
  while (points_.size() > 2 && old(points_[1])) points_.erase(points_.begin());
}

double SpeedMeter::bytes_per_s() const {
  if (points_.size() < 2) return 0;
  const double seconds = points_.back().time_s - points_.front().time_s;
  const auto bytes = static_cast<double>(points_.back().bytes - points_.front().bytes);
  return seconds > 0 ? std::max(bytes / seconds, 0.0) : 0;
}

std::string format_duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

size_t terminal_columns() {
  const size_t columns = terminal_size().ws_col;
  return columns >= 40 ? columns : 80;
}

size_t terminal_rows() {
  const size_t rows = terminal_size().ws_row;
  return rows >= 4 ? rows : 24;
}

Progress::Progress(ProgressKind kind, std::function<void(const std::string&)> write)
    : kind_(kind), write_(std::move(write)) {}

double Progress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

void Progress::say(std::string line) {
  if (kind_ == ProgressKind::kJson) line = Json{{"event", "note"}, {"text", line}}.dump();
  said_.push_back(std::move(line));
}

void Progress::on_plan(const std::string& what, const std::vector<RemoteFile>& files) {
  const std::lock_guard lock(mutex_);
  files_.clear();
  int64_t bytes = 0;
  for (const RemoteFile& file : files) {
    files_.push_back({.name = file.path, .size = file.size});
    bytes += file.size;
  }
  if (kind_ == ProgressKind::kJson) {
    Json list = Json::array();
    for (const RemoteFile& file : files)
      list.push_back({{"name", file.path}, {"bytes", file.size}});
    said_.push_back(
        Json{{"event", "plan"}, {"source", what}, {"bytes", bytes}, {"files", list}}.dump());
  } else {
    say(fmt::format("{}: {} files, {}", what, files.size(), format_size(bytes)));
  }
}

void Progress::on_begin(size_t file, int64_t kept) {
  const std::lock_guard lock(mutex_);
  files_[file].state = State::kActive;
  files_[file].done = kept;
  if (kept > 0) {
    say(fmt::format("{}: {} of {} were downloaded before", files_[file].name, format_size(kept),
                    format_size(files_[file].size)));
  }
}

void Progress::on_bytes(size_t file, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  files_[file].done += bytes;
  fetched_ += std::max<int64_t>(bytes, 0);
}

void Progress::on_done(size_t file, bool by_others) {
  const std::lock_guard lock(mutex_);
  FileState& state = files_[file];
  const bool was_there = state.state == State::kWaiting && !by_others;
  state.done = state.size;
  state.state = State::kDone;
  const char* how = was_there ? "was there" : by_others ? "came by another process" : "done";
  if (kind_ == ProgressKind::kJson) {
    said_.push_back(
        Json{{"event", "file"}, {"name", state.name}, {"bytes", state.size}, {"how", how}}.dump());
  } else if (!was_there) {
    said_.push_back(fmt::format("{}  {}  {}", cut(state.name, 44), format_size(state.size), how));
  }
}

void Progress::on_wait_for_others(size_t file) {
  const std::lock_guard lock(mutex_);
  files_[file].state = State::kOthers;
  say(fmt::format("{}: another process downloads it; waiting", files_[file].name));
}

void Progress::on_note(const std::string& text) {
  const std::lock_guard lock(mutex_);
  say(text);
}

Progress::Totals Progress::totals() const {
  Totals totals;
  for (const FileState& file : files_) {
    totals.done += file.done;
    totals.size += file.size;
    totals.num_done += file.state == State::kDone ? 1 : 0;
  }
  return totals;
}

std::string Progress::file_line(const FileState& file, size_t columns) const {
  const std::string numbers = fmt::format(
      " {} {:>4.0f} %  {} of {}", bar(part_of(file.done, file.size)),
      100 * part_of(file.done, file.size), format_size(file.done), format_size(file.size));
  const std::string shown =
      file.state == State::kOthers ? " another process downloads it" : numbers;
  const size_t room = columns > shown.size() + 10 ? columns - shown.size() - 1 : 10;
  return (cut(file.name, std::min<size_t>(room, 44)) + shown).substr(0, columns - 1);
}

std::string Progress::total_line(const Totals& totals) const {
  const double speed = speed_.bytes_per_s();
  const auto left = static_cast<double>(totals.size - totals.done);
  return fmt::format("{} of {} files, {} of {} ({:.0f} %), {}/s, {}", totals.num_done,
                     files_.size(), format_size(totals.done), format_size(totals.size),
                     100 * part_of(totals.done, totals.size),
                     format_size(static_cast<int64_t>(speed)),
                     left <= 0   ? std::string("checking")
                     : speed > 0 ? format_duration(left / speed) + " left"
                                 : std::string("time left unknown"));
}

// What was said goes above the display, which is drawn anew below.
std::string Progress::draw_terminal() {
  std::string out;
  if (num_drawn_ > 0) out += fmt::format("\033[{}A\r\033[J", num_drawn_);
  for (const std::string& line : said_) out += line + "\n";
  num_drawn_ = 0;
  const Totals sum = totals();
  if (files_.empty() || sum.num_done == files_.size()) return out;
  const size_t columns = terminal_columns();
  const size_t room = terminal_rows() - 2;
  for (const FileState& file : files_) {
    if (file.state != State::kActive && file.state != State::kOthers) continue;
    if (num_drawn_ == room) break;
    out += file_line(file, columns) + "\n";
    ++num_drawn_;
  }
  out += total_line(sum).substr(0, columns - 1) + "\n";
  ++num_drawn_;
  return out;
}

std::string Progress::draw_lines(bool last) {
  std::string out;
  for (const std::string& line : said_) out += line + "\n";
  const Totals sum = totals();
  const int tenth = static_cast<int>(10 * part_of(sum.done, sum.size));
  const bool due =
      seconds() - last_line_s_ >= kSparse || (tenth > last_tenth_ && seconds() - last_line_s_ >= 1);
  if (files_.empty() || last || !due || sum.num_done == files_.size()) return out;
  last_line_s_ = seconds();
  last_tenth_ = tenth;
  return out + total_line(sum) + "\n";
}

std::string Progress::draw_json(bool last) {
  std::string out;
  for (const std::string& line : said_) out += line + "\n";
  if (files_.empty() || last || seconds() - last_line_s_ < kJsonEvery) return out;
  last_line_s_ = seconds();
  const Totals sum = totals();
  const double speed = speed_.bytes_per_s();
  Json event = {{"event", "progress"},          {"bytes", sum.done},
                {"total_bytes", sum.size},      {"files", sum.num_done},
                {"total_files", files_.size()}, {"bytes_per_s", std::llround(speed)}};
  if (speed > 0) event["seconds_left"] = static_cast<double>(sum.size - sum.done) / speed;
  return out + event.dump() + "\n";
}

void Progress::tick() {
  std::string out;
  {
    const std::lock_guard lock(mutex_);
    speed_.add(seconds(), fetched_);
    if (kind_ == ProgressKind::kTerminal) out = draw_terminal();
    if (kind_ == ProgressKind::kLines) out = draw_lines(false);
    if (kind_ == ProgressKind::kJson) out = draw_json(false);
    said_.clear();
  }
  if (!out.empty()) write_(out);
}

std::pair<int64_t, int64_t> Progress::done_and_total_bytes() {
  const std::lock_guard lock(mutex_);
  const Totals sums = totals();
  return {sums.done, sums.size};
}

void Progress::finish() {
  std::string out;
  {
    const std::lock_guard lock(mutex_);
    if (kind_ == ProgressKind::kTerminal) {
      files_.clear();
      out = draw_terminal();
    }
    if (kind_ == ProgressKind::kLines) out = draw_lines(true);
    if (kind_ == ProgressKind::kJson) out = draw_json(true);
    said_.clear();
  }
  if (!out.empty()) write_(out);
}

}  // namespace tgi::download
