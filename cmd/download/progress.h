// Shows a download: on a terminal a line for each file that is in progress, with the total, speed
// and time left below; elsewhere a line now and then; one JSON object a line for programs; or
// nothing.
//
// Told by any thread; draws on the thread that calls tick().
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cmd/download/fetch_model.h"

namespace tgi::download {

enum class ProgressKind { kTerminal, kLines, kJson, kQuiet };

// Bytes per second over the last ten seconds.
class SpeedMeter {
 public:
  void add(double time_s, int64_t bytes_so_far);
  double bytes_per_s() const;

 private:
  struct Point {
    double time_s;
    int64_t bytes;
  };
  std::vector<Point> points_;
};

class Progress final : public FetchObserver {
 public:
  // `write` gets whole lines, and cursor movements for a terminal.
  Progress(ProgressKind kind, std::function<void(const std::string&)> write);

  void on_plan(const std::string& what, const std::vector<RemoteFile>& files) override;
  void on_begin(size_t file, int64_t kept) override;
  void on_bytes(size_t file, int64_t bytes) override;
  void on_done(size_t file, bool by_others) override;
  void on_wait_for_others(size_t file) override;
  void on_note(const std::string& text) override;

  // Draws what changed. About ten times a second.
  void tick();
  // Summed over all files, as far as they are known.
  std::pair<int64_t, int64_t> done_and_total_bytes();
  // The last lines; the display is gone afterwards.
  void finish();

 private:
  enum class State { kWaiting, kOthers, kActive, kDone };
  struct FileState {
    std::string name;
    int64_t size = 0;
    int64_t done = 0;
    State state = State::kWaiting;
  };
  struct Totals {
    int64_t done = 0;
    int64_t size = 0;
    size_t num_done = 0;
  };

  Totals totals() const;  // REQUIRES: mutex_ held, as all below
  double seconds() const;
  void say(std::string line);
  std::string file_line(const FileState& file, size_t columns) const;
  std::string total_line(const Totals& totals) const;
  std::string draw_terminal();
  std::string draw_lines(bool last);
  std::string draw_json(bool last);

  const ProgressKind kind_;
  const std::function<void(const std::string&)> write_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::vector<FileState> files_;
  std::vector<std::string> said_;  // since the last drawing
  SpeedMeter speed_;
  int64_t fetched_ = 0;   // bytes that came over the network
  size_t num_drawn_ = 0;  // lines of the display that stand on the terminal
  double last_line_s_ = 0;
  int last_tenth_ = 0;
};

// "1:02:03", "4:05", "12 s".
std::string format_duration(double seconds);

// Columns of the terminal on stderr; 80 when it does not say.
size_t terminal_columns();
size_t terminal_rows();

}  // namespace tgi::download
