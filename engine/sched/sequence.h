// One token stream of a request and how far it has come. Belongs to the engine thread.
//
//   token_ids: [ prompt ............................ | generated ........ ]
//              0      num_computed      num_scheduled                size()
//              |--KV is in the blocks--|--in flight--|--to be scheduled--|
//
// In decode all but the last token are computed. When steps overlap, one more token may be sampled
// on the device and not known here yet: num_pending_tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/draft/drafter.h"
#include "engine/sched/kv_cache.h"
#include "engine/sched/request.h"

namespace tgi {

// How far its drafts have been right. Those of Speculator alone, but max_drafts.
struct Speculation {
  int32_t max_drafts = 0;  // of a step; 0: none, ever
  std::unique_ptr<Drafter::Memory> memory;
  std::vector<float> hidden;  // what the last token was drawn from, for drafters that read it
  double num_tried = 0;       // drafts whose place was reached, the older the less
  double num_right = 0;
  int32_t steps_to_try = 1;   // until a draft is tried that is not worth its row
  bool has_waited = false;    // for its last token, to draft what follows
  int32_t rest = 0;           // steps in which it does not wait, after it did so for nothing
  int32_t steps_of_rest = 0;  // left of them
};

struct Sequence {
  const Request* request = nullptr;
  SamplingParams sampling;
  std::unique_ptr<TokenGuide> guide;  // (optional) has accepted every generated token

  std::vector<int32_t> token_ids;
  int32_t num_prompt_tokens = 0;
  int32_t num_computed_tokens = 0;
  int32_t num_scheduled_tokens = 0;
  int32_t num_pending_tokens = 0;
  int32_t num_cached_tokens = 0;  // of the prompt, at the first admission
  // Guesses of what follows token_ids, in the step that is in flight. They are of the scheduled
  // tokens, and until they are verified the sequence gets no other step.
  std::vector<int32_t> draft_ids;
  bool drafts_are_forced = false;  // no guesses: hardly anything else can be drawn
  Speculation speculation;
  // Prompt tokens whose log-probability is known or in flight; the first has none.
  int32_t num_scored_tokens = 1;
  int32_t num_preemptions = 0;

  KvLease lease;
  int32_t adapter_place = 0;     // of the request's adapter on the device; 0: none
  int32_t slot = -1;             // >= 0 while running
  int32_t num_slot_places = 0;   // of the lease, known to the device's block tables
  bool slot_is_started = false;  // a step has told the device whose slot it is
  int32_t num_steps_in_flight = 0;
  bool paused = false;    // its reader is slow: keeps what it has, gets no steps
  bool finished = false;  // no more steps; kept until none is in flight

  int32_t num_tokens() const { return static_cast<int32_t>(token_ids.size()); }
  int32_t num_generated_tokens() const { return num_tokens() - num_prompt_tokens; }
  int32_t num_unscheduled_tokens() const {
    return num_tokens() + num_pending_tokens - num_scheduled_tokens;
  }
  bool is_prefilling() const { return num_unscheduled_tokens() > 1; }

  // What will be drawn next, as the guide wants it. Valid until the guide is asked again.
  std::span<const int32_t> forced_tokens() const {
    return guide == nullptr ? std::span<const int32_t>() : guide->forced_tokens();
  }
};

}  // namespace tgi
