// The step loop: one thread that owns the scheduler, the KV cache and all sequences, for every
// backend. Public methods may be called from any thread; they put a command into the engine's
// mailbox and return.
//
// A reader that falls behind pauses its own request: with kMaxUnacknowledged token events out (and
// what their last step gave) the engine waits for acknowledge(), and after slow_reader_timeout the
// request is cancelled. Others never notice.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "base/mailbox.h"
#include "engine/runtime/adapter_loader.h"
#include "engine/runtime/live_request.h"
#include "engine/runtime/step_metrics.h"
#include "engine/runtime/worker.h"
#include "engine/sched/adapter_pool.h"
#include "engine/sched/scheduler.h"

namespace tgi {

struct EngineOptions {
  SchedulerOptions scheduler;
  int32_t num_blocks = 0;
  int32_t block_size = 16;
  KvGroups kv_groups{};
  int32_t max_waiting = 8192;  // requests; more are refused at once
  std::chrono::milliseconds slow_reader_timeout{30000};
  int32_t vocab_size = 0;            // of the logits
  bool drafts_at_any_price = false;  // as many as a request wants, whatever they gain
  std::vector<int32_t> eos_token_ids;
  AdapterPoolOptions adapters;
  // Called once, on the engine thread, when a step failed beyond repair and everybody was answered.
  // (optional)
  std::function<void()> on_failure;
};

struct EngineStats {
  int64_t num_blocks_used = 0;
  int64_t num_blocks_cached = 0;
  int64_t num_blocks_free = 0;
  int64_t num_running = 0;             // sequences
  int64_t num_waiting = 0;             // sequences
  std::vector<int32_t> prepared_rows;  // sizes of steps that the device has ready
  std::unordered_map<int64_t, AdapterPool::Standing> adapters;  // by HostAdapter.id
  int64_t adapter_bytes_used = 0;                               // of each rank
  int32_t num_active_adapters = 0;
  ipc::Counters counters;
  StepMetrics steps;
};

// What shows whoever watches the engine that it makes progress.
struct EngineProgress {
  int64_t num_steps = 0;  // that have ended
  bool has_work = false;  // some request could have one: it is not paused by its reader
};

class Engine {
 public:
  static constexpr int32_t kMaxUnacknowledged = 512;

  // `tokenizer` must outlive the engine. `drafter`: (optional) drafts for requests that want it.
  // REQUIRES of it: no layer carries a state, which can't go back; where it reads what tokens were
  // drawn from, the workers report that. Starts the thread.
  Engine(const EngineOptions& options,
         std::unique_ptr<WorkerGroup> workers,
         const Tokenizer& tokenizer,
         std::unique_ptr<Drafter> drafter = nullptr);

  // Cancels what still runs (each gets a final error) and joins the thread.
  ~Engine();

  // Throws kOverloaded when too many requests wait. Takes both over; request->id must be unique.
  // A request that wants to be announced is, before this returns and on this thread.
  void submit(std::unique_ptr<Request> request, std::unique_ptr<ResponseSink> sink);

  // The client is gone: no more events, blocks freed before the next step. Unknown ids are ignored.
  void cancel(uint64_t request_id);

  // The reader has taken `num_events` more token events.
  void acknowledge(uint64_t request_id, int32_t num_events);

  // Every running request gets `error` as its end, from now on new ones as well.
  void refuse_all(const Error& error);

  // What an adapter will take on the device.
  int64_t adapter_bytes(const AdapterParts& parts) const;
  // Throws kAdapter where the model takes none. Any thread.
  void require_adapters(const std::string& name) const;
  // Any thread.
  const AdapterPoolOptions& adapter_limits() const { return options_.adapters; }
  // It is loaded soon, and stays on the device although no request wants it. One that does not fit
  // beside those that are pinned is not, which the log says; requests that wait for what fits no
  // more are refused.
  void pin_adapter(std::shared_ptr<const HostAdapter> adapter,
                   std::function<void(const Error&)> on_failed = {});
  void unpin_adapter(int64_t adapter);
  // No request will come with it any more: what is cached of it goes when those that run are done.
  // Then `on_gone` is called, on the engine's thread; it may not throw. (optional)
  void forget_adapter(int64_t adapter, std::function<void()> on_gone = {});

  EngineStats stats() const;
  int64_t num_live_requests() const { return num_live_.load(); }

  // Waits for nobody, also when a step hangs.
  EngineProgress progress() const {
    return {.num_steps = num_steps_ended_.load(),
            .has_work = num_live_.load() > int64_t{num_paused_.load()}};
  }

  // Set when a step failed beyond repair: all requests were answered and none is taken any more.
  bool has_failed() const { return failed_.load(); }

 private:
  struct Submit {
    std::unique_ptr<Request> request;
    std::unique_ptr<ResponseSink> sink;
  };
  struct Cancel {
    uint64_t request_id;
  };
  struct Acknowledge {
    uint64_t request_id;
    int32_t num_events;
  };
  struct Refuse {
    Error error;
  };
  struct AdapterMade {
    int64_t adapter;
    MadeAdapter made;
  };
  struct Pin {
    std::shared_ptr<const HostAdapter> adapter;
    std::function<void(const Error&)> on_failed;
  };
  struct Unpin {
    int64_t adapter;
  };
  struct Forget {
    int64_t adapter;
    std::function<void()> on_gone;
  };
  using Command =
      std::variant<Submit, Cancel, Acknowledge, Refuse, AdapterMade, Pin, Unpin, Forget>;

  struct InFlight {
    Ticket ticket;
    Clock::time_point began;    // to be built
    Clock::time_point started;  // on the device, at the earliest
    ScheduledStep scheduled;
    bool is_sampled = false;
  };

  // On the device, or on its way there.
  struct OnDevice {
    int32_t place = 0;
    std::unique_ptr<Adapter> adapter;
  };
  struct LeavingAdapter {
    uint64_t step;  // the last that may name it
    std::unique_ptr<Adapter> adapter;
  };

  void run(const std::stop_token& stop);
  void send(Command&& command);
  void handle_commands();
  void handle(Submit& command);
  void handle(Cancel& command);
  void handle(Acknowledge& command);
  void handle(Refuse& command);
  void handle(AdapterMade& command);
  void handle(Pin& command);
  void handle(Unpin& command);
  void handle(Forget& command);

  void start_request(Submit& command);
  void refuse(Submit& command, const Error& error);

  // engine_adapters.cc
  void require_room(const HostAdapter& adapter) const;
  Error no_room_for(const HostAdapter& adapter) const;
  void admit(LiveRequest& live);
  static void give_place(LiveRequest& live, int32_t place);
  void let_run(const std::vector<uint64_t>& requests, int32_t place);
  void leave_adapter(const LiveRequest& live);
  void settle_adapters();
  void refuse_hopeless();
  void take_off_device(int64_t adapter, int32_t place);
  bool has_gone(int64_t adapter);
  void put_back_waiting(int64_t adapter);
  void drop_left_adapters();
  void drop_forgotten();
  void publish_adapters();

  bool can_submit() const;
  bool submit_step();
  void sample_when_known();
  bool masks_are_known(const ScheduledStep& scheduled) const;
  void fill_masks(ScheduledStep& scheduled);
  int32_t fill_mask_rows(LiveSequence& sequence, std::span<uint32_t> masks);
  bool fill_mask(LiveSequence& sequence, int32_t num_ahead, std::span<uint32_t> mask);
  static bool guide_allows(TokenGuide& guide, int32_t draft_id);
  static void keep_forced(const Sequence& sequence, std::span<uint32_t> mask);
  void retire_step();
  void take_scores(const ScheduledStep& scheduled, const StepResult& result);
  void take_pooled(const ScheduledStep& scheduled, const StepResult& result, Clock::time_point now);
  void take_tokens(const ScheduledStep& scheduled, const StepResult& result, Clock::time_point now);
  bool guide_accepts(LiveSequence& sequence, int32_t token_id);
  // Whether the sequence goes on; where it does not, it may be gone.
  bool take_token(LiveSequence& sequence,
                  const SampledToken& sampled,
                  bool is_skipped,
                  Clock::time_point now);
  void finish_request(LiveRequest& live);
  void mark_failed(LiveRequest& live, const Error& error);
  void mark_not_finite(const Sequence& sequence, int32_t num_tokens);
  void fail_marked();
  void fail_request(LiveRequest& live, const Error& error);
  void drop_request(LiveRequest& live);
  void fail_all(const Error& error);
  void break_down(const std::exception& error);
  void cancel_slow_readers();
  void count_cancelled(const LiveRequest& live);
  void observe_step(const InFlight& step, Clock::time_point computed);
  int idle_timeout_ms() const;
  void publish_prepared();
  void publish_stats();

  const EngineOptions options_;
  const std::unique_ptr<WorkerGroup> workers_;
  const Tokenizer& tokenizer_;
  KvCache kv_cache_;
  std::unique_ptr<Speculator> speculator_;  // (optional)
  Scheduler scheduler_;
  AdapterPool adapters_;
  std::unordered_map<int64_t, std::shared_ptr<const HostAdapter>> hosts_;  // seen, not forgotten
  std::unordered_map<int64_t, OnDevice> on_device_;
  std::vector<LeavingAdapter> leaving_adapters_;
  // Of those that are pinned: who hears when that ends by a failure.
  std::unordered_map<int64_t, std::function<void(const Error&)>> pins_;
  std::vector<Forget> forgotten_adapters_;        // of which something is left
  std::unordered_set<int64_t> changed_adapters_;  // whose standing is to be published
  uint64_t last_submitted_ = 0;                   // steps, by the scheduler's count
  uint64_t last_retired_ = 0;
  std::unordered_map<uint64_t, std::unique_ptr<LiveRequest>> live_;
  // Answered, but a step in flight still names them.
  std::vector<std::unique_ptr<LiveRequest>> ending_;
  std::vector<LiveRequest*> failing_;  // with a failure, in the step that is gone through
  std::deque<InFlight> in_flight_;
  Clock::time_point last_computed_;         // when the device was done with the step before
  std::vector<ScheduledStep> spare_steps_;  // for their capacity
  Batch batch_;
  TokenMasks masks_;
  std::vector<Command> commands_;
  std::atomic<int32_t> num_paused_{0};  // written by the engine's thread alone
  std::atomic<int64_t> num_steps_ended_{0};
  ipc::Counters counters_;
  StepMetrics metrics_;
  std::unique_ptr<Error> refusal_;

  Mailbox<Command> mailbox_;
  std::atomic<int64_t> num_live_{0};
  std::atomic<bool> failed_{false};
  mutable std::mutex stats_mutex_;
  EngineStats stats_;  // guarded by stats_mutex_
  std::unique_ptr<AdapterLoader> loader_;
  std::jthread thread_;  // last: starts when everything else is there
};

}  // namespace tgi
