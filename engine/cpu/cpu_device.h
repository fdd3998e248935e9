// Device on the processor: kernels of one instruction set, a thread pool, memory of the host. Ops
// run at once, so a step is retired when sample returns; the seam is the same as an accelerator's.
//
// Bits of a row never depend on the batch, the chunking, the threads or the instruction set: see
// kernels/tile.h and kernels/attention.h.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/cpu/cpu_adapter.h"
#include "engine/cpu/cpu_backend.h"
#include "engine/cpu/expert_routes.h"
#include "engine/cpu/kernels/kernel_table.h"
#include "engine/cpu/matmul_tasks.h"
#include "engine/cpu/panel_kv_cache.h"
#include "engine/cpu/slot_table.h"
#include "engine/cpu/step_rows.h"
#include "engine/cpu/thread_pool.h"
#include "engine/cpu/token_choices.h"
#include "engine/device/backend.h"
#include "engine/sample/sampler.h"

namespace tgi {

class CpuDevice final : public Device {
 public:
  // REQUIRES: options.num_threads is chosen.
  CpuDevice(const KernelTable& kernels,
            const CpuOptions& options,
            std::vector<LeftOutKernels> left_out = {});

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
  std::unique_ptr<Matrix> stack_matrices(std::vector<std::unique_ptr<Matrix>> parts) override;

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
  // A token row of the step.
  struct TokenPlace {
    int32_t sequence = 0;
    int32_t context_index = 0;  // where in the sequence its key and value go
  };

  struct Rope {
    RopeSpec spec;
    int32_t first_column = 0;  // of cos_sin_: its table follows those of the ropes before it
    uint64_t filled_for = 0;   // step whose positions are in the table
  };

  // What one expert has to do in the expert_matmul being run, for some of its rows.
  struct ExpertTask {
    MatmulTasks tasks;
    int32_t expert = 0;
    int64_t first_row = 0;  // after route
    int64_t num_rows = 0;
    int64_t prepared = 0;    // where its rows begin in prepared_, in bytes
    int64_t first_task = 0;  // of all
  };

  // Some rows of one adapter, in the add_low_rank being run.
  struct LowRankTask {
    const CpuAdapter::Product* product = nullptr;
    std::optional<MatmulTasks> shrink;  // nothing: there are no products
    int64_t first_row = 0;              // of those that are sorted by adapter
    int64_t num_rows = 0;
    int64_t prepared = 0;  // where they begin in prepared_, in bytes
  };

  // Workspace of one thread.
  struct Scratch {
    explicit Scratch(int32_t vocab_size) : sampler(vocab_size) {}
    SamplerScratch sampler;
    Buffer attention;
    Buffer choice;                    // of choose_tokens
    std::vector<int32_t> gathered{};  // (context) positions that a query sees
    std::vector<float> sorted{};      // (context) scores
  };

  // Runs fn(row) for all rows, on the calling thread alone when there is too little to share.
  template <typename Fn>
  void for_rows(int64_t num_rows, int64_t work_per_row, Fn fn);

  // (num_tokens, rotary_dim) of this step; null for rope -1.
  const float* cos_sin(int32_t rope);
  void store_token(const QkvArgs& args, const float* cos_sin, int64_t token);
  AttentionBlock attention_block(const AttentionArgs& args,
                                 size_t sequence,
                                 int32_t kv_head,
                                 int thread) const;
  // Calls run(sequence, number of the task, thread) for as many tasks as count(sequence) says.
  template <typename Count, typename Run>
  void run_attention_tasks(Count count, Run run);
  int64_t attention_rows_per_task(const AttentionArgs& args, int64_t suitable_rows) const;
  // cpu_choice.cc
  void list_window_and_entries(const AttentionArgs& args,
                               size_t sequence,
                               int64_t row,
                               std::vector<int32_t>& positions,
                               AttentionBlock& block) const;
  void make_entry(const CompressArgs& args, int64_t token);
  bool gathers_keys(const AttentionArgs& args) const;
  void attend_gathered(const AttentionArgs& args);
  int64_t choice_bytes(const SlotLayout& layout) const;
  void choose_for(const ChooseArgs& args, int64_t first, int64_t count);
  void score_positions(const ChooseArgs& args,
                       int64_t query,
                       int64_t begin,
                       int64_t end,
                       float* scores,
                       int64_t choice_stride,
                       int thread);
  const std::byte* decode_keys(CacheCodes codes,
                               const std::byte* keys,
                               const PanelLayout& panel,
                               std::byte* decoded) const;
  static void scale_keys(CacheCodes codes,
                         const std::byte* keys,
                         const PanelLayout& panel,
                         int32_t num_heads,
                         float* products);
  void rotate_and_store_token(const LatentArgs& args, const float* cos_sin, int64_t token);
  void run_head_tasks(const HeadMatmulArgs& args, size_t first, size_t end);
  void run_matmul(const MatmulArgs& args);
  void run_matmul(const PanelMatrix& w, const MatmulArgs& args);
  void run_expert_tasks(const ExpertMatmulArgs& args);
  void find_adapter_rows(const Batch& batch);
  // Of rows of experts, args.site is that of the first one. `x_tokens`: of each row the token that
  // is its row of x; null: x has a row for each. A lookup has no x.
  void add_low_rank(const LowRankArgs& args,
                    const AdapterRows& rows,
                    const ExpertRoutes* x_tokens = nullptr);
  void run_low_rank_tasks(const LowRankArgs& args,
                          const AdapterRows& rows,
                          const ExpertRoutes* x_tokens);
  void add_low_rank_to_outputs(const LowRankArgs& args, int64_t first);
  void run_low_rank_task(const LowRankTask& task,
                         const LowRankArgs& args,
                         const AdapterRows& rows,
                         const LowRankScratch& scratch);
  template <typename OutRow>
  void add_product(const CpuAdapter::Part& part,
                   const Tensor& shrunk,
                   const LowRankScratch& scratch,
                   const OutRow& out_row);
  // Of a slot: the last tokens that the convolution saw, oldest first; and what is carried on.
  float* conv_state(int32_t layer, size_t sequence);
  float* recurrent_state(int32_t layer, size_t sequence);
  bool begins(size_t sequence) const;  // with the first token of its context
  void keep_of_row(const DeltaRuleArgs& args, float* dt);
  void keep_conv_rows(const ConvArgs& args, size_t sequence);
  // Calls run(sequence, head, block of lanes) for all that the step's sequences have.
  template <typename Run>
  void for_state_blocks(int32_t layer, Run run);
  float sigmoid(float x) const;
  void softmax(float* x, int64_t count) const;        // in place
  void sqrt_softplus(float* x, int64_t count) const;  // likewise
  void pick_rows(const SampleArgs& args, int64_t begin, int64_t count);

  const KernelTable& kernels_;
  ThreadPool pool_;
  DeviceInfo info_;

  std::optional<SlotLayout> slot_layout_;
  std::unique_ptr<PanelKvCache> kv_;
  std::unique_ptr<SlotTable> slots_;
  std::vector<Rope> ropes_;
  Buffer state_;                          // (layer, slot, numbers of a StateLayout)
  Buffer cos_sin_;                        // (kMaxRotaryColumns, max_batch_tokens)
  std::vector<Scratch> scratch_;          // (num_threads)
  Buffer prepared_;                       // x of the matmul being run
  Buffer logits_;                         // (kLogitTileRows, padded vocab)
  std::vector<TokenPlace> token_places_;  // (max_batch_tokens)
  std::vector<int64_t> first_task_;       // (num_slots + 1) of attention, per sequence

  TokenChoices choices_;                     // of the last op choose_tokens
  Buffer choice_scores_;                     // (kQueriesAtOnce, choices, blocks of a context)
  const Batch* batch_ = nullptr;             // of the step being run
  Forward* forward_ = nullptr;               // of the step that was submitted last
  StepRows rows_;                            // of that step
  ExpertRoutes routes_;                      // of the last op `route`
  std::vector<ExpertTask> expert_tasks_;     // of the expert_matmul being run
  std::vector<const CpuAdapter*> adapters_;  // (max_adapters + 1); the first is none
  AdapterRows adapter_rows_;                 // of the step
  std::vector<const CpuAdapter*> output_adapters_;  // of each row that is drawn or scored
  AdapterRows output_adapter_rows_;                 // of the tile of logits being computed
  AdapterRows expert_adapter_rows_;                 // of the add_low_rank_to_experts being run
  std::vector<LowRankTask> low_rank_tasks_;         // of the add_low_rank being run
  std::vector<LowRankScratch> low_rank_scratch_;    // (num_threads), where there are adapters
  uint64_t step_ = 0;
  StepResult result_;
};

}  // namespace tgi
