// What a client asked, in token ids and numbers: made by intake, immutable from then on.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/dialect/answer_reader.h"
#include "engine/guide/token_guide.h"
#include "engine/sched/host_adapter.h"
#include "engine/tensor/batch.h"
#include "engine/tensor/sampling_params.h"

namespace tgi {

using Clock = std::chrono::steady_clock;

// Hidden states that a request wants in place of tokens.
struct PooledInput {
  enum class Rows : uint8_t { kAll, kFirst, kLast };
  Rows rows = Rows::kAll;
  Pooling pooling = Pooling::kRows;
};

struct Request {
  uint64_t id = 0;
  std::shared_ptr<const HostAdapter> adapter;  // (optional)
  std::vector<int32_t> prompt_ids;
  std::vector<int32_t> token_types;   // one for each of prompt_ids, or empty: all are of type 0
  std::vector<PooledInput> pooled{};  // empty: tokens are drawn; else the prompt alone is computed
  SamplingParams sampling;            // of sequence 0; the others differ in sequence_index
  std::shared_ptr<const Guidance> guidance;  // (optional) which tokens its answers may have
  std::shared_ptr<const dialect::AnswerReading> reading;  // (optional) how they are taken apart
  int32_t max_new_tokens = 0;
  int32_t best_of = 1;
  int32_t max_drafts = 0;  // of a sequence in a step; 0: nothing is drafted for it
  bool ignore_eos = false;
  bool prompt_logprobs = false;
  bool use_prefix_cache = true;  // neither reads nor feeds it when false
  bool announce = false;
  bool stream = false;
  bool details = false;
  std::vector<std::string> stop;
  bool include_stop_text = true;
  std::string echo_text;  // put before the text: return_full_text
  int32_t num_truncated_tokens = 0;
  int64_t num_prompt_characters = 0;  // with announce
  Clock::time_point accepted_at;

  int64_t adapter_id() const { return adapter == nullptr ? 0 : adapter->id; }
};

}  // namespace tgi
