// A scheduler on a model that is a hash, and what its sequences then must have.
#pragma once

#include "engine/sched/scheduler.h"

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <numeric>

#include "tests/catch.h"

namespace tgi {

inline constexpr int32_t kBlock = 4;

// Ends besides length: an end token, and a stop string of two.
inline constexpr int32_t kEos = 4;
inline constexpr std::array<int32_t, 2> kStop = {1, 2};

// Runs the scheduler against a model whose next token is a hash of the seed and all tokens before
// it, so that any mistake in what was computed for whom, and how it was sampled, shows up as a
// wrong token.
struct Fixture {
  explicit Fixture(int32_t num_blocks,
                   SchedulerOptions options = {},
                   const KvGroups& groups = {},
                   Speculator* speculator = nullptr)
      : kv_cache(num_blocks, kBlock, groups), scheduler(options, kv_cache, speculator) {}

  KvCache kv_cache;
  Scheduler scheduler;
  Batch batch;
  std::deque<ScheduledStep> in_flight;
  std::deque<std::vector<SampledToken>> in_flight_tokens;
  std::deque<std::vector<std::vector<float>>> in_flight_pooled;
  std::vector<std::unique_ptr<Request>> requests;
  std::vector<std::unique_ptr<Sequence>> sequences;
  std::vector<std::vector<int32_t>> slot_tokens = std::vector<std::vector<int32_t>>(256);
  std::vector<uint64_t> slot_seeds = std::vector<uint64_t>(256);
  int64_t num_rows = 0;
  bool ends_early = false;  // by kEos and kStop too
  int32_t max_drafts = 0;   // of each sequence
  // 0: the next token follows from all before it; else from so many, so that it repeats itself, but
  // another way from time to time.
  int32_t memory = 0;

  int32_t next_token(std::span<const int32_t> context, uint64_t seed) const {
    uint32_t hash = 2166136261U ^ static_cast<uint32_t>(seed);
    if (memory > 0) {
      hash ^= static_cast<uint32_t>(context.size() / 23);
      context = context.last(std::min(context.size(), static_cast<size_t>(memory)));
    }
    for (const int32_t token : context) hash = (hash ^ static_cast<uint32_t>(token)) * 16777619U;
    return static_cast<int32_t>(hash % 5);
  }

  // Whether a sequence that has generated so much of its tokens is done.
  bool has_ended(const Sequence& sequence, int32_t num_generated) const {
    if (num_generated >= sequence.request->max_new_tokens) return true;
    if (!ends_early || num_generated == 0) return false;
    const auto generated = std::span(sequence.token_ids)
                               .subspan(static_cast<size_t>(sequence.num_prompt_tokens),
                                        static_cast<size_t>(num_generated));
    if (generated.back() == kEos) return true;
    return generated.size() >= kStop.size() &&
           std::equal(kStop.begin(), kStop.end(), generated.end() - kStop.size());
  }

  Sequence& add(std::vector<int32_t> prompt, int32_t max_new_tokens, uint32_t index = 0) {
    if (index == 0) {
      auto request = std::make_unique<Request>();
      request->id = requests.size();
      request->prompt_ids = std::move(prompt);
      request->max_new_tokens = max_new_tokens;
      requests.push_back(std::move(request));
    }
    auto sequence = std::make_unique<Sequence>();
    sequence->request = requests.back().get();
    sequence->sampling.sequence_index = index;
    sequence->sampling.seed = sequences.size();
    sequence->speculation.max_drafts = max_drafts;
    sequence->token_ids = requests.back()->prompt_ids;
    sequence->num_prompt_tokens = sequence->num_tokens();
    sequences.push_back(std::move(sequence));
    scheduler.add(*sequences.back());
    return *sequences.back();
  }

  bool submit() {
    ScheduledStep scheduled;
    if (!scheduler.next_batch(batch, scheduled)) return false;
    num_rows += batch.num_tokens();
    // What a device would know: the tokens it was given or sampled itself, by slot and position.
    for (const SlotStart& start : batch.slot_starts) {
      slot_tokens[static_cast<size_t>(start.slot)].assign(start.token_ids.begin(),
                                                          start.token_ids.end());
      slot_seeds[static_cast<size_t>(start.slot)] = start.sampling.seed;
    }
    std::vector<SampledToken> sampled;
    std::vector<int32_t> context;
    bool counts = true;
    for (const SampleRow& row : batch.sample_rows) {
      auto& known = slot_tokens[static_cast<size_t>(row.slot)];
      const int32_t input = batch.token_ids[static_cast<size_t>(row.row)];
      if (row.num_drafts == 0) {
        REQUIRE(static_cast<int32_t>(known.size()) >= row.position);
        known.resize(static_cast<size_t>(row.position));
        context = known;
        counts = true;
      } else {
        REQUIRE(input >= 0);
        counts = counts && sampled.back().token.id == input;
        context.push_back(input);
      }
      REQUIRE(static_cast<int32_t>(context.size()) == row.position);
      const int32_t token = next_token(context, slot_seeds[static_cast<size_t>(row.slot)]);
      if (counts) {
        known = context;
        known.push_back(token);
      }
      sampled.push_back({.token = {.id = token}, .top_tokens = {}});
    }
    // What a token was drawn from is where it stands and what it is.
    std::vector<std::vector<float>> pooled;
    for (const PooledRows& rows : batch.pooled_rows) {
      if (!batch.kept_rows.empty()) break;  // of a request that wants them itself
      const auto at = static_cast<size_t>(rows.row);
      REQUIRE(batch.sample_rows[at].position == rows.position + 1);
      pooled.push_back(
          {static_cast<float>(rows.position + 1), static_cast<float>(sampled[at].token.id)});
    }
    in_flight.push_back(std::move(scheduled));
    in_flight_pooled.push_back(std::move(pooled));
    in_flight_tokens.push_back(std::move(sampled));
    return true;
  }

  void retire() {
    ScheduledStep scheduled = std::move(in_flight.front());
    in_flight.pop_front();
    scheduler.step_retired(scheduled, in_flight_tokens.front(), in_flight_pooled.front());
    in_flight_tokens.pop_front();
    in_flight_pooled.pop_front();
    for (const auto& part : scheduled.parts) {
      Sequence& sequence = *part.sequence;
      // The first end among the new tokens is the sequence's.
      for (int32_t i = part.num_appended - 1; i >= 0 && !sequence.finished; --i) {
        const int32_t num_generated = sequence.num_generated_tokens() - i;
        if (!has_ended(sequence, num_generated)) continue;
        sequence.token_ids.resize(sequence.token_ids.size() - static_cast<size_t>(i));
        scheduler.remove(sequence);
      }
    }
    kv_cache.check_integrity();
    REQUIRE(kv_cache.num_free() + kv_cache.num_used() + kv_cache.num_cached() ==
            kv_cache.num_blocks());
  }

  void step() {
    if (submit()) retire();
  }

  void run_all(size_t depth = 1) {
    for (int guard = 0; guard < 100000; ++guard) {
      while (in_flight.size() < depth && submit()) {
      }
      if (in_flight.empty()) break;
      retire();
    }
    kv_cache.check_integrity();
    CHECK(kv_cache.num_used() == 0);
    for (const auto& sequence : sequences) {
      CHECK(sequence->finished);
      CHECK(has_ended(*sequence, sequence->num_generated_tokens()));
      for (int32_t i = sequence->num_prompt_tokens; i < sequence->num_tokens(); ++i) {
        REQUIRE_FALSE(has_ended(*sequence, i - sequence->num_prompt_tokens));
        REQUIRE(sequence->token_ids[static_cast<size_t>(i)] ==
                next_token(std::span(sequence->token_ids).first(static_cast<size_t>(i)),
                           sequence->sampling.seed));
      }
    }
  }
};

inline std::vector<int32_t> prompt_of(int32_t count, int32_t first = 0) {
  std::vector<int32_t> out(static_cast<size_t>(count));
  std::iota(out.begin(), out.end(), first * 1000);
  return out;
}

}  // namespace tgi
