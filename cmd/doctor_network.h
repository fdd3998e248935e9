// What is reached over the network: the hub, where a download failed there, and the gateway.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/store/store.h"
#include "cmd/doctor/finding.h"
#include "cmd/download/hub_env.h"

namespace tgi::doctor {

// `last`: the download that was recorded last. Only where that failed is the hub asked, which takes
// up to five seconds.
Finding look_at_network(const std::optional<JobRecord>& last,
                        const download::HubSettings& settings);

// Whether a gateway answers where `tgi serve` would listen.
Finding look_at_gateway(const std::string& host, uint16_t port);

}  // namespace tgi::doctor
