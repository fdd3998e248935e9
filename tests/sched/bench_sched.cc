// Times the host work of one step (scheduling, block accounting, publishing) with many running
// sequences, and a prefix match over a long prompt. No model. Not a test: prints medians; run it by
// hand.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <numeric>
#include <vector>

#include "engine/sched/scheduler.h"

namespace {

using tgi::Clock;

double micros_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

double bench_step(int32_t num_sequences, int32_t prompt_tokens) {
  tgi::KvCache kv_cache(num_sequences * (prompt_tokens / 16 + 64), 16);
  tgi::Scheduler scheduler({.max_running = num_sequences, .max_batch_tokens = 4096}, kv_cache);
  tgi::Request request;
  request.max_new_tokens = 1 << 20;
  std::vector<std::unique_ptr<tgi::Sequence>> sequences;
  for (int32_t i = 0; i < num_sequences; ++i) {
    auto sequence = std::make_unique<tgi::Sequence>();
    sequence->request = &request;
    sequence->token_ids.resize(static_cast<size_t>(prompt_tokens));
    std::iota(sequence->token_ids.begin(), sequence->token_ids.end(), i * 100000);
    sequence->num_prompt_tokens = prompt_tokens;
    scheduler.add(*sequence);
    sequences.push_back(std::move(sequence));
  }
  tgi::Batch batch;
  tgi::ScheduledStep scheduled;
  std::vector<tgi::SampledToken> sampled(static_cast<size_t>(num_sequences));
  std::vector<double> times;
  for (int32_t step = 0; times.size() < 500; ++step) {
    const auto start = Clock::now();
    if (!scheduler.next_batch(batch, scheduled)) return -1;
    scheduler.step_retired(scheduled, sampled);
    if (scheduled.num_decode_tokens == num_sequences) times.push_back(micros_since(start));
  }
  return median(times);
}

double bench_match(int32_t num_tokens) {
  tgi::KvCache kv_cache(num_tokens / 16 + 1, 16);
  std::vector<int32_t> token_ids(static_cast<size_t>(num_tokens));
  std::iota(token_ids.begin(), token_ids.end(), 0);
  tgi::KvLease lease;
  if (!kv_cache.grow(lease, num_tokens)) return -1;
  kv_cache.publish(0, token_ids, num_tokens, lease);
  std::vector<double> lookups;
  std::vector<double> leases;
  for (int i = 0; i < 1001; ++i) {
    auto start = Clock::now();
    if (kv_cache.num_matching_tokens(0, token_ids) < num_tokens - 16) return -1;
    lookups.push_back(micros_since(start));
    start = Clock::now();
    tgi::KvLease shared = kv_cache.match(0, token_ids, num_tokens);
    leases.push_back(micros_since(start));
  }
  std::printf(
      "prefix match over %d tokens: lookup %.2f us, with a lease of its %d blocks %.2f us\n",
      num_tokens, median(lookups), num_tokens / 16, median(leases));
  return 0;
}

}  // namespace

int main() {
  for (const int32_t num_sequences : {16, 64, 256}) {
    std::printf("host work of one step, %d running sequences: %.1f us\n", num_sequences,
                bench_step(num_sequences, 1000));
  }
  return bench_match(10000) < 0 ? 1 : 0;
}
