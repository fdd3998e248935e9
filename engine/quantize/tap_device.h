// Another device, seen through: says what goes into a matmul or comes out of the head, and ends a
// step there. For a forward pass that is run a layer at a time: one layer's KV cache serves all.
//
// Threads: as the device within. Only for devices whose memory is the host's and whose ops run at
// once (the cpu backend).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/device/backend.h"

namespace tgi {

class TapDevice final : public Device {
 public:
  // `device` outlives it. At most `max_logit_rows` rows go to the head at a time.
  TapDevice(Device& device, int32_t max_logit_rows);

  using See = std::function<void(const Tensor& x)>;

  // From now on calls `see` with the input of every matmul with `w`. `ends_step`: that matmul and
  // all ops after it are left out.
  void tap(const Matrix* w, See see, bool ends_step);
  // In place of sampling: calls `see` with the logits, (rows, vocab) f32.
  void tap_logits(See see) { see_logits_ = std::move(see); }
  void clear_taps();

  const DeviceInfo& info() const override { return device_.info(); }
  Buffer allocate(size_t size_bytes, std::string_view purpose) override {
    return device_.allocate(size_bytes, purpose);
  }
  void copy_to_device(void* to, const void* from, size_t size_bytes) override {
    device_.copy_to_device(to, from, size_bytes);
  }
  void copy_to_host(void* to, const void* from, size_t size_bytes) override {
    device_.copy_to_host(to, from, size_bytes);
  }
  int64_t matrix_bytes(std::string_view format,
                       const MatrixStorage& storage,
                       int64_t rows,
                       int64_t cols) const override {
    return device_.matrix_bytes(format, storage, rows, cols);
  }
  std::unique_ptr<Matrix> make_matrix(std::span<const HostWeight> pieces,
                                      const MatrixStorage& storage) override {
    return device_.make_matrix(pieces, storage);
  }
  std::unique_ptr<Matrix> stack_matrices(std::vector<std::unique_ptr<Matrix>> parts) override {
    return device_.stack_matrices(std::move(parts));
  }
  int32_t add_rope(const RopeSpec& rope) override { return device_.add_rope(rope); }
  int64_t kv_bytes(const KvLayout& layout) const override { return device_.kv_bytes(layout); }
  int64_t slot_bytes(const SlotLayout& layout) const override { return device_.slot_bytes(layout); }
  void allocate_state(const KvLayout& kv, const SlotLayout& slots) override;

  Ticket submit(const Batch& batch, Forward& forward) override;
  void sample(Ticket ticket, const TokenMasks& masks) override { device_.sample(ticket, masks); }
  const StepResult& wait(Ticket ticket) override { return device_.wait(ticket); }

  void embed(const EmbedArgs& args) override;
  void norm(const NormArgs& args) override;
  void matmul(const MatmulArgs& args) override;
  void qk_norm_rope_store_kv(const QkvArgs& args) override;
  void attention(const AttentionArgs& args) override;
  void choose_tokens(const ChooseArgs& args) override;
  void compress(const CompressArgs& args) override;
  void rotate_and_store_latent(const LatentArgs& args) override;
  void head_matmul(const HeadMatmulArgs& args) override;
  void activation(const ActivationArgs& args) override;
  void pool(const PoolArgs& args) override;
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

 private:
  struct Tap {
    const Matrix* w;
    See see;
    bool ends_step;
  };

  Device& device_;
  const int32_t max_logit_rows_;
  std::vector<Tap> taps_;
  See see_logits_;
  bool is_over_ = false;  // the step has nothing more to do
  Buffer logits_;         // (max_logit_rows, vocab)
};

}  // namespace tgi
