// Every op of Device in plain loops in double precision: what the ops mean. One thread, no packing,
// no blocking; activations and the KV cache are rounded only where they are stored.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/cpu/slot_table.h"
#include "engine/cpu/step_rows.h"
#include "engine/device/backend.h"

namespace tgi {

class ReferenceDevice final : public Device {
 public:
  explicit ReferenceDevice(int world_size = 1);  // that share the memory

  const DeviceInfo& info() const override { return info_; }

  Buffer allocate(size_t size_bytes, std::string_view purpose) override;
  void copy_to_device(void* to, const void* from, size_t size_bytes) override;
  void copy_to_host(void* to, const void* from, size_t size_bytes) override;
  int64_t matrix_bytes(std::string_view format,
                       const MatrixStorage& storage,
                       int64_t rows,
                       int64_t cols) const override;
  std::unique_ptr<Matrix> make_matrix(std::span<const HostWeight> pieces,
                                      const MatrixStorage& storage) override;

  int64_t adapter_bytes(std::span<const LowRankPart> parts, DType dtype) const override;
  std::unique_ptr<Adapter> make_adapter(std::span<const LowRankPart> parts, DType dtype) override;
  void set_adapter(int32_t index, const Adapter* adapter) override;

  int32_t add_rope(const RopeSpec& rope) override;
  int64_t kv_bytes(const KvLayout& layout) const override;
  int64_t slot_bytes(const SlotLayout& layout) const override;
  void allocate_state(const KvLayout& kv, const SlotLayout& slots) override;

  Ticket submit(const Batch& batch, Forward& forward) override;
  void sample(Ticket ticket, const TokenMasks& masks) override;
  const StepResult& wait(Ticket ticket) override;

  void embed(const EmbedArgs& args) override;
  void norm(const NormArgs& args) override;
  void matmul(const MatmulArgs& args) override;
  void add_low_rank(const LowRankArgs& args) override;
  void add_low_rank_of_tokens(const LowRankLookupArgs& args) override;
  void add_low_rank_to_experts(const ExpertLowRankArgs& args) override;
  void add_low_rank_to_heads(const HeadLowRankArgs& args) override;
  void qk_norm_rope_store_kv(const QkvArgs& args) override;
  void attention(const AttentionArgs& args) override;
  void choose_tokens(const ChooseArgs& args) override;
  void compress(const CompressArgs& args) override;
  void rotate_and_store_latent(const LatentArgs& args) override;
  void head_matmul(const HeadMatmulArgs& args) override;
  void activation(const ActivationArgs& args) override;
  void gather_output_rows(const Tensor& x, const Tensor& out) override;
  void add(const AddArgs& args) override;
  void route(const RouteArgs& args) override;
  void expert_matmul(const ExpertMatmulArgs& args) override;
  void weigh_experts(const WeighArgs& args) override;
  void combine_experts(const CombineArgs& args) override;
  void causal_conv(const ConvArgs& args) override;
  void channel_scan(const ChannelScanArgs& args) override;
  void head_scan(const HeadScanArgs& args) override;
  void delta_rule(const DeltaRuleArgs& args) override;
  void rg_lru(const RgLruArgs& args) override;
  void gated_norm(const GatedNormArgs& args) override;
  void predict_streams(const PredictStreamsArgs& args) override;
  void correct_streams(const CorrectStreamsArgs& args) override;
  void collapse_streams(const CollapseStreamsArgs& args) override;
  void expand_streams(const ExpandStreamsArgs& args) override;
  void match_rms(const MatchRmsArgs& args) override;
  void statistical_top_k(const StatisticalTopKArgs& args) override;
  void sample(const SampleArgs& args) override;
  void pool(const PoolArgs& args) override;
  void report_rows(const ReportArgs& args) override;

 private:
  // Calls use(sequence, token_row, context_index) for each token row of the step.
  template <typename Use>
  void for_tokens(Use use) const;

  // One position's key or value, (head_dim).
  // Into the cache, rounded as it is there.
  void keep(const float* row, int64_t count, float* cached) const;
  float* cached(std::vector<float>& cache,
                KvPlace place,
                int32_t kv_head,
                size_t sequence,
                int64_t position) const;
  double distance_products(const AttentionArgs& args,
                           size_t sequence,
                           int32_t row,
                           int64_t key,
                           int32_t head,
                           int64_t distance) const;
  struct SeenKey {
    KvPlace place;
    int64_t position = 0;
  };
  std::vector<SeenKey> seen_keys(const AttentionArgs& args,
                                 size_t sequence,
                                 int32_t row,
                                 int64_t position,
                                 int32_t head) const;
  void attend(
      const AttentionArgs& args, size_t sequence, int32_t row, int64_t position, int32_t head);

  std::vector<double> choice_scores(
      const ChooseArgs& args, size_t sequence, int32_t row, int64_t position, int32_t choice);
  bool sees(const AttentionArgs& args, int32_t row, int32_t head, int64_t position) const;

  void add_low_rank_to_row(const Adapter* adapter, int32_t site, const float* x, float* out) const;
  const Adapter* adapter_of_output(size_t index) const;

  // Of a slot: (conv_kernel - 1, conv_channels), the oldest token first; and the numbers of each
  // channel.
  double* conv_state(int32_t layer, size_t sequence);
  double* recurrent_state(int32_t layer, size_t sequence);

  // Those of the token's row of the table.
  std::vector<size_t> taken_experts(const RouteArgs& args, int64_t token) const;

  // A token's way to an expert.
  struct Route {
    int32_t expert = 0;
    int64_t token = 0;
    double weight = 0.0;
  };

  DeviceInfo info_;
  std::vector<Route> routes_;  // by expert, those of an expert by token
  int32_t num_matrices_ = 0;   // experts past them give what they read
  KvLayout kv_;
  std::optional<SlotTable> slots_;
  std::vector<RopeSpec> ropes_;
  // (layer, block, kv_head, block_size, head_dim), rounded to kv_.dtype; where layers differ a
  // block's follow each other: (block, layer, ...).
  std::vector<float> keys_;
  std::vector<float> values_;  // as keys_; empty where keys hold the values
  StateLayout state_layout_;
  int32_t num_slots_ = 0;
  int32_t reported_cols_ = 0;
  std::vector<double> state_;             // (layer, slot, numbers of the layout)
  std::vector<const Adapter*> adapters_;  // (max_adapters + 1); the first is none
  std::vector<int32_t> slot_of_row_;      // of the token rows of the step
  // Of the last op choose_tokens, by row and choice: by position whether it was chosen.
  std::vector<std::vector<std::vector<bool>>> chosen_;
  const Batch* batch_ = nullptr;
  Forward* forward_ = nullptr;
  StepRows rows_;
  int32_t vocab_size_ = 0;
  uint64_t step_ = 0;
  StepResult result_;
};

template <typename Use>
void ReferenceDevice::for_tokens(Use use) const {
  for (size_t i = 0; i < batch_->slots.size(); ++i) {
    const int32_t begin = batch_->cu_seqlens_q[i];
    const int32_t end = batch_->cu_seqlens_q[i + 1];
    for (int32_t row = begin; row < end; ++row) {
      use(i, row, int64_t{batch_->context_lens[i]} - (end - row));
    }
  }
}

}  // namespace tgi
