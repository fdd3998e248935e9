// One measured run of tgi bench against the engine: a batch of requests at once, the arrival time
// of every token, and what follows from the times. The arithmetic is apart from the clock so that
// tests can feed it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cmd/bench/load_driver.h"
#include "cmd/bench/transport.h"

namespace tgi::bench {

// For each sequence of the batch: when its tokens arrived, in seconds after all were asked for.
using RunTimes = std::vector<std::vector<double>>;

struct RunOptions {
  int64_t prompt_length = 0;
  int64_t decode_length = 0;
  int batch_size = 0;
  uint64_t seed = 0;  // of the random prompts
};

// Throws what any of the requests met, and Stopped at Ctrl-C.
RunTimes measure_run(Transport& transport,
                     const RunOptions& options,
                     const OnProgress& on_progress);

// From asking until every sequence has its first token, and from then until the last has its last.
double prefill_s(const RunTimes& times);
double decode_total_s(const RunTimes& times);

// Prompt tokens of the batch over the time until every sequence has its first token.
double prefill_tokens_per_s(const RunTimes& times, int64_t prompt_length);

// Tokens per second between the moment when all sequences have their first token and the moment
// when the first one ends: the time in which the whole batch decodes and nothing else runs. Nothing
// when that time holds less than two tokens per sequence (the prompts took longer than the
// answers).
std::optional<double> decode_tokens_per_s(const RunTimes& times);

std::vector<double> times_to_first_token(const RunTimes& times);
std::vector<double> inter_token_times(const RunTimes& times);

}  // namespace tgi::bench
