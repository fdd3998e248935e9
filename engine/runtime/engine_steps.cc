// Engine: a step from the batch to what its requests are told.
#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/log.h"
#include "engine/runtime/engine.h"

namespace tgi {

// What a step draws must be on its way before the next can use it.
bool Engine::can_submit() const {
  return static_cast<int>(in_flight_.size()) < workers_->max_steps_in_flight() &&
         (in_flight_.empty() || in_flight_.back().is_sampled);
}

bool Engine::submit_step() {
  const auto began = Clock::now();
  ScheduledStep scheduled;
  if (!spare_steps_.empty()) {
    scheduled = std::move(spare_steps_.back());
    spare_steps_.pop_back();
  }
  if (!scheduler_.next_batch(batch_, scheduled)) {
    spare_steps_.push_back(std::move(scheduled));
    return false;
  }
  const auto now = Clock::now();
  for (const ScheduledStep::Part& part : scheduled.parts) {
    LiveRequest& live = *static_cast<LiveSequence*>(part.sequence)->live;
    if (live.first_scheduled_at.time_since_epoch().count() == 0) live.first_scheduled_at = now;
  }
  last_submitted_ = scheduled.step;
  const Ticket ticket = workers_->submit(batch_);
  in_flight_.push_back(
      {.ticket = ticket, .began = began, .started = now, .scheduled = std::move(scheduled)});
  return true;
}

// A masked row waits for the token before it, which may be of a step that has not retired; without
// such rows the step submitted last is sampled at once.
void Engine::sample_when_known() {
  if (in_flight_.empty() || in_flight_.back().is_sampled) return;
  InFlight& step = in_flight_.back();
  if (!masks_are_known(step.scheduled)) return;
  fill_masks(step.scheduled);
  workers_->sample(step.ticket, masks_);
  step.is_sampled = true;
  fail_marked();
}

// Tries a draft; what is too much for the grammar there is no draft.
bool Engine::guide_allows(TokenGuide& guide, int32_t draft_id) {
  try {
    return guide.try_accept(draft_id);
  } catch (const std::exception&) {
    return false;
  }
}

bool Engine::masks_are_known(const ScheduledStep& scheduled) const {
  return std::all_of(scheduled.parts.begin(), scheduled.parts.end(), [](const auto& part) {
    const bool is_masked = part.samples && part.sequence->guide != nullptr;
    return !is_masked || !part.is_current() || part.sequence->num_pending_tokens == 1;
  });
}

void Engine::fill_masks(ScheduledStep& scheduled) {
  masks_.words_per_row = (options_.vocab_size + 31) / 32;
  masks_.bits.clear();
  const auto began = Clock::now();
  const auto num_words = static_cast<size_t>(masks_.words_per_row);
  for (ScheduledStep::Part& part : scheduled.parts) {
    if (!part.samples || part.sequence->guide == nullptr) continue;
    const size_t size = static_cast<size_t>(part.num_sampled()) * num_words;
    masks_.bits.resize(masks_.bits.size() + size, ~0U);  // what nobody takes may be anything
    if (!part.is_current()) continue;
    part.max_appended = fill_mask_rows(*static_cast<LiveSequence*>(part.sequence),
                                       std::span(masks_.bits).last(size));
  }
  if (masks_.bits.empty()) return;
  metrics_.masks_s.observe(std::chrono::duration<double>(Clock::now() - began).count());
}

// Of a text that can't be another its canonical token, whether or not others are in the step with
// it; but for where the tokens run out, and a shorter way is taken, and where the request itself
// has a say in which of them it wants.
void Engine::keep_forced(const Sequence& sequence, std::span<uint32_t> mask) {
  const std::span<const int32_t> forced = sequence.forced_tokens();
  if (forced.empty()) return;
  const auto word_of = [&](int32_t id) -> uint32_t& { return mask[static_cast<size_t>(id) / 32]; };
  const auto bit_of = [](int32_t id) { return uint32_t{1} << (static_cast<uint32_t>(id) % 32); };
  const auto is_allowed = [&](int32_t id) { return (word_of(id) & bit_of(id)) != 0; };
  const bool is_biased = std::ranges::any_of(
      sequence.sampling.logit_bias, [&](const LogitBias& bias) { return is_allowed(bias.id); });
  if (is_biased || !is_allowed(forced.front())) return;
  std::ranges::fill(mask, 0U);
  word_of(forced.front()) = bit_of(forced.front());
}

// A row behind drafts has the mask of the state that they lead to. Returns for how many rows there
// is one.
int32_t Engine::fill_mask_rows(LiveSequence& sequence, std::span<uint32_t> masks) {
  const auto num_words = static_cast<size_t>(masks_.words_per_row);
  const std::vector<int32_t>& drafts = sequence.draft_ids;
  int32_t num_rows = 0;
  while (fill_mask(sequence, num_rows, masks.first(num_words))) {
    masks = masks.subspan(num_words);
    const auto next = static_cast<size_t>(num_rows++);
    if (next >= drafts.size() || !guide_allows(*sequence.guide, drafts[next])) break;
  }
  sequence.guide->rollback();
  return num_rows;
}

// False: what follows is of no interest, as no token that is drawn leads there.
bool Engine::fill_mask(LiveSequence& sequence, int32_t num_ahead, std::span<uint32_t> mask) {
  LiveRequest& live = *sequence.live;
  const int32_t num_generated = sequence.num_generated_tokens() + num_ahead;
  const int64_t max_tokens = std::max(live.request->max_new_tokens - num_generated, 1);
  try {
    if (sequence.guide->fill_mask(mask, max_tokens)) {
      keep_forced(sequence, mask);
      return true;
    }
    throw Error(Code::kUnsupported,
                fmt::format("no token of this model continues the answer after {} of them as its "
                            "grammar wants it",
                            num_generated));
  } catch (const std::exception& error) {
    std::fill(mask.begin(), mask.end(), ~0U);
    // Behind drafts it is not the answer's trouble yet. Once they are drawn, the next step meets
    // it.
    if (num_ahead == 0) mark_failed(live, error_of(error));
    return false;
  }
}

void Engine::retire_step() {
  InFlight step = std::move(in_flight_.front());
  in_flight_.pop_front();
  const StepResult& result = workers_->wait(step.ticket);
  const auto now = Clock::now();
  // Submitted while another ran, it began when that was done.
  step.started = std::max(step.started, last_computed_);
  const std::chrono::duration<double, std::milli> interval = now - last_computed_;
  last_computed_ = now;
  last_retired_ = step.scheduled.step;
  scheduler_.step_retired(step.scheduled, result.sampled, result.pooled, result.reported);
  scheduler_.observe_step_time(
      step.scheduled, std::chrono::duration<double, std::milli>(now - step.started).count(),
      interval.count());
  ++counters_.num_steps;
  ++num_steps_ended_;
  take_scores(step.scheduled, result);
  take_pooled(step.scheduled, result, now);
  take_tokens(step.scheduled, result, now);
  fail_marked();
  std::erase_if(ending_, [](const auto& live) { return live->num_steps_in_flight() == 0; });
  observe_step(step, now);
  spare_steps_.push_back(std::move(step.scheduled));
}

void Engine::observe_step(const InFlight& step, Clock::time_point computed) {
  const auto seconds = [](Clock::duration time) {
    return std::chrono::duration<double>(time).count();
  };
  const bool has_prompt = step.scheduled.num_prefill_tokens > 0;
  StepKindMetrics& kind = has_prompt ? metrics_.prefill : metrics_.decode;
  const auto now = Clock::now();
  ++kind.num_steps;
  kind.inference_s.observe(seconds(now - step.began));
  kind.forward_s.observe(seconds(computed - step.started));
  kind.deliver_s.observe(seconds(now - computed));
  if (!has_prompt) return;
  metrics_.batch_size.observe(static_cast<double>(step.scheduled.parts.size()));
  if (step.scheduled.num_decode_tokens > 0) ++metrics_.num_mixed_steps;
}

void Engine::take_tokens(const ScheduledStep& scheduled,
                         const StepResult& result,
                         Clock::time_point now) {
  // Before others of its request are told more; what was drawn before it still counts.
  for (const ScheduledStep::Part& part : scheduled.parts) {
    if (part.not_finite && part.num_appended == 0)
      mark_not_finite(*part.sequence, part.sequence->num_tokens());
  }
  size_t next_sampled = 0;
  for (const ScheduledStep::Part& part : scheduled.parts) {
    const auto sampled =
        std::span(result.sampled).subspan(next_sampled, static_cast<size_t>(part.num_sampled()));
    next_sampled += sampled.size();
    if (part.num_appended == 0) continue;
    auto& sequence = *static_cast<LiveSequence*>(part.sequence);
    bool goes_on = !sequence.ended && sequence.live->failure == nullptr;
    for (int32_t i = 0; goes_on && i < part.num_appended; ++i) {
      goes_on = take_token(sequence, sampled[static_cast<size_t>(i)],
                           i > 0 && !part.drafts_are_forced, now);
    }
    if (part.not_finite && goes_on) mark_not_finite(sequence, sequence.num_tokens());
  }
}

// The request fails when the step has been gone through: its other sequences may be in it too.
void Engine::mark_not_finite(const Sequence& sequence, int32_t num_tokens) {
  mark_failed(
      *static_cast<const LiveSequence&>(sequence).live,
      Error(Code::kNotFinite,
            fmt::format(
                "the model's logits after {} token{} are not finite (NaN or infinity): its weights "
                "are damaged, or its numbers overflow in this dtype; `tgi doctor` tells which",
                num_tokens, num_tokens == 1 ? "" : "s")));
}

void Engine::mark_failed(LiveRequest& live, const Error& error) {
  if (live.failure != nullptr) return;
  live.failure = std::make_unique<Error>(error);
  failing_.push_back(&live);
}

void Engine::fail_marked() {
  for (LiveRequest* live : failing_) {
    log_warn("request failed in a step",
             {{"request", live->request->id}, {"error", live->failure->what()}});
    if (live->failure->code() == Code::kNotFinite) ++metrics_.num_not_finite;
    fail_request(*live, *live->failure);
  }
  failing_.clear();
}

void Engine::take_scores(const ScheduledStep& scheduled, const StepResult& result) {
  size_t next = 0;
  for (const ScheduledStep::Part& part : scheduled.parts) {
    if (part.num_scores == 0) continue;
    LiveRequest& live = *static_cast<LiveSequence*>(part.sequence)->live;
    for (int32_t i = 0; i < part.num_scores; ++i) {
      const float score = result.scores[next];
      if (std::isnan(score) && !part.sequence->finished) {
        mark_not_finite(*part.sequence, part.first_scored_token + i);
      }
      live.take_score(static_cast<size_t>(part.first_scored_token + i), score,
                      result.score_tops[next]);
      ++next;
    }
  }
}

void Engine::take_pooled(const ScheduledStep& scheduled,
                         const StepResult& result,
                         Clock::time_point now) {
  size_t next = 0;
  for (const ScheduledStep::Part& part : scheduled.parts) {
    const auto first = result.pooled.begin() + static_cast<ptrdiff_t>(next);
    const auto parts = std::span(first, static_cast<size_t>(part.num_pooled));
    next += parts.size();
    auto& sequence = *static_cast<LiveSequence*>(part.sequence);
    if (sequence.request->pooled.empty() || !part.is_current()) continue;
    LiveRequest& live = *sequence.live;
    const bool is_last = part.first_token + part.num_tokens == sequence.num_tokens();
    live.take_pooled(part.first_token, is_last, parts);
    if (!is_last) continue;
    const auto is_finite = [](const std::vector<float>& values) {
      return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
    };
    if (!std::ranges::all_of(live.pooled, is_finite)) {
      mark_not_finite(sequence, sequence.num_tokens());
      continue;
    }
    live.first_token_at = now;
    live.last_token_at = now;
    sequence.ended = true;
    scheduler_.remove(sequence);
    ++live.num_ended;
    live.sink->on_pooled(std::move(live.pooled));
    finish_request(live);
  }
}

// False: the request has failed.
bool Engine::guide_accepts(LiveSequence& sequence, int32_t token_id) {
  if (sequence.guide == nullptr || sequence.request->max_new_tokens == 0) return true;
  try {
    sequence.guide->accept(token_id);
    return true;
  } catch (const std::exception& error) {
    mark_failed(*sequence.live, error_of(error));
    return false;
  }
}

bool Engine::take_token(LiveSequence& sequence,
                        const SampledToken& sampled,
                        bool is_skipped,
                        Clock::time_point now) {
  LiveRequest& live = *sequence.live;
  if (!guide_accepts(sequence, sampled.token.id)) return false;
  if (live.request->max_new_tokens > 0) ++counters_.num_generated_tokens;
  if (live.first_token_at.time_since_epoch().count() == 0) live.first_token_at = now;
  live.last_token_at = now;
  if (is_skipped) ++counters_.num_skipped_tokens;
  ipc::TokenEvent event = sequence.take(sampled, is_skipped, options_.eos_token_ids);
  if (live.request->stream) {
    if (!sequence.echoed) event.text.insert(0, live.request->echo_text);
    sequence.echoed = true;
    live.sink->on_token(std::move(event));
    ++live.num_unacknowledged;
  }
  if (sequence.ended) {
    scheduler_.remove(sequence);
    if (++live.num_ended == static_cast<int32_t>(live.sequences.size())) finish_request(live);
    return false;
  }
  if (live.num_unacknowledged >= kMaxUnacknowledged && !live.paused) {
    live.paused = true;
    live.paused_at = now;
    ++num_paused_;
    for (const auto& each : live.sequences) each->paused = true;
  }
  return true;
}

void Engine::finish_request(LiveRequest& live) {
  ipc::DoneEvent done = live.make_done(Clock::now());
  int64_t num_generated = done.best.num_generated_tokens;
  for (const auto& other : done.others) num_generated += other.num_generated_tokens;
  counters_.num_cached_tokens += done.num_cached_tokens;
  if (done.num_cached_tokens > 0) ++metrics_.num_prefix_hits;
  const double tokens_after_first =
      static_cast<double>(std::max<int64_t>(done.best.num_generated_tokens - 1, 1));
  log_info("request done",
           {{"request", live.request->id},
            {"prompt_tokens", done.num_prompt_tokens},
            {"cached_tokens", done.num_cached_tokens},
            {"generated_tokens", num_generated},
            {"finish_reason", ipc::finish_reason_name(done.best.finish_reason)},
            {"queue_ms", fmt::format("{:.1f}", done.timings.queue_ms)},
            {"ttft_ms", fmt::format("{:.1f}", done.timings.time_to_first_token_ms)},
            {"tpot_ms", fmt::format("{:.2f}", done.timings.decode_ms / tokens_after_first)}});
  live.sink->on_done(std::move(done));
  drop_request(live);
}

}  // namespace tgi
