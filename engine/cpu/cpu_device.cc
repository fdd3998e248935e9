// CpuDevice: memory, state and steps. The ops are in cpu_ops.cc.
#include "engine/cpu/cpu_device.h"

#include <fmt/format.h>

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "engine/cpu/cpu_device_internal.h"
#include "engine/cpu/flush_denormals.h"
#include "engine/cpu/host_resources.h"
#include "engine/cpu/panel_matrix.h"
#include "engine/cpu/stacked_matrix.h"

namespace tgi {

CpuDevice::CpuDevice(const KernelTable& kernels,
                     const CpuOptions& options,
                     std::vector<LeftOutKernels> left_out)
    : kernels_(kernels),
      pool_(options.num_threads, options.pin_threads, options.rank * options.num_threads) {
  info_ = {.backend = "cpu",
           .isa = std::string(kernels.isa),
           .description = cpu_description(),
           .num_threads = pool_.num_threads(),
           .memory_bytes = available_memory_bytes() / options.world_size,
           .activation_dtype = DType::kF32,
           .keeps = {.stored_integers = true,
                     .integer_heads = true,
                     .stored_tables = true,
                     .stacks = true},
           .left_out = std::move(left_out),
           .takes_adapters = true,
           .takes_encoders = true,
           .chooses_tokens = true,
           .compresses_tokens = true,
           .reports_rows = true};
}

Buffer CpuDevice::allocate(size_t size_bytes, std::string_view purpose) {
  return map_memory(size_bytes, purpose);
}

void CpuDevice::copy_to_device(void* to, const void* from, size_t size_bytes) {
  std::memcpy(to, from, size_bytes);
}

void CpuDevice::copy_to_host(void* to, const void* from, size_t size_bytes) {
  std::memcpy(to, from, size_bytes);
}

int64_t CpuDevice::matrix_bytes(std::string_view format,
                                const MatrixStorage& storage,
                                int64_t rows,
                                int64_t cols) const {
  require_format(format, storage, "matrix");
  return PanelMatrix::bytes(PanelMatrix::layout_for(storage, kernels_.pair_order, cols), rows);
}

std::unique_ptr<Matrix> CpuDevice::make_matrix(std::span<const HostWeight> pieces,
                                               const MatrixStorage& storage) {
  return std::make_unique<PanelMatrix>(pieces, storage, kernels_, pool_);
}

std::unique_ptr<Matrix> CpuDevice::stack_matrices(std::vector<std::unique_ptr<Matrix>> parts) {
  return std::make_unique<StackedMatrix>(std::move(parts));
}

int32_t CpuDevice::add_rope(const RopeSpec& rope) {
  int32_t first_column = 0;
  for (const Rope& other : ropes_) first_column += other.spec.rotary_dim;
  if (first_column + rope.rotary_dim > kMaxRotaryColumns) {
    throw Error(Code::kUnsupported,
                fmt::format("rotary dimensions of all kinds of layers: the cpu backend holds {}, "
                            "got {}",
                            kMaxRotaryColumns, first_column + rope.rotary_dim));
  }
  ropes_.push_back({.spec = rope, .first_column = first_column, .filled_for = 0});
  return static_cast<int32_t>(ropes_.size()) - 1;
}

int64_t CpuDevice::kv_bytes(const KvLayout& layout) const {
  int64_t longest = layout.head_dim;
  for (const std::vector<KvHeads>& group : layout.groups) {
    for (const KvHeads& heads : group) {
      longest = std::max<int64_t>({longest, heads.head_dim, heads.value_cols()});
    }
  }
  if (longest > kMaxHeadDim) {
    throw Error(Code::kUnsupported,
                fmt::format("head_dim {}: the cpu backend goes up to {}", longest, kMaxHeadDim));
  }
  return PanelKvCache::bytes(layout);
}

int64_t CpuDevice::slot_bytes(const SlotLayout& layout) const {
  const int64_t tokens = layout.max_batch_tokens;
  int64_t total = SlotTable::bytes(layout);
  total += kLogitTileRows * round_up(layout.vocab_size, 16) * int64_t{sizeof(float)};
  total += tokens * int64_t{sizeof(TokenPlace)};
  total += (layout.num_slots + int64_t{1}) * int64_t{sizeof(int64_t)};
  total +=
      pool_.num_threads() * (SamplerScratch::bytes(layout.vocab_size) + kAttentionScratchBytes);
  total += static_cast<int64_t>(cos_sin_bytes(layout) + prepared_bytes(layout));
  if (layout.num_experts > 0) total += ExpertRoutes::bytes(layout);
  total += state_bytes(layout.state, layout.num_slots);
  total += choice_bytes(layout);
  if (layout.max_adapters > 0) total += pool_.num_threads() * LowRankScratch::bytes();
  total += tokens * layout.reported_cols * int64_t{sizeof(float)};
  return total;
}

void CpuDevice::allocate_state(const KvLayout& kv, const SlotLayout& slots) {
  TGI_CHECK(slots.block_size == kv.block_size);
  (void)kv_bytes(kv);  // throws for what is not supported
  slot_layout_ = slots;
  kv_ = std::make_unique<PanelKvCache>(kv, kernels_.pair_order);
  slots_ = std::make_unique<SlotTable>(slots);
  token_places_.resize(static_cast<size_t>(slots.max_batch_tokens));
  first_task_.resize(static_cast<size_t>(slots.num_slots) + 1);
  cos_sin_ = map_memory(cos_sin_bytes(slots), "cosines and sines");
  logits_ = map_memory(
      kLogitTileRows * static_cast<size_t>(round_up(slots.vocab_size, 16)) * sizeof(float),
      "logits");
  prepared_ = map_memory(prepared_bytes(slots), "prepared activations");
  if (slots.state.num_layers > 0) {
    const int64_t size = state_bytes(slots.state, slots.num_slots);
    state_ = map_memory(static_cast<size_t>(size), "states of recurrent layers");
  }
  if (slots.num_experts > 0) {
    routes_ = ExpertRoutes(slots.num_experts, slots.experts_per_token, slots.max_batch_tokens);
    expert_tasks_.reserve(static_cast<size_t>(slots.num_experts));
  }
  if (slots.num_choices > 0) {
    choices_ = TokenChoices(slots);
    choice_scores_ = map_memory(choice_scores_bytes(slots), "scores of tokens");
  }
  result_.reported.reserve(static_cast<size_t>(slots.max_batch_tokens) *
                           static_cast<size_t>(slots.reported_cols));
  low_rank_scratch_.clear();
  if (slots.max_adapters > 0) {
    adapters_.assign(static_cast<size_t>(slots.max_adapters) + 1, nullptr);
    adapter_rows_.reserve(slots.max_batch_tokens);
    output_adapter_rows_.reserve(kLogitTileRows);
    expert_adapter_rows_.reserve(int64_t{slots.max_batch_tokens} * slots.experts_per_token);
    low_rank_tasks_.reserve(static_cast<size_t>(slots.max_batch_tokens));
    low_rank_scratch_.resize(static_cast<size_t>(pool_.num_threads()));
  }
  scratch_.clear();
  for (int thread = 0; thread < pool_.num_threads(); ++thread) {
    Scratch& scratch = scratch_.emplace_back(slots.vocab_size);
    scratch.attention = map_memory(kAttentionScratchBytes, "attention workspace");
    if (slots.num_choices == 0) continue;
    scratch.choice = map_memory(kChoiceScratchBytes, "scores of heads");
    scratch.gathered.reserve(static_cast<size_t>(context_of(slots)));
    scratch.sorted.reserve(static_cast<size_t>(context_of(slots)));
  }
}

Ticket CpuDevice::submit(const Batch& batch, Forward& forward) {
  const FlushDenormals flush;
  pool_.pin_caller();
  ++step_;
  batch_ = &batch;
  slots_->apply(batch);
  for (size_t i = 0; i < batch.slots.size(); ++i) {
    const int32_t begin = batch.cu_seqlens_q[i];
    const int32_t end = batch.cu_seqlens_q[i + 1];
    const int32_t first = batch.context_lens[i] - (end - begin);
    for (int32_t row = begin; row < end; ++row) {
      token_places_[static_cast<size_t>(row)] = {.sequence = static_cast<int32_t>(i),
                                                 .context_index = first + row - begin};
    }
  }
  result_.sampled.resize(batch.sample_rows.size());
  result_.scores.resize(batch.score_rows.size());
  result_.score_tops.resize(batch.score_rows.size());
  result_.pooled.resize(batch.pooled_rows.size());
  result_.reported.resize(batch.reports_rows ? static_cast<size_t>(batch.num_tokens()) *
                                                   static_cast<size_t>(slot_layout_->reported_cols)
                                             : 0);
  rows_.begin(batch);
  find_adapter_rows(batch);
  forward_ = &forward;
  forward.run(batch.num_tokens(), batch.num_output_rows());
  batch_ = nullptr;
  return step_;
}

void CpuDevice::sample(Ticket ticket, const TokenMasks& masks) {
  TGI_CHECK(ticket == step_);
  const FlushDenormals flush;
  rows_.sample(masks, slot_layout_->vocab_size);
  if (rows_.num_output_rows() > 0) forward_->sample(rows_.num_output_rows());
  rows_.visit_accepted(result_.sampled,
                       [this](int32_t slot, int32_t id) { slots_->record(slot, id); });
}

const StepResult& CpuDevice::wait(Ticket ticket) {
  TGI_CHECK(ticket == step_ && !rows_.is_open());
  return result_;
}

}  // namespace tgi
