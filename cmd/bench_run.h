// One measured run of tgi bench: a batch of requests at once, the arrival time of every token, and
// what follows from the times. The arithmetic is apart from the clock so that tests can feed it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ipc/client.h"

namespace tgi {

// For each sequence of the batch: when its tokens arrived, in seconds after all were asked for.
using RunTimes = std::vector<std::vector<double>>;

struct RunOptions {
  int64_t prompt_length = 0;
  int64_t decode_length = 0;
  int batch_size = 0;
  int64_t vocab_size = 0;
  uint64_t seed = 0;  // of the random prompts
};

// Throws what any of the requests throws.
RunTimes measure_run(const ipc::Client& client, const RunOptions& options);

// Prompt tokens of the batch over the time until every sequence has its first token.
double prefill_tokens_per_s(const RunTimes& times, int64_t prompt_length);

// Tokens per second between the moment when all sequences have their first token and the moment
// when the first one ends: the time in which the whole batch decodes and nothing else runs. Nothing
// when that time holds less than two tokens per sequence (the prompts took longer than the
// answers).
std::optional<double> decode_tokens_per_s(const RunTimes& times);

std::vector<double> times_to_first_token(const RunTimes& times);
std::vector<double> inter_token_times(const RunTimes& times);

// Nearest rank; REQUIRES: `values` is not empty, 0 < share <= 1.
double percentile(std::vector<double> values, double share);
inline double median(std::vector<double> values) {
  return percentile(std::move(values), 0.5);
}

}  // namespace tgi
