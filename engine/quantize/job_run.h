// What every job of quantising has in common, whatever it writes: its device, its clock, what it
// tells of how far it is, and when it is to stop.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/quantize/quantizer.h"

namespace tgi {

// References the job. Belongs to one thread.
class JobRun {
 public:
  JobRun(const QuantizeJob& job, int32_t num_layers) : job_(job), num_layers_(num_layers) {}

  std::unique_ptr<Device> make_device() const;  // one that computes in f32

  void begin_layers() { layers_began_ = Clock::now(); }
  void report(std::string_view phase, int32_t layer) const;
  double seconds() const;  // since it began

  void check_stop() const;  // throws kCancelled once the job was told to stop

 private:
  using Clock = std::chrono::steady_clock;

  const QuantizeJob& job_;
  const int32_t num_layers_;
  const Clock::time_point began_ = Clock::now();
  Clock::time_point layers_began_ = began_;
};

// That something of that name is there already.
Error is_taken(const std::string& path);

}  // namespace tgi
