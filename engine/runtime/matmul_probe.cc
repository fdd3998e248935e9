#include "engine/runtime/matmul_probe.h"

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

namespace tgi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kInputs = 2048;
constexpr int64_t kOutputs = 8192;
constexpr int64_t kPromptRows = 512;
// What a device without vector units is asked for instead: it would take minutes.
constexpr int64_t kFewPromptRows = 16;
// 384 MiB in 16 bits: no cache holds them all from one use to the next. Prompts are no matter of
// memory and take two.
constexpr size_t kCopies = 12;
constexpr size_t kPromptCopies = 2;

// One token of one sequence: a step that does nothing but what its Forward says.
void fill_batch(Batch& batch, const std::vector<int32_t>& ids) {
  batch.clear();
  batch.token_ids = ids;
  batch.positions = {0};
  batch.slots = {0};
  batch.cu_seqlens_q = {0, 1};
  batch.context_lens = {1};
  batch.slot_starts.push_back(
      {.slot = 0, .sampling = {}, .token_ids = ids, .num_prompt_tokens = 1});
  batch.block_appends.push_back({.slot = 0, .index = 0, .block = 0});
}

class Matmuls final : public Forward {
 public:
  Matmuls(Device& device, std::span<const std::unique_ptr<Matrix>> matrices, Tensor x, Tensor out)
      : device_(device), matrices_(matrices), x_(x), out_(out) {}

  void run(int32_t /*num_tokens*/, int32_t /*num_logit_rows*/) override {
    for (const auto& matrix : matrices_) {
      device_.matmul({.x = x_, .w = matrix.get(), .bias = nullptr, .out = out_});
    }
  }

 private:
  Device& device_;
  std::span<const std::unique_ptr<Matrix>> matrices_;
  Tensor x_;
  Tensor out_;
};

// Seconds of one matmul: the best of the steps that fit.
double time_matmul(Device& device,
                   Matmuls& matmuls,
                   size_t num_matmuls,
                   std::chrono::milliseconds duration) {
  const std::vector<int32_t> ids = {0};
  Batch batch;
  double best = 0;
  const auto end = Clock::now() + duration;
  for (int i = 0; i < 2 || Clock::now() < end; ++i) {
    fill_batch(batch, ids);
    const auto begin = Clock::now();
    (void)run_step(device, batch, matmuls);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (i == 0) continue;  // warms up
    best = best == 0 ? seconds : std::min(best, seconds);
  }
  return best / static_cast<double>(num_matmuls);
}

Tensor view(const Buffer& buffer, DType dtype, int64_t rows, int64_t cols) {
  return {.data = buffer.data(), .dtype = dtype, .rows = rows, .cols = cols, .stride = cols};
}

}  // namespace

MatmulSpeed measure_matmul(Backend& backend,
                           DType dtype,
                           const DeviceOptions& options,
                           std::chrono::milliseconds duration) {
  const std::unique_ptr<Device> device = backend.make_device(options);
  device->allocate_state(
      {.num_layers = 1, .num_kv_heads = 1, .head_dim = 64, .num_blocks = 4, .dtype = dtype},
      {.num_slots = 1,
       .max_blocks_per_slot = 4,
       .max_batch_tokens = kPromptRows,
       .vocab_size = 64,
       .max_matmul_cols = kInputs,
       .num_heads = 1,
       .num_kv_heads = 1,
       .head_dim = 64});
  // 1.0 in bf16, a small number in f16: what matters is that nothing is denormal.
  const std::vector<uint16_t> stored(static_cast<size_t>(kInputs * kOutputs), 0x3f80);
  const HostWeight weight{.name = "probe",
                          .format = "dense",
                          .rows = kOutputs,
                          .cols = kInputs,
                          .parts = {{.role = "weight",
                                     .data = reinterpret_cast<const std::byte*>(stored.data()),
                                     .dtype = DType::kBF16,
                                     .rows = kOutputs,
                                     .cols = kInputs,
                                     .row_stride = kInputs}}};
  std::vector<std::unique_ptr<Matrix>> matrices;
  for (size_t i = 0; i < kCopies; ++i) matrices.push_back(device->make_matrix({&weight, 1}, dtype));

  const DType type = device->info().activation_dtype;
  const Buffer x = device->allocate(kPromptRows * kInputs * dtype_size(type), "the probe's input");
  const Buffer out =
      device->allocate(kPromptRows * kOutputs * dtype_size(type), "the probe's output");
  const Tensor all_x = view(x, type, kPromptRows, kInputs);
  const Tensor all_out = view(out, type, kPromptRows, kOutputs);
  const std::span<const std::unique_ptr<Matrix>> all(matrices);
  const auto prompt_seconds_of = [&](int64_t rows, size_t copies) {
    Matmuls prompt(*device, all.first(copies), all_x.first_rows(rows), all_out.first_rows(rows));
    return time_matmul(*device, prompt, copies,
                       copies == 1 ? std::chrono::milliseconds(0) : duration);
  };
  const double few_rows_seconds = prompt_seconds_of(kFewPromptRows, 1);
  const bool is_slow = few_rows_seconds * kPromptRows / kFewPromptRows >
                       10 * std::chrono::duration<double>(duration).count();
  const int64_t prompt_rows = is_slow ? kFewPromptRows : kPromptRows;
  const double prompt_seconds =
      is_slow ? few_rows_seconds : prompt_seconds_of(kPromptRows, kPromptCopies);
  Matmuls decode(*device, all, all_x.first_rows(1), all_out.first_rows(1));
  const double decode_seconds = time_matmul(*device, decode, kCopies, duration);
  return {.device = device->info(),
          .dtype = std::string(dtype_name(dtype)),
          .prompt_flops_per_s =
              2.0 * static_cast<double>(prompt_rows * kInputs * kOutputs) / prompt_seconds,
          .decode_bytes_per_s = static_cast<double>(matrices.front()->size_bytes) / decode_seconds};
}

}  // namespace tgi
