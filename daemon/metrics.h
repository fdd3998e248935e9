// What the metrics method answers: the counters of engine and KV cache under the names of TGI's
// metrics where it has one, under ours where it has none.
#pragma once

#include <vector>

#include "engine/runtime/served_model.h"
#include "ipc/protocol.h"

namespace tgi::daemon {

// `model` null: none is loaded, the answer is empty.
std::vector<ipc::MetricFamily> collect_metrics(ServedModel* model);

}  // namespace tgi::daemon
