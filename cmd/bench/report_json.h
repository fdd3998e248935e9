// Summaries as JSON, the same in every report of tgi bench.
#pragma once

#include <optional>

#include "cmd/bench/stats.h"
#include "ipc/protocol.h"

namespace tgi::bench {

inline ipc::OrderedJson json_or_null(const std::optional<double>& value) {
  return value ? ipc::OrderedJson(*value) : ipc::OrderedJson();
}

inline ipc::OrderedJson summary_json(const std::optional<Summary>& summary) {
  if (!summary) return nullptr;
  return {{"p50", summary->p50},         {"p90", summary->p90},       {"p99", summary->p99},
          {"average", summary->average}, {"lowest", summary->lowest}, {"highest", summary->highest},
          {"count", summary->count}};
}

}  // namespace tgi::bench
