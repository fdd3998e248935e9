#include "engine/runtime/engine.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/log.h"

namespace tgi {
namespace {

constexpr size_t kMailboxCapacity = size_t{1} << 20;
constexpr int32_t kResumeBelow = Engine::kMaxUnacknowledged / 2;

// A sink that can't even take an error is nobody else's trouble.
void tell(ResponseSink& sink, const Error& error) {
  try {
    sink.on_error(error);
  } catch (const std::exception& thrown) {
    log_error("an error can't be delivered", {{"error", error.what()}, {"because", thrown.what()}});
  }
}

std::unique_ptr<Speculator> make_speculator(std::unique_ptr<Drafter> drafter,
                                            const EngineOptions& options) {
  if (drafter == nullptr) return nullptr;
  return std::make_unique<Speculator>(
      std::move(drafter), SpeculatorOptions{.eos_token_ids = options.eos_token_ids,
                                            .at_any_price = options.drafts_at_any_price});
}

}  // namespace

Engine::Engine(const EngineOptions& options,
               std::unique_ptr<WorkerGroup> workers,
               const Tokenizer& tokenizer,
               std::unique_ptr<Drafter> drafter)
    : options_(options),
      workers_(std::move(workers)),
      tokenizer_(tokenizer),
      kv_cache_(options.num_blocks, options.block_size, options.kv_groups),
      speculator_(make_speculator(std::move(drafter), options)),
      scheduler_(options.scheduler, kv_cache_, speculator_.get()),
      adapters_(options.adapters),
      mailbox_(kMailboxCapacity) {
  publish_stats();
  // A full mailbox is that of an engine which does not get on: nobody is left to be told.
  loader_ =
      std::make_unique<AdapterLoader>(*workers_, [this](const HostAdapter& host, MadeAdapter made) {
        (void)mailbox_.try_send(AdapterMade{host.id, std::move(made)});
      });
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
        fmt::format("{} requests are running or waiting, which is the limit; try again later",
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
    handle_commands();
    try {
      if (num_paused_ > 0) cancel_slow_readers();
      settle_adapters();
      sample_when_known();
      while (can_submit() && submit_step()) sample_when_known();
      if (!in_flight_.empty()) {
        retire_step();
        publish_stats();
        continue;
      }
      // A quiet moment: what later steps need is made ready, a piece between two looks at the mail.
      if (refusal_ == nullptr) {
        const bool is_more = workers_->prepare_step();
        publish_prepared();
        if (is_more) continue;
      }
    } catch (const std::exception& error) {
      break_down(error);
    }
    publish_stats();
    // The mail that was drained above may have been the wake-up of the one who wants it to end.
    if (stop.stop_requested()) break;
    mailbox_.wait(idle_timeout_ms());
  }
  const Error stopped(Code::kCancelled, "the model is being unloaded or the daemon stops");
  fail_all(stopped);
  // What came meanwhile wants an answer too.
  if (refusal_ == nullptr) refusal_ = std::make_unique<Error>(stopped);
  handle_commands();
  drop_forgotten();
}

// Each on its own: one that throws takes neither the thread nor those behind it along.
void Engine::handle_commands() {
  mailbox_.drain(commands_);
  for (Command& command : commands_) {
    try {
      std::visit([this](auto& each) { handle(each); }, command);
    } catch (const std::exception& error) {
      break_down(error);
    }
  }
  commands_.clear();
}

// A step or a change of who runs that fails half-way has left sequences and device apart: nothing
// that runs can be trusted any more.
void Engine::break_down(const std::exception& error) {
  log_error("step failed, the engine stops", {{"error", error.what()}});
  const bool is_first = !failed_.exchange(true);
  for (const InFlight& step : in_flight_) {
    const bool has_prompt = step.scheduled.num_prefill_tokens > 0;
    ++(has_prompt ? metrics_.prefill : metrics_.decode).num_failed;
  }
  fail_all(Error(Code::kDeviceLost, error.what()));
  refusal_ = std::make_unique<Error>(Code::kDeviceLost, error.what());
  in_flight_.clear();
  ending_.clear();
  failing_.clear();
  if (is_first && options_.on_failure) options_.on_failure();
}

int Engine::idle_timeout_ms() const {
  return num_paused_ > 0 ? 500 : -1;
}

void Engine::handle(Submit& command) {
  ++counters_.num_requests;
  if (refusal_ != nullptr) {
    refuse(command, *refusal_);
    return;
  }
  try {
    start_request(command);
  } catch (const std::exception& error) {
    refuse(command, error_of(error));
  }
}

// Whatever is thrown, nothing of the request is left but the command's sink.
void Engine::start_request(Submit& command) {
  const uint64_t id = command.request->id;
  auto started = std::make_unique<LiveRequest>(std::move(command.request), tokenizer_);
  const auto [at, is_new] = live_.try_emplace(id, std::move(started));
  if (!is_new) throw Error(Code::kInternal, fmt::format("two requests have the id {}", id));
  LiveRequest& live = *at->second;
  try {
    admit(live);
  } catch (...) {
    for (const auto& sequence : live.sequences) scheduler_.remove(*sequence);
    leave_adapter(live);
    live_.erase(at);
    throw;
  }
  live.sink = std::move(command.sink);
  counters_.num_prompt_tokens += static_cast<int64_t>(live.request->prompt_ids.size());
}

void Engine::refuse(Submit& command, const Error& error) {
  --num_live_;
  ++counters_.num_failed;
  tell(*command.sink, error);
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
void Engine::fail_request(LiveRequest& live, const Error& error) {
  tell(*live.sink, error);
  ++counters_.num_failed;
  drop_request(live);
}

// Takes the request out of every list. Its memory stays until no step in flight names it.
void Engine::drop_request(LiveRequest& live) {
  if (live.paused) --num_paused_;
  leave_adapter(live);
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
  publish_adapters();
  const std::lock_guard lock(stats_mutex_);
  stats_.num_blocks_used = kv_cache_.num_used();
  stats_.num_blocks_cached = kv_cache_.num_cached();
  stats_.num_blocks_free = kv_cache_.num_free();
  stats_.num_running = scheduler_.num_running();
  stats_.num_waiting = scheduler_.num_waiting();
  stats_.counters = counters_;
  stats_.steps = metrics_;
  stats_.counters.num_preemptions = scheduler_.num_preemptions();
  if (speculator_ != nullptr) {
    stats_.counters.num_drafted_tokens = speculator_->counts().num_drafted;
  }
}

}  // namespace tgi
