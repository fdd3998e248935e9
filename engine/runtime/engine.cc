#include "engine/runtime/engine.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/log.h"

namespace tgi {
namespace {

constexpr size_t kMailboxCapacity = size_t{1} << 20;
constexpr int32_t kResumeBelow = Engine::kMaxUnacknowledged / 2;

}  // namespace

Engine::Engine(const EngineOptions& options,
               std::unique_ptr<WorkerGroup> workers,
               const Tokenizer& tokenizer)
    : options_(options),
      workers_(std::move(workers)),
      tokenizer_(tokenizer),
      kv_cache_(options.num_blocks, options.block_size),
      scheduler_(options.scheduler, kv_cache_),
      mailbox_(kMailboxCapacity) {
  publish_stats();
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Engine::~Engine() {
  thread_.request_stop();
  mailbox_.wake();
}

void Engine::send(Command&& command) {
  if (!mailbox_.try_send(std::move(command))) {
    throw Error(Code::kOverloaded, "the engine's mailbox is full; try again later");
  }
}

void Engine::submit(std::unique_ptr<Request> request, std::unique_ptr<ResponseSink> sink) {
  if (num_live_.load() >= options_.max_waiting + options_.scheduler.max_running) {
    throw Error(
        Code::kOverloaded,
        fmt::format(
            "{} requests are running or waiting, which is as many as are taken; try again later",
            num_live_.load()));
  }
  // Here and not on the engine's thread, which may be in the middle of a step.
  if (request->announce) {
    sink->on_accepted({.num_prompt_tokens = static_cast<int64_t>(request->prompt_ids.size()),
                       .num_prompt_characters = request->num_prompt_characters,
                       .max_new_tokens = request->max_new_tokens});
  }
  ++num_live_;
  try {
    send(Submit{std::move(request), std::move(sink)});
  } catch (...) {
    --num_live_;
    throw;
  }
}

void Engine::cancel(uint64_t request_id) {
  send(Cancel{request_id});
}

void Engine::acknowledge(uint64_t request_id, int32_t num_events) {
  send(Acknowledge{request_id, num_events});
}

void Engine::refuse_all(const Error& error) {
  send(Refuse{error});
}

EngineStats Engine::stats() const {
  const std::lock_guard lock(stats_mutex_);
  return stats_;
}

void Engine::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    mailbox_.drain(commands_);
    for (Command& command : commands_) {
      std::visit([this](auto& each) { handle(each); }, command);
    }
    commands_.clear();
    try {
      if (num_paused_ > 0) cancel_slow_readers();
      while (static_cast<int>(in_flight_.size()) < workers_->max_steps_in_flight() &&
             submit_step()) {
      }
      if (!in_flight_.empty()) {
        retire_step();
        publish_stats();
        continue;
      }
      // A quiet moment: what later steps need is made ready, a piece between two looks at the mail.
      if (refusal_ == nullptr && workers_->prepare_step()) continue;
      publish_prepared();
    } catch (const std::exception& error) {
      // A step that fails has left sequences and device apart: nothing that runs can be trusted any
      // more.
      log_error("step failed, the engine stops", {{"error", error.what()}});
      failed_ = true;
      for (const InFlight& step : in_flight_) {
        const bool has_prompt = step.scheduled.num_prefill_tokens > 0;
        ++(has_prompt ? metrics_.prefill : metrics_.decode).num_failed;
      }
      fail_all(Error(Code::kDeviceLost, error.what()));
      refusal_ = std::make_unique<Error>(Code::kDeviceLost, error.what());
      in_flight_.clear();
      ending_.clear();
      if (options_.on_failure) options_.on_failure();
    }
    publish_stats();
    mailbox_.wait(idle_timeout_ms());
  }
  fail_all(Error(Code::kCancelled, "the model is being unloaded or the daemon stops"));
}

int Engine::idle_timeout_ms() const {
  return num_paused_ > 0 ? 500 : -1;
}

void Engine::handle(Submit& command) {
  ++counters_.num_requests;
  if (refusal_ != nullptr) {
    --num_live_;
    ++counters_.num_failed;
    command.sink->on_error(*refusal_);
    return;
  }
  const uint64_t id = command.request->id;
  auto live = std::make_unique<LiveRequest>(std::move(command.request), std::move(command.sink),
                                            tokenizer_);
  for (const auto& sequence : live->sequences) scheduler_.add(*sequence);
  counters_.num_prompt_tokens += static_cast<int64_t>(live->request->prompt_ids.size());
  live_.emplace(id, std::move(live));
}

void Engine::handle(Cancel& command) {
  const auto it = live_.find(command.request_id);
  if (it == live_.end()) return;
  count_cancelled(*it->second);
  drop_request(*it->second);
}

void Engine::handle(Acknowledge& command) {
  const auto it = live_.find(command.request_id);
  if (it == live_.end()) return;
  LiveRequest& live = *it->second;
  live.num_unacknowledged -= command.num_events;
  if (!live.paused || live.num_unacknowledged > kResumeBelow) return;
  live.paused = false;
  --num_paused_;
  for (const auto& sequence : live.sequences) sequence->paused = false;
}

void Engine::handle(Refuse& command) {
  refusal_ = std::make_unique<Error>(command.error);
  fail_all(command.error);
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
  const Ticket ticket = workers_->submit(batch_);
  in_flight_.push_back({ticket, began, now, std::move(scheduled)});
  return true;
}

void Engine::retire_step() {
  InFlight step = std::move(in_flight_.front());
  in_flight_.pop_front();
  const StepResult& result = workers_->wait(step.ticket);
  const auto now = Clock::now();
  scheduler_.step_retired(step.scheduled, result.sampled);
  scheduler_.observe_step_time(
      step.scheduled, std::chrono::duration<double, std::milli>(now - step.started).count());
  ++counters_.num_steps;
  take_scores(step.scheduled, result);
  size_t next_sampled = 0;
  for (const ScheduledStep::Part& part : step.scheduled.parts) {
    if (!part.samples) continue;
    const SampledToken& sampled = result.sampled[next_sampled++];
    if (part.appended) take_token(*static_cast<LiveSequence*>(part.sequence), sampled, now);
  }
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

void Engine::take_scores(const ScheduledStep& scheduled, const StepResult& result) {
  size_t next = 0;
  for (const ScheduledStep::Part& part : scheduled.parts) {
    if (part.num_scores == 0) continue;
    LiveRequest& live = *static_cast<LiveSequence*>(part.sequence)->live;
    for (int32_t i = 0; i < part.num_scores; ++i) {
      live.take_score(static_cast<size_t>(part.first_scored_token + i), result.scores[next],
                      result.score_tops[next]);
      ++next;
    }
  }
}

void Engine::take_token(LiveSequence& sequence,
                        const SampledToken& sampled,
                        Clock::time_point now) {
  LiveRequest& live = *sequence.live;
  if (live.request->max_new_tokens > 0) ++counters_.num_generated_tokens;
  if (live.first_token_at.time_since_epoch().count() == 0) live.first_token_at = now;
  live.last_token_at = now;
  ipc::TokenEvent event = sequence.take(sampled, options_.eos_token_ids);
  if (live.request->stream) {
    if (!sequence.echoed) event.text.insert(0, live.request->echo_text);
    sequence.echoed = true;
    live.sink->on_token(std::move(event));
    ++live.num_unacknowledged;
  }
  if (sequence.ended) {
    scheduler_.remove(sequence);
    if (++live.num_ended == static_cast<int32_t>(live.sequences.size())) finish_request(live);
    return;
  }
  if (live.num_unacknowledged >= kMaxUnacknowledged && !live.paused) {
    live.paused = true;
    live.paused_at = now;
    ++num_paused_;
    for (const auto& each : live.sequences) each->paused = true;
  }
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

void Engine::fail_request(LiveRequest& live, const Error& error) {
  live.sink->on_error(error);
  ++counters_.num_failed;
  drop_request(live);
}

// Takes the request out of every list. Its memory stays until no step in flight names it.
void Engine::drop_request(LiveRequest& live) {
  if (live.paused) --num_paused_;
  for (const auto& sequence : live.sequences) {
    if (!sequence->finished) scheduler_.remove(*sequence);
  }
  --num_live_;
  auto node = live_.extract(live.request->id);
  if (live.num_steps_in_flight() > 0) ending_.push_back(std::move(node.mapped()));
}

void Engine::fail_all(const Error& error) {
  while (!live_.empty()) fail_request(*live_.begin()->second, error);
}

void Engine::cancel_slow_readers() {
  const auto limit = Clock::now() - options_.slow_reader_timeout;
  std::vector<LiveRequest*> slow;
  for (const auto& [id, live] : live_) {
    if (live->paused && live->paused_at <= limit) slow.push_back(live.get());
  }
  for (LiveRequest* live : slow) {
    count_cancelled(*live);
    fail_request(*live, Error(Code::kCancelled, fmt::format("the client read nothing for {} ms",
                                                            options_.slow_reader_timeout.count())));
  }
}

void Engine::count_cancelled(const LiveRequest& live) {
  ++counters_.num_cancelled;
  if (live.first_scheduled_at.time_since_epoch().count() == 0) {
    ++metrics_.num_cancelled_queued;
  } else if (live.first_token_at.time_since_epoch().count() == 0) {
    ++metrics_.num_cancelled_prefill;
  } else {
    ++metrics_.num_cancelled_decode;
  }
}

void Engine::publish_prepared() {
  const std::lock_guard lock(stats_mutex_);
  stats_.prepared_rows = workers_->prepared_rows();
}

void Engine::publish_stats() {
  const std::lock_guard lock(stats_mutex_);
  stats_.num_blocks_used = kv_cache_.num_used();
  stats_.num_blocks_cached = kv_cache_.num_cached();
  stats_.num_blocks_free = kv_cache_.num_free();
  stats_.num_running = scheduler_.num_running();
  stats_.num_waiting = scheduler_.num_waiting();
  stats_.counters = counters_;
  stats_.steps = metrics_;
  stats_.counters.num_preemptions = scheduler_.num_preemptions();
}

}  // namespace tgi
