#include "engine/quantize/job_run.h"

#include <fmt/format.h>

namespace tgi {
namespace {

template <typename TimePoint>
double seconds_since(TimePoint begin) {
  return std::chrono::duration<double>(TimePoint::clock::now() - begin).count();
}

}  // namespace

std::unique_ptr<Device> JobRun::make_device() const {
  return job_.backend.make_device({.dtype = DType::kF32, .num_threads = job_.num_threads});
}

void JobRun::report(std::string_view phase, int32_t layer) const {
  QuantizeProgress progress{
      .phase = std::string(phase), .layer = layer, .num_layers = num_layers_, .seconds = seconds()};
  if (layer > 0) {
    progress.seconds_left =
        seconds_since(layers_began_) / layer * static_cast<double>(num_layers_ - layer);
  }
  if (job_.on_progress) job_.on_progress(progress);
}

double JobRun::seconds() const {
  return seconds_since(began_);
}

void JobRun::check_stop() const {
  if (job_.stop.stop_requested()) throw Error(Code::kCancelled, "the job was cancelled");
}

Error is_taken(const std::string& path) {
  return {Code::kInvalidArgument,
          fmt::format("{}: exists already; give another name, or remove it first", path)};
}

}  // namespace tgi
