// A worker group without a model: the next token is a hash of all tokens before it (and of the
// seed, when sampling), so that a mistake in what was computed for whom shows as a wrong token.
// Also a sink that keeps what it is told.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "base/log.h"
#include "engine/runtime/engine.h"
#include "engine/text/byte_tokenizer.h"

namespace tgi {

// The engine logs a line a request; thousands of them hide what a test says.
inline const bool kQuiet = (set_log_level(LogLevel::kOff), true);

inline int32_t fake_next_token(std::span<const int32_t> context,
                               int32_t vocab,
                               uint64_t seed = 0,
                               int32_t memory = 0) {
  uint32_t hash = 2166136261U ^ static_cast<uint32_t>(seed) ^ static_cast<uint32_t>(seed >> 32);
  if (memory > 0) {
    hash ^= static_cast<uint32_t>(context.size() / 19);
    context = context.last(std::min(context.size(), static_cast<size_t>(memory)));
  }
  for (const int32_t token : context) hash = (hash ^ static_cast<uint32_t>(token)) * 16777619U;
  return static_cast<int32_t>((hash >> 8) % static_cast<uint32_t>(vocab));
}

// Of the steps that were waited for, behind how many the next was on its way: its forward pass, and
// its tokens too.
struct AheadCounts {
  int64_t num_steps = 0;
  int64_t num_submitted = 0;
  int64_t num_sampled = 0;
};

struct FakeOptions {
  int depth = 1;
  // 0: a token follows from all before it; else from so many, so that texts repeat themselves, but
  // another way from time to time.
  int32_t memory = 0;
  std::chrono::microseconds step_time{0};
  std::chrono::microseconds token_time{0};  // more for each row
  int64_t fail_at_step = -1;
  int32_t vocab = 26;   // tokens are 'a' + 0..25
  int32_t poison = -1;  // a token after which the logits of a sequence are not finite
  // (optional) rows of each step that mixes a prompt's chunk with sequences that decode
  std::vector<int32_t>* mixed_rows = nullptr;
  std::chrono::microseconds adapter_time{0};  // to make one
  AheadCounts* ahead = nullptr;               // (optional)
};

// Adapters of fake workers are told apart by the site of their one part; its first_output is their
// size. Those from this site on can't be made.
inline constexpr int32_t kFirstBrokenAdapter = 1000;

class FakeWorkers final : public WorkerGroup {
 public:
  explicit FakeWorkers(FakeOptions options) : options_(options) {}

  int max_steps_in_flight() const override { return options_.depth; }

  Ticket submit(const Batch& batch) override {
    TGI_CHECK(num_sampled_ == num_steps_);
    if (++num_steps_ == options_.fail_at_step)
      throw Error(Code::kDeviceLost, "the fake device fell off the bus");
    for (const SlotStart& start : batch.slot_starts) {
      slots_[start.slot].assign(start.token_ids.begin(), start.token_ids.end());
      seeds_[start.slot] = start.sampling.do_sample ? start.sampling.seed : 0;
      adapters_[start.slot] = start.adapter;
    }
    for (const int32_t slot : batch.slots) (void)tag_of(slot);
    sample_rows_ = batch.sample_rows;
    inputs_ = batch.token_ids;
    StepResult result;
    for (const ScoreRow& row : batch.score_rows) {
      const bool is_poisoned = batch.token_ids[static_cast<size_t>(row.row)] == options_.poison;
      result.scores.push_back(is_poisoned ? std::numeric_limits<float>::quiet_NaN()
                                          : static_cast<float>(-row.target_id));
      auto& tops = result.score_tops.emplace_back();
      for (int32_t i = 0; i < row.num_top; ++i) {
        tops.push_back(
            {.id = row.target_id + i, .logprob = static_cast<float>(-row.target_id - i)});
      }
    }
    if (options_.mixed_rows != nullptr && batch.num_sequences() > 1 &&
        batch.num_tokens() > batch.num_sequences()) {
      options_.mixed_rows->push_back(batch.num_tokens());
    }
    times_.push_back(options_.step_time + batch.num_tokens() * options_.token_time);
    results_.push_back(std::move(result));
    return static_cast<Ticket>(num_steps_);
  }

  void sample(Ticket ticket, const TokenMasks& masks) override {
    TGI_CHECK(static_cast<int64_t>(ticket) == num_steps_ && num_sampled_ + 1 == num_steps_);
    ++num_sampled_;
    const uint32_t* mask = masks.bits.data();
    std::vector<int32_t> context;
    bool counts = true;
    for (const SampleRow& row : sample_rows_) {
      auto& known = slots_[row.slot];
      if (row.num_drafts == 0) {
        known.resize(static_cast<size_t>(row.position));
        context = known;
        counts = true;
      } else {
        const int32_t input = inputs_[static_cast<size_t>(row.row)];
        counts = counts && results_.back().sampled.back().token.id == input;
        context.push_back(input);
      }
      TGI_CHECK(static_cast<int32_t>(context.size()) == row.position);
      const bool is_poisoned =
          std::find(context.begin(), context.end(), options_.poison) != context.end();
      const uint64_t seed = seeds_[row.slot] ^ tag_of(row.slot);
      int32_t id =
          is_poisoned ? 0 : 'a' + fake_next_token(context, options_.vocab, seed, options_.memory);
      if (row.is_masked) {
        const int32_t num_ids = masks.words_per_row * 32;
        while (((mask[id / 32] >> (id % 32)) & 1U) == 0) id = (id + 1) % num_ids;
        mask += masks.words_per_row;
      }
      if (counts) {
        known = context;
        known.push_back(id);
      }
      const float logprob = is_poisoned ? std::numeric_limits<float>::quiet_NaN() : -0.5F;
      results_.back().sampled.push_back(
          {.token = {.id = id, .logprob = logprob}, .top_tokens = {}});
    }
    TGI_CHECK(mask == masks.bits.data() + masks.bits.size());
  }

  int64_t adapter_bytes(const AdapterParts& parts) const override {
    return parts[0][0].first_output;
  }

  std::unique_ptr<Adapter> make_adapter(const AdapterParts& parts) override {
    if (options_.adapter_time.count() > 0) std::this_thread::sleep_for(options_.adapter_time);
    auto out = std::make_unique<FakeAdapter>(num_adapters_);
    out->tag = static_cast<uint64_t>(parts[0][0].site);
    if (out->tag >= kFirstBrokenAdapter) throw Error(Code::kOutOfMemory, "the fake device is full");
    return out;
  }

  void set_adapter(int32_t place, const Adapter* adapter) override {
    TGI_CHECK(place >= 1);
    TGI_CHECK((places_[place] == nullptr) != (adapter == nullptr));
    places_[place] = static_cast<const FakeAdapter*>(adapter);
  }

  // That exist, on the device or on their way.
  int64_t num_adapters() const { return *num_adapters_; }

  const StepResult& wait(Ticket /*ticket*/) override {
    // One after the other, as a device does them.
    if (times_.front().count() > 0) std::this_thread::sleep_for(times_.front());
    times_.pop_front();
    if (options_.ahead != nullptr) {
      AheadCounts& ahead = *options_.ahead;
      ++ahead.num_steps;
      if (results_.size() > 1) ++ahead.num_submitted;
      if (results_.size() > 1 && num_sampled_ == num_steps_) ++ahead.num_sampled;
    }
    current_ = std::move(results_.front());
    results_.pop_front();
    return current_;
  }

 private:
  struct FakeAdapter final : Adapter {
    explicit FakeAdapter(std::shared_ptr<std::atomic<int64_t>> all) : count(std::move(all)) {
      ++*count;
    }
    ~FakeAdapter() override {
      tag = 0;
      --*count;
    }
    uint64_t tag = 0;
    std::shared_ptr<std::atomic<int64_t>> count;
  };

  // What the slot's adapter does to the draw. Its place must not be empty.
  uint64_t tag_of(int32_t slot) {
    const int32_t place = adapters_[slot];
    if (place == 0) return 0;
    TGI_CHECK(places_[place] != nullptr && places_[place]->tag != 0);
    return places_[place]->tag;
  }

  const FakeOptions options_;
  std::map<int32_t, int32_t> adapters_;  // by slot: its place
  std::map<int32_t, const FakeAdapter*> places_;
  std::shared_ptr<std::atomic<int64_t>> num_adapters_ = std::make_shared<std::atomic<int64_t>>(0);
  int64_t num_steps_ = 0;
  int64_t num_sampled_ = 0;
  std::vector<SampleRow> sample_rows_;  // of the step submitted last
  std::vector<int32_t> inputs_;         // ... its token ids
  std::map<int32_t, std::vector<int32_t>> slots_;
  std::map<int32_t, uint64_t> seeds_;
  std::deque<StepResult> results_;
  std::deque<std::chrono::microseconds> times_;
  StepResult current_;
};

// What one request was told. Outlives the sink that fills it.
struct Answer {
  std::mutex mutex;
  std::condition_variable changed;
  std::string streamed;
  std::map<int64_t, std::vector<ipc::TokenEvent>> events;  // of each sequence
  int num_events = 0;
  bool accepted_first = false;  // before any token
  std::unique_ptr<ipc::AcceptedEvent> accepted;
  std::unique_ptr<ipc::DoneEvent> done;
  std::unique_ptr<Error> error;

  bool wait_for_end(int timeout_ms = 20000) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                            [&] { return done || error; });
  }
  bool wait_for_events(int count, int timeout_ms = 20000) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                            [&] { return num_events >= count; });
  }
};

class AnswerSink final : public ResponseSink {
 public:
  explicit AnswerSink(Answer& answer) : answer_(answer) {}
  void on_accepted(const ipc::AcceptedEvent& event) override {
    const std::lock_guard lock(answer_.mutex);
    answer_.accepted = std::make_unique<ipc::AcceptedEvent>(event);
    answer_.accepted_first = answer_.num_events == 0;
  }
  void on_token(ipc::TokenEvent&& event) override {
    const std::lock_guard lock(answer_.mutex);
    answer_.streamed += event.text;
    answer_.events[event.index].push_back(std::move(event));
    ++answer_.num_events;
    answer_.changed.notify_all();
  }
  void on_done(ipc::DoneEvent&& event) override {
    const std::lock_guard lock(answer_.mutex);
    answer_.done = std::make_unique<ipc::DoneEvent>(std::move(event));
    answer_.changed.notify_all();
  }
  void on_error(const Error& error) override {
    const std::lock_guard lock(answer_.mutex);
    answer_.error = std::make_unique<Error>(error);
    answer_.changed.notify_all();
  }

 private:
  Answer& answer_;
};

}  // namespace tgi
