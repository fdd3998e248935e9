// What the metrics method answers: the counters of engine and KV cache under the names of TGI's
// metrics where it has one, under ours where it has none.
#pragma once

#include <vector>

#include "daemon/model_host.h"
#include "ipc/protocol.h"

namespace tgi::daemon {

// Of all models; samples of one that has a name have it as the label "model". Of one that is not
// loaded only that. Empty when there is none.
std::vector<ipc::MetricFamily> collect_metrics(const ModelHost& models);

}  // namespace tgi::daemon
