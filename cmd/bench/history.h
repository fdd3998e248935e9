// The history of benchmarks, in the store: what was measured is added to it, and listed.
#pragma once

#include <cstdint>
#include <string>

#include "base/store/store.h"
#include "cmd/bench/engine_bench.h"
#include "cmd/bench/serving_report.h"

namespace tgi::bench {

// What the report prints as JSON is what is kept. A store that can't be written is told on stderr:
// the measurement itself has not failed.
void keep_engine_bench(const EngineReport& report);
void keep_serving_bench(const ServingReport& report, const BenchFlags& flags);

// Newest first; `model` "" for any.
std::string history_table(const Store& store, const std::string& model, int64_t limit);
std::string history_json(const Store& store, const std::string& model, int64_t limit);

}  // namespace tgi::bench
