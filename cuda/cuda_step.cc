// CudaDevice: a step from the batch to what it gave.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "cuda/cuda_device.h"
#include "cuda/device_state.h"
#include "cuda/kernels/slot_start.h"
#include "cuda/launch.h"
#include "engine/tensor/pool_rows.h"

namespace tgi::cuda {
namespace {

constexpr int32_t kMaxGraphRows = 512;

bool is_pure_decode(const Batch& batch) {
  return batch.score_rows.empty() && batch.num_tokens() == batch.num_sequences() &&
         static_cast<int32_t>(batch.sample_rows.size()) == batch.num_tokens();
}

bool has_drafts(const Batch& batch) {
  return std::ranges::any_of(batch.sample_rows,
                             [](const SampleRow& row) { return row.num_drafts > 0; });
}

}  // namespace

int32_t CudaDevice::max_graph_rows() const {
  return std::min({capacity_.num_slots, capacity_.max_tokens, kMaxGraphRows});
}

// 0: the step is launched as it is.
int32_t CudaDevice::bucket_of(const Batch& batch, const Forward& forward) const {
  if (!captures(forward) || !is_pure_decode(batch)) return 0;
  return graph_bucket(batch.num_tokens(), max_graph_rows());
}

// Of any of its sequences; remembers what slots start with.
bool CudaDevice::has_adapters(const Batch& batch) {
  if (slot_adapters_.empty()) return false;
  for (const SlotStart& start : batch.slot_starts) {
    slot_adapters_[static_cast<size_t>(start.slot)] = start.adapter;
  }
  return std::ranges::any_of(
      batch.slots, [&](int32_t slot) { return slot_adapters_[static_cast<size_t>(slot)] != 0; });
}

bool CudaDevice::prepare_step(Forward& forward) {
  if (!captures(forward)) return false;
  use_device(index_);
  StepKind kind = {.bucket = graphs_.largest_missing(&forward, max_graph_rows(), false),
                   .has_adapters = false};
  if (kind.bucket == 0 && has_seen_adapters_) {
    kind = {.bucket = graphs_.largest_missing(&forward, max_graph_rows(), true),
            .has_adapters = true};
  }
  if (kind.bucket == 0) return false;
  InFlight& flight = in_flight_[next_ticket_ % in_flight_.size()];
  if (flight.ticket != 0) wait_for(flight.done);
  clock_.begin();
  capture_step(flight, kind, forward);
  clock_.end();
  return true;
}

// A step of nobody's rows is run first: a kernel that is launched for the first time is loaded, a
// library takes memory, ranks connect, and a capture allows none of that. REQUIRES: the flight's
// pinned memory is free; it is when this returns.
void CudaDevice::capture_step(InFlight& flight, StepKind kind, Forward& forward) {
  const StepShape shape = {
      .num_tokens = kind.bucket, .num_logit_rows = kind.bucket, .num_sequences = kind.bucket};
  const size_t size_bytes =
      fill_step(nobody_, shape, plan_options_, capacity_, plan_, flight.arrays);
  check(cudaMemcpyAsync(step_.tokens, flight.staging.data(), size_bytes, cudaMemcpyHostToDevice,
                        stream_.get()),
        "sending a step");
  is_padded_ = true;
  reports_rows_ = slot_layout_->reported_cols > 0;
  has_adapters_ = kind.has_adapters;
  launch_forward(shape, forward);
  launch_sampling(forward);
  synchronize();
  graphs_.capture(
      stream_.get(), &forward, kind, [&] { launch_forward(shape, forward); },
      [&] { launch_sampling(forward); });
}

// The row of nobody's slot: padding rows find token 0 and the spare block there.
void CudaDevice::start_nobody() {
  SlotStartRow* const start = in_flight_[0].arrays.starts;
  *start = {.slot = slots_.num_slots, .last_token = 0, .adapter = 0, .sampling = {}};
  check(cudaMemcpyAsync(step_.starts, start, sizeof *start, cudaMemcpyHostToDevice, stream_.get()),
        "preparing the slot table");
  launch_slot_starts(stream_.get(), slots_, step_.starts, 1, kv_.num_blocks);
  stream_.synchronize();
}

// Penalties and biases are rare and of any length: copied apart.
void CudaDevice::start_slot_lists(InFlight& flight, const SlotStart& start) {
  const SamplingParams& sampling = start.sampling;
  if (!sampling.logit_bias.empty()) {
    TGI_CHECK(static_cast<int32_t>(sampling.logit_bias.size()) <= slots_.max_bias);
    static_assert(sizeof(LogitBias) == sizeof(TokenBiasEntry));
    flight.lists.copy(stream_.get(),
                      slots_.bias + static_cast<int64_t>(start.slot) * slots_.max_bias,
                      sampling.logit_bias.data(), sampling.logit_bias.size() * sizeof(LogitBias));
  }
  if (!sampling.has_penalties()) return;
  const auto num_ids = static_cast<int32_t>(start.token_ids.size());
  int32_t begin = 0;
  do {
    const int32_t count = std::min(num_ids - begin, kStartIds);
    flight.lists.copy(stream_.get(), start_ids_, start.token_ids.data() + begin,
                      static_cast<size_t>(count) * sizeof(int32_t));
    const int32_t num_prompt = std::clamp(start.num_prompt_tokens - begin, 0, count);
    launch_count_tokens(stream_.get(), slots_, start.slot, start_ids_, count, num_prompt,
                        begin == 0);
    begin += count;
  } while (begin < num_ids);
}

void CudaDevice::launch_forward(const StepShape& shape, Forward& forward) {
  shape_ = shape;
  launch_resolve_tokens(stream_.get(), slots_, step_.tokens, shape.num_tokens, token_ids_);
  for (const Rope& rope : ropes_) {
    launch_cos_sin(stream_.get(), rope.table, step_.tokens, shape.num_tokens, cos_sin_,
                   kMaxRotaryColumns);
  }
  forward.run(shape.num_tokens, shape.num_logit_rows);
}

void CudaDevice::launch_sampling(Forward& forward) {
  if (shape_.num_logit_rows > 0) forward.sample(shape_.num_logit_rows);
}

Ticket CudaDevice::submit(const Batch& batch, Forward& forward) {
  use_device(index_);
  throw_if_lost();
  clock_.begin();
  InFlight& flight = in_flight_[next_ticket_ % in_flight_.size()];
  if (flight.ticket != 0) wait_for(flight.done);
  flight.lists.clear();
  flight.ticket = next_ticket_++;
  flight.num_sampled = static_cast<int32_t>(batch.sample_rows.size());
  flight.num_scores = static_cast<int32_t>(batch.score_rows.size());
  flight.num_masks = batch.num_masks();
  flight.num_reported = batch.reports_rows ? batch.num_tokens() : 0;
  flight.pooled_rows.assign(batch.pooled_rows.begin(), batch.pooled_rows.end());
  flight.is_sampled = false;
  flight.forward = &forward;

  serves_ = serves_ || forward.is_replayable();
  const int32_t bucket = bucket_of(batch, forward);
  const StepKind kind = {.bucket = bucket, .has_adapters = has_adapters(batch)};
  if (bucket != 0 && !graphs_.has(&forward, kind)) capture_step(flight, kind, forward);
  const StepShape shape =
      bucket != 0
          ? StepShape{.num_tokens = bucket, .num_logit_rows = bucket, .num_sequences = bucket}
          : StepShape{.num_tokens = batch.num_tokens(),
                      .num_logit_rows = flight.num_sampled + flight.num_scores,
                      .num_sequences = batch.num_sequences(),
                      .has_drafts = has_drafts(batch)};
  const size_t size_bytes = fill_step(batch, shape, plan_options_, capacity_, plan_, flight.arrays);
  check(cudaMemcpyAsync(step_.tokens, flight.staging.data(), size_bytes, cudaMemcpyHostToDevice,
                        stream_.get()),
        "sending a step");
  launch_slot_starts(stream_.get(), slots_, step_.starts,
                     static_cast<int32_t>(batch.slot_starts.size()), kv_.num_blocks);
  for (const SlotStart& start : batch.slot_starts) start_slot_lists(flight, start);
  launch_block_appends(stream_.get(), slots_, step_.appends,
                       static_cast<int32_t>(batch.block_appends.size()));

  is_padded_ = bucket != 0;
  reports_rows_ = batch.reports_rows;
  has_adapters_ = kind.has_adapters;
  flight.kind = kind;
  if (is_padded_) {
    graphs_.run(stream_.get(), kind, StepPart::kForward);
  } else {
    launch_forward(shape, forward);
  }
  fetch_rows(flight.reported, reported_, flight.num_reported, slot_layout_->reported_cols);
  return flight.ticket;
}

void CudaDevice::sample(Ticket ticket, const TokenMasks& masks) {
  use_device(index_);
  throw_if_lost();
  InFlight& flight = in_flight_[ticket % in_flight_.size()];
  TGI_CHECK(flight.ticket == ticket && ticket + 1 == next_ticket_ && !flight.is_sampled);
  if (flight.num_masks > 0) {
    const size_t num_words = static_cast<size_t>(slots_.vocab_size + 31) / 32;
    TGI_CHECK(masks.bits.size() == static_cast<size_t>(flight.num_masks) * num_words);
    const size_t size_bytes = masks.bits.size() * sizeof(uint32_t);
    std::memcpy(flight.masks.data(), masks.bits.data(), size_bytes);
    check(cudaMemcpyAsync(masks_, flight.masks.data(), size_bytes, cudaMemcpyHostToDevice,
                          stream_.get()),
          "sending which tokens a step may draw");
  }
  if (flight.kind.bucket != 0) {
    graphs_.run(stream_.get(), flight.kind, StepPart::kSampling);
  } else {
    launch_sampling(*flight.forward);
  }
  const auto num_rows = static_cast<size_t>(flight.num_sampled + flight.num_scores);
  if (num_rows > 0) {
    check(cudaMemcpyAsync(flight.results.data(), sampled_, num_rows * sizeof(SampledRow),
                          cudaMemcpyDeviceToHost, stream_.get()),
          "fetching a step's tokens");
  }
  if (!flight.pooled_rows.empty()) {
    fetch_rows(flight.pooled, pooled_, flight.num_sampled + flight.num_scores,
               slot_layout_->pooled_cols);
  }
  flight.done.record(stream_.get());
  flight.is_sampled = true;
}

// (num_rows, cols) of f32.
void CudaDevice::fetch_rows(const Buffer& to, const float* from, int64_t num_rows, int64_t cols) {
  if (num_rows == 0 || cols == 0) return;
  check(cudaMemcpyAsync(to.data(), from, static_cast<size_t>(num_rows * cols) * sizeof(float),
                        cudaMemcpyDeviceToHost, stream_.get()),
        "fetching rows of a step");
}

void CudaDevice::declare_lost(const std::string& reason) {
  const std::lock_guard lock(lost_mutex_);
  if (is_lost_) return;
  lost_reason_ = reason;
  is_lost_ = true;
}

void CudaDevice::throw_if_lost() const {
  if (!is_lost_) return;
  const std::lock_guard lock(lost_mutex_);
  throw Error(Code::kDeviceLost, lost_reason_);
}

void CudaDevice::drop_captured_steps() {
  (void)cudaSetDevice(index_);
  graphs_.clear();
}

// A kernel that waits for another GPU may never end: then somebody else says that it is lost, and
// what it leaves behind is no result.
void CudaDevice::wait_for(const Event& done) {
  if (options_.world_size == 1) {
    done.synchronize();
  } else {
    while (!done.has_passed()) {
      throw_if_lost();
      std::this_thread::yield();
    }
  }
  throw_if_lost();
}

void CudaDevice::synchronize() {
  ready_.record(stream_.get());
  wait_for(ready_);
}

void CudaDevice::take_rows(const InFlight& flight) {
  const auto* const reported = static_cast<const float*>(flight.reported.data());
  result_.reported.assign(reported,
                          reported + int64_t{flight.num_reported} * slot_layout_->reported_cols);
  const int64_t cols = slot_layout_->pooled_cols;
  result_.pooled.resize(flight.pooled_rows.size());
  for (size_t i = 0; i < flight.pooled_rows.size(); ++i) {
    pool_rows(flight.pooled_rows[i], static_cast<const float*>(flight.pooled.data()), cols, cols,
              result_.pooled[i]);
  }
}

const StepResult& CudaDevice::wait(Ticket ticket) {
  use_device(index_);
  InFlight& flight = in_flight_[ticket % in_flight_.size()];
  TGI_CHECK(flight.ticket == ticket && flight.is_sampled);
  wait_for(flight.done);
  clock_.end();
  const auto* const rows = static_cast<const SampledRow*>(flight.results.data());
  const auto take_tops = [](const SampledRow& row, std::vector<TokenScore>& out) {
    out.clear();
    for (int32_t k = 0; k < row.num_top; ++k) {
      out.push_back({.id = row.top_ids[k], .logprob = row.top_logprobs[k]});
    }
  };
  result_.sampled.resize(static_cast<size_t>(flight.num_sampled));
  for (int32_t i = 0; i < flight.num_sampled; ++i) {
    SampledToken& out = result_.sampled[static_cast<size_t>(i)];
    out.token = {.id = rows[i].id, .logprob = rows[i].logprob};
    take_tops(rows[i], out.top_tokens);
  }
  result_.scores.clear();
  result_.score_tops.resize(static_cast<size_t>(flight.num_scores));
  for (int32_t i = 0; i < flight.num_scores; ++i) {
    const SampledRow& row = rows[flight.num_sampled + i];
    result_.scores.push_back(row.logprob);
    take_tops(row, result_.score_tops[static_cast<size_t>(i)]);
  }
  take_rows(flight);
  return result_;
}

}  // namespace tgi::cuda
