#include "cmd/http/lorax_metrics.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tgi::http {
namespace {

constexpr std::string_view kOurs = "tgi_";
constexpr std::string_view kLorax = "lorax_";

// Those that are named alike behind the prefix.
constexpr std::array<std::string_view, 19> kShared = {
    "batch_concat",
    "batch_current_max_tokens",
    "batch_current_size",
    "batch_inference_count",
    "batch_inference_duration",
    "batch_inference_failure",
    "batch_inference_success",
    "batch_next_size",
    "request_count",
    "request_duration",
    "request_generated_tokens",
    "request_inference_duration",
    "request_input_length",
    "request_max_new_tokens",
    "request_mean_time_per_token_duration",
    "request_queue_duration",
    "request_skipped_tokens",
    "request_success",
    "request_validation_duration",
};

std::string lorax_name(std::string_view name) {
  if (name == "tgi_queue_size") return "lorax_queue_length";
  if (!name.starts_with(kOurs)) return "";
  const std::string_view rest = name.substr(kOurs.size());
  if (std::ranges::find(kShared, rest) == kShared.end()) return "";
  return std::string(kLorax).append(rest);
}

}  // namespace

void add_lorax_families(std::vector<prometheus::MetricFamily>& families) {
  const size_t count = families.size();
  for (size_t i = 0; i < count; ++i) {
    std::string name = lorax_name(families[i].name);
    if (name.empty()) continue;
    families.push_back(families[i]);
    families.back().name = std::move(name);
  }
}

std::string lorax_failure_name(const RequestRecord& record) {
  const Failure failure = failure_of(record);
  const bool is_of_adapter = failure == Failure::kGeneration && !record.adapter_failure.empty();
  return is_of_adapter ? record.adapter_failure : std::string(failure_name(failure));
}

}  // namespace tgi::http
