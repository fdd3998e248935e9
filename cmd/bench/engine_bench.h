// tgi bench without a URL: what the engine does with batches of equal requests, one batch size
// after the other, over the daemon's socket.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cmd/bench.h"
#include "cmd/bench/stats.h"
#include "cmd/read_bandwidth.h"
#include "ipc/protocol.h"

namespace tgi::bench {

// Times in seconds, rates in tokens per second; one value a run unless it says otherwise.
struct BatchSamples {
  int batch_size = 0;
  std::vector<double> prefill_s;
  std::vector<double> decode_total_s;
  std::vector<double> first_token_s;  // one a sequence
  std::vector<double> inter_token_s;  // one a token after the first
  std::vector<double> prefill_tokens_per_s;
  std::vector<double> decode_tokens_per_s;  // fewer when the batch never decoded as a whole
};

struct BatchResult {
  BatchSamples samples;
  std::optional<double> decode_tokens_per_s;  // median
  std::optional<double> bytes_per_s;          // read while decoding
  std::optional<double> share_of_read;
};

struct EngineReport {
  const BenchFlags& flags;
  const ipc::ModelStatus& model;
  ReadBandwidth plain;  // 0 bytes: not measured, because the bench was broken off
  std::vector<BatchResult> results;
};

// Exit status 130 after Ctrl-C, with what was measured until then.
int run_engine_bench(const BenchFlags& flags, Session& session);

std::string engine_json(const EngineReport& report);
std::string engine_tables(const EngineReport& report);

}  // namespace tgi::bench
