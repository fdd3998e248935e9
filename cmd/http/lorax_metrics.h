// LoRAX's names of what the gateway and the daemon measure, beside TGI's, for its dashboards.
#pragma once

#include <prometheus/metric_family.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/http/request_record.h"

namespace tgi::http {

// Adds each of the families that LoRAX has too, under its name there.
void add_lorax_families(std::vector<prometheus::MetricFamily>& families);

// LoRAX tells failures of adapters apart from those of generation.
inline constexpr std::string_view kLoraxFailures = "lorax_request_failure";
inline constexpr std::array<std::string_view, 2> kAdapterFailures = {"download_adapter",
                                                                     "load_adapter"};
// The `err` label of a request that failed.
std::string lorax_failure_name(const RequestRecord& record);

}  // namespace tgi::http
