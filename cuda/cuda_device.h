// Device on one NVIDIA GPU. Ops are launched on one stream; a step is one transfer to the device,
// the kernels, and one transfer back, with an event at its end, so that the next step may be
// submitted before this one is done. Masks are sent between the forward pass and the sampling.
//
// Steps of only decode rows are padded to a bucket and captured as two CUDA graphs, up to the head
// and from there, between steps or when first met, and replayed afterwards. All memory is taken in
// allocate_state; steps allocate nothing.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cuda/cublas.h"
#include "cuda/cuda_matrix.h"
#include "cuda/device_memory.h"
#include "cuda/device_state.h"
#include "cuda/expert_tables.h"
#include "cuda/kernels/experts.h"
#include "cuda/kernels/low_rank.h"
#include "cuda/kernels/packed.h"
#include "cuda/kernels/sample.h"
#include "cuda/kernels/state.h"
#include "cuda/kv_cache.h"
#include "cuda/matmul_tuner.h"
#include "cuda/pinned_staging.h"
#include "cuda/step_buffer.h"
#include "cuda/step_clock.h"
#include "cuda/step_graphs.h"
#include "engine/device/backend.h"

namespace tgi::cuda {

inline constexpr int kProposals = 8;  // of cuBLASLt that are tried for a shape

// Throws kUnsupported for a KV cache that there is no kernel for beside weights of `dtype`.
void check_cache_dtype(DType dtype, DType kv_cache);

class CudaDevice final : public Device {
 public:
  // Throws kUnsupported for a dtype or a GPU it has no kernels for, kInvalidArgument when there is
  // no such GPU.
  CudaDevice(int index, const DeviceOptions& options);
  ~CudaDevice() override;

  const DeviceInfo& info() const override { return info_; }
  int index() const { return index_; }
  cudaStream_t stream() const { return stream_.get(); }

  // For those who watch it, from any thread.
  const StepClock& clock() const { return clock_; }
  // Steps end with kDeviceLost and `reason` from now on, those in flight too.
  void declare_lost(const std::string& reason);
  void throw_if_lost() const;

  // Before what they hold goes, a communicator that was captured.
  void drop_captured_steps();

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
  bool prepare_step(Forward& forward) override;
  std::vector<int32_t> prepared_rows() const override { return graphs_.buckets(); }

  void embed(const EmbedArgs& args) override;
  void norm(const NormArgs& args) override;
  void matmul(const MatmulArgs& args) override;
  void add_low_rank(const LowRankArgs& args) override;
  void add_low_rank_of_tokens(const LowRankLookupArgs& args) override;
  void add_low_rank_to_heads(const HeadLowRankArgs& args) override;
  void add_low_rank_to_experts(const ExpertLowRankArgs& args) override;
  void qk_norm_rope_store_kv(const QkvArgs& args) override;
  void attention(const AttentionArgs& args) override;
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
  struct Rope {
    RopeTable table;
    Buffer inv_freq;
  };

  // A step on its way: its pinned memory may be written again when `done` has passed.
  struct InFlight {
    Buffer staging;
    StepArrays arrays;
    Buffer results;  // SampledRow of each logit row
    Buffer reported;
    Buffer pooled;  // rows that `pool` was given
    Buffer masks;
    PinnedStaging lists;
    Event done;
    Ticket ticket = 0;
    Forward* forward = nullptr;
    StepKind kind;  // of the captured step; no bucket: it is launched as it is
    int32_t num_masks = 0;
    bool is_sampled = false;
    int32_t num_sampled = 0;
    int32_t num_scores = 0;
    int32_t num_reported = 0;  // token rows; 0: nothing is reported
    std::vector<PooledRows> pooled_rows{};
  };

  // A matrix, whose shape is to be measured.
  struct KnownMatrix {
    std::weak_ptr<const void> alive;
    MatmulLaunch launch;  // without x and out
    int64_t cols = 0;
    DType dtype = DType::kBF16;
    std::optional<PackedShape> packed;
  };

  void measure_matmuls(int64_t max_rows);
  void measure_matmul(MatmulLaunch launch, std::span<const KnownMatrix* const> alike);
  void measure_packed(const PackedLaunch& launch, std::span<const KnownMatrix* const> alike);

  void start_nobody();
  void start_slot_lists(InFlight& flight, const SlotStart& start);
  void capture_step(InFlight& flight, StepKind kind, Forward& forward);
  void fetch_rows(const Buffer& to, const float* from, int64_t num_rows, int64_t cols);
  void take_rows(const InFlight& flight);
  void wait_for(const Event& done);
  void synchronize();
  void launch_forward(const StepShape& shape, Forward& forward);
  void launch_sampling(Forward& forward);
  bool captures(const Forward& forward) const {
    return forward.is_replayable() && !plan_options_.deterministic;
  }
  int32_t max_graph_rows() const;
  int32_t bucket_of(const Batch& batch, const Forward& forward) const;
  bool has_adapters(const Batch& batch);
  StoreKvLaunch store_launch(KvPlace place, int32_t padded_dim, int32_t rope) const;
  // What ops of layers with a state see of it; layer: among those.
  StateStep conv_step(int32_t layer) const;
  StateStep recurrent_step(int32_t layer) const;
  void attend(const AttentionArgs& args);
  void attend_latents(const AttentionArgs& args);
  LowRankLaunch low_rank_launch(const LowRankArgs& args) const;
  void multiply(const Tensor& x, const CudaMatrix& w, const Tensor* bias, const Tensor& out);
  void multiply_dense(const MatmulLaunch& launch);
  void multiply_unpacked(const PackedLaunch& launch);
  void make_room_for_unpacked(const PackedShape& shape);
  float* partials_of(const PackedShape& shape) const;
  bool is_faster_unpacked(const PackedLaunch& launch) const;
  void embed_packed(const EmbedArgs& args);
  void multiply_otherwise(const MatmulLaunch& launch, const MatmulShape& exact);
  // False: cuBLASLt does not take this algorithm for this shape; nothing was launched.
  [[nodiscard]] bool multiply_as(const MatmulLaunch& launch,
                                 const std::optional<CublasAlgorithm>& algorithm);

  const int index_;
  const DeviceOptions options_;
  DeviceInfo info_;
  Stream stream_;
  Cublas cublas_;
  Buffer cublas_workspace_;
  Buffer unpacked_;  // part of a packed matrix as plain numbers, or its partial products
  MatmulTuner tuner_;
  // Shapes, with their exact rows, that the algorithm of their bucket was refused for.
  std::map<MatmulShape, MatmulChoice> unlike_bucket_;
  std::optional<MatrixLoader> loader_;
  std::vector<KnownMatrix> matrices_;

  AttentionPlanOptions plan_options_;
  int64_t shared_bytes_ = 0;  // of a multiprocessor
  StepCapacity capacity_;
  std::optional<SlotLayout> slot_layout_;
  KvLayout kv_;
  HeadLayout heads_;
  KvCache cache_;
  SlotTables slots_;
  std::vector<Buffer> state_;  // what slots_ and the pointers below point into
  StepArrays step_;            // on the device
  int32_t* token_ids_ = nullptr;
  int32_t* start_ids_ = nullptr;  // (kStartIds) prompt of a slot that is being started
  float* cos_sin_ = nullptr;
  int32_t cos_sin_stride_ = 0;
  std::byte* padded_heads_ = nullptr;
  float* partials_ = nullptr;
  float* layer_states_ = nullptr;  // (layers with a state, num_slots, SlotStateShape)
  float* logits_ = nullptr;
  void* sample_workspace_ = nullptr;
  uint32_t* masks_ = nullptr;
  SampledRow* sampled_ = nullptr;
  float* reported_ = nullptr;                 // (max_batch_tokens, reported_cols)
  float* pooled_ = nullptr;                   // (max_batch_tokens, pooled_cols)
  LowRankAdapter* adapter_places_ = nullptr;  // (max_adapters + 1); null: there are none
  float* shrunk_rows_ = nullptr;
  std::vector<int32_t> slot_adapters_;  // (num_slots) as the GPU has them; empty: there are none
  bool has_seen_adapters_ = false;      // since allocate_state
  PinnedStaging place_changes_;
  ExpertMemory expert_memory_;
  ExpertRoutes routes_;  // of the last call of route
  ExpertTables expert_tables_;
  std::vector<Rope> ropes_;

  std::array<InFlight, 3> in_flight_;
  Ticket next_ticket_ = 1;
  AttentionPlan plan_;
  StepGraphs graphs_;
  StepShape shape_;  // of the step being launched
  bool is_padded_ = false;
  bool reports_rows_ = false;  // the step being launched; one that is captured always does
  bool has_adapters_ = false;  // the step being launched
  bool serves_ = false;        // a model's steps have begun
  const Batch nobody_;         // of no sequence
  Event ready_;
  StepClock clock_;
  std::atomic<bool> is_lost_{false};
  mutable std::mutex lost_mutex_;
  std::string lost_reason_;  // guarded by lost_mutex_
  StepResult result_;
};

}  // namespace tgi::cuda
