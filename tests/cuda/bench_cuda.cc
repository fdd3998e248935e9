// Speeds of the CUDA device's ops on a real GPU beside what the GPU can do: plain copies as the
// ceiling of memory, large matmuls as that of arithmetic. Shapes of Llama-3.1-8B. Prints one table;
// run by scripts/gpu_check. Its arguments say which rows: dense, stored, attention; none: all.
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files/paths.h"
#include "cuda/launch.h"
#include "engine/device/backend.h"
#include "engine/runtime/backend_loader.h"
#include "engine/tensor/random_weights.h"

namespace tgi {
namespace {

constexpr int32_t kHeads = 32;
constexpr int32_t kKvHeads = 8;
constexpr int32_t kHeadDim = 128;
constexpr int32_t kHidden = 4096;
constexpr int32_t kBlockSize = 16;
constexpr int kRuns = 7;
constexpr int64_t kMatricesBytes = int64_t{200} << 20;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

class Once final : public Forward {
 public:
  explicit Once(std::function<void()> function) : function_(std::move(function)) {}
  void run(int32_t /*num_tokens*/, int32_t /*num_logit_rows*/) override { function_(); }

 private:
  std::function<void()> function_;
};

// Milliseconds of one `body`: so many are launched in a step that its begin and end don't count.
double device_ms(Device& device,
                 const Batch& batch,
                 int repeats,
                 const std::function<void()>& body) {
  std::vector<double> times;
  for (int run = 0; run <= kRuns; ++run) {
    Once forward([&] {
      for (int i = 0; i < repeats; ++i) body();
    });
    const auto started = std::chrono::steady_clock::now();
    (void)run_step(device, batch, forward);
    const std::chrono::duration<double, std::milli> took =
        std::chrono::steady_clock::now() - started;
    if (run > 0) times.push_back(took.count() / repeats);
  }
  return median(times);
}

struct Row {
  std::string what;
  double ms;
  std::string rate;
  double share;  // of the ceiling
};

void print(const Row& row) {
  fmt::print("| {} | {:.3f} | {} | {:.0f} % |\n", row.what, row.ms, row.rate, 100.0 * row.share);
}

// Read and written bytes per second of a device-to-device copy.
double copy_bandwidth() {
  constexpr size_t kBytes = size_t{4} << 30;
  void* from = nullptr;
  void* to = nullptr;
  cuda::check(cudaMalloc(&from, kBytes), "memory for copies");
  cuda::check(cudaMalloc(&to, kBytes), "memory for copies");
  cuda::check(cudaMemset(from, 0x3c, kBytes), "filling");
  std::vector<double> rates;
  for (int run = 0; run < kRuns; ++run) {
    cuda::check(cudaDeviceSynchronize(), "waiting");
    const auto started = std::chrono::steady_clock::now();
    for (int i = 0; i < 5; ++i)
      cuda::check(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice), "copying");
    cuda::check(cudaDeviceSynchronize(), "waiting");
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
    rates.push_back(5.0 * 2.0 * static_cast<double>(kBytes) / took.count());
  }
  (void)cudaFree(from);
  (void)cudaFree(to);
  return median(rates);
}

struct Bench {
  std::unique_ptr<Device> device;
  Buffer memory;

  explicit Bench(Backend& backend) {
    DeviceOptions options;
    options.cache_dir = cache_dir();
    device = backend.make_device(options);
  }

  // After the matrices are made: their kernels are chosen here.
  void allocate(int32_t num_slots, int32_t context, int32_t tokens) {
    const int32_t blocks_per_slot = context / kBlockSize + 1;
    const int32_t num_blocks = num_slots * blocks_per_slot;
    device->allocate_state({.num_layers = 1,
                            .num_kv_heads = kKvHeads,
                            .head_dim = kHeadDim,
                            .block_size = kBlockSize,
                            .num_blocks = num_blocks,
                            .dtype = DType::kBF16},
                           {.num_slots = num_slots,
                            .max_blocks_per_slot = blocks_per_slot,
                            .max_batch_tokens = tokens,
                            .vocab_size = 1024,
                            .block_size = kBlockSize,
                            .max_matmul_cols = 14336,
                            .num_heads = kHeads,
                            .num_kv_heads = kKvHeads,
                            .head_dim = kHeadDim});
  }

  Tensor tensor(int64_t rows, int64_t cols) {
    memory = device->allocate(static_cast<size_t>(rows * cols) * 2, "bench");
    return {
        .data = memory.data(), .dtype = DType::kBF16, .rows = rows, .cols = cols, .stride = cols};
  }
};

// `count` sequences with `rows` new tokens each, at the end of `context`.
Batch make_batch(int32_t count, int32_t rows, int32_t context, bool first) {
  Batch batch;
  batch.clear();
  const int32_t blocks = context / kBlockSize + 1;
  for (int32_t slot = 0; slot < count; ++slot) {
    for (int32_t i = 0; i < rows; ++i) {
      batch.token_ids.push_back(1);
      batch.positions.push_back(context - rows + i);
    }
    batch.slots.push_back(slot);
    batch.cu_seqlens_q.push_back(batch.num_tokens());
    batch.context_lens.push_back(context);
    if (!first) continue;
    batch.slot_starts.emplace_back().slot = slot;
    for (int32_t i = 0; i < blocks; ++i) {
      // Scattered, as a busy cache is.
      batch.block_appends.push_back(
          {.slot = slot, .index = i, .block = (i * count + slot) % (blocks * count)});
    }
  }
  return batch;
}

void bench_attention(
    Backend& backend, double bandwidth, int32_t count, int32_t rows, int32_t context) {
  Bench bench(backend);
  bench.allocate(count, context, count * rows);
  const Tensor fused = bench.tensor(int64_t{count} * rows, (kHeads + 2 * kKvHeads) * kHeadDim);
  const Buffer out_memory =
      bench.device->allocate(static_cast<size_t>(count) * rows * kHeads * kHeadDim * 2, "bench");
  const Tensor out = {.data = out_memory.data(),
                      .dtype = DType::kBF16,
                      .rows = int64_t{count} * rows,
                      .cols = kHeads * kHeadDim,
                      .stride = kHeads * kHeadDim};
  Once nothing([] {});
  (void)run_step(*bench.device, make_batch(count, rows, context, true), nothing);
  const int repeats = 50;
  const double ms = device_ms(*bench.device, make_batch(count, rows, context, false), repeats, [&] {
    bench.device->attention({.place = {},
                             .num_heads = kHeads,
                             .num_kv_heads = kKvHeads,
                             .head_dim = kHeadDim,
                             .scale = 0.088388F,
                             .q = fused.columns(0, kHeads * kHeadDim),
                             .out = out});
  });
  if (rows == 1) {
    const double bytes = 2.0 * count * context * kKvHeads * kHeadDim * 2;
    const double rate = bytes / ms * 1e3;
    print({fmt::format("decode attention, {} x {}", count, context), ms,
           fmt::format("{:.2f} TB/s", rate / 1e12), rate / bandwidth});
    return;
  }
  const double flops =
      4.0 * count * kHeads * kHeadDim * (static_cast<double>(rows) * context - 0.5 * rows * rows);
  const double rate = flops / ms * 1e3;
  print({fmt::format("prefill attention, {} x {} causal", count, rows), ms,
         fmt::format("{:.0f} TFLOP/s", rate / 1e12), rate / 790e12});
}

// Makes the i-th of several alike: they are taken in turn, so that none stays in the L2 cache.
using MakeMatrix = std::function<std::unique_ptr<Matrix>(Device& device, uint32_t i)>;

void bench_matmul(Backend& backend,
                  double bandwidth,
                  std::span<const int64_t> rows_of_x,
                  const std::string& name,
                  const MakeMatrix& make) {
  const int64_t most = *std::ranges::max_element(rows_of_x);
  Bench bench(backend);
  std::vector<std::unique_ptr<Matrix>> matrices;
  // More than the L2 cache holds.
  for (int64_t bytes = 0; bytes < kMatricesBytes; bytes += matrices[0]->size_bytes) {
    matrices.push_back(make(*bench.device, static_cast<uint32_t>(matrices.size())));
  }
  bench.allocate(1, 64, static_cast<int32_t>(most));
  const int64_t outputs = matrices[0]->rows;
  const int64_t cols = matrices[0]->cols;
  const Tensor x = bench.tensor(most, cols);
  const Buffer out_memory =
      bench.device->allocate(static_cast<size_t>(most * outputs) * 2, "bench");
  const Tensor out = {.data = out_memory.data(),
                      .dtype = DType::kBF16,
                      .rows = most,
                      .cols = outputs,
                      .stride = outputs};
  Once nothing([] {});
  (void)run_step(*bench.device, make_batch(1, 1, 16, true), nothing);
  for (const int64_t rows : rows_of_x) {
    size_t turn = 0;
    const double ms = device_ms(*bench.device, make_batch(1, 1, 16, false), 100, [&] {
      bench.device->matmul({.x = x.first_rows(rows),
                            .w = matrices[turn++ % matrices.size()].get(),
                            .bias = nullptr,
                            .out = out.first_rows(rows)});
    });
    const auto bytes = static_cast<double>(matrices[0]->size_bytes);
    const double flops = 2.0 * static_cast<double>(rows * outputs * cols);
    const std::string what = fmt::format("{} {} x ({}, {})", name, rows, outputs, cols);
    if (rows <= 64) {
      print({what, ms, fmt::format("{:.2f} TB/s", bytes / ms / 1e9), bytes / ms * 1e3 / bandwidth});
    } else {
      print({what, ms, fmt::format("{:.0f} TFLOP/s", flops / ms / 1e9), flops / ms * 1e3 / 790e12});
    }
  }
}

struct WeightShape {
  int64_t outputs;
  int64_t cols;
};
constexpr WeightShape kMatmuls[] = {{6144, kHidden}, {28672, kHidden}, {kHidden, 14336}};
constexpr WeightShape kStoredMatmuls[] = {{28672, kHidden}, {kHidden, 14336}};

void bench_dense(Backend& backend, double bandwidth) {
  constexpr int64_t kRowsOfX[] = {1, 4, 8, 16, 32, 64, 256, 2048};
  for (const auto [outputs, cols] : kMatmuls) {
    bench_matmul(backend, bandwidth, kRowsOfX, "matmul", [&](Device& device, uint32_t i) {
      HostWeight weight = {
          .name = "w", .format = "dense", .rows = outputs, .cols = cols, .parts = {}};
      weight.parts.push_back({.role = "weight",
                              .dtype = DType::kBF16,
                              .rows = outputs,
                              .cols = cols,
                              .row_stride = cols});
      weight.parts[0].random = RandomPart{.key = {.first = i + 1U, .second = 77}};
      return device.make_matrix(std::span(&weight, 1), DType::kBF16);
    });
  }
}

// Weights that are held as they are stored; the rate is that of the bytes they take.
void bench_stored(Backend& backend, double bandwidth, MatrixStorage storage, bool has_minima) {
  constexpr int64_t kRowsOfX[] = {1, 8, 16, 32, 64, 256, 2048};
  storage.stored = true;
  storage.minima = has_minima;
  const std::string name =
      fmt::format("{} in groups of {}{}", quantization_name(storage.quantization),
                  storage.group_size, has_minima ? " with minima" : "");
  for (const auto [outputs, cols] : kStoredMatmuls) {
    std::vector<int8_t> codes(static_cast<size_t>(outputs * cols));
    for (size_t i = 0; i < codes.size(); ++i) {
      const uint32_t bits = hash_counter({.first = 5, .second = 9}, static_cast<uint32_t>(i)) & 15;
      codes[i] = storage.quantization == Quantization::kMxfp4
                     ? kMxfp4Codes[bits]
                     : static_cast<int8_t>(has_minima ? bits : bits - 8);
    }
    const int64_t num_groups = cols / storage.group_size;
    const std::vector<float> scales(static_cast<size_t>(outputs * num_groups), 0x1p-8F);
    const HostWeight weight = {.name = "w",
                               .format = "grouped",
                               .rows = outputs,
                               .cols = cols,
                               .parts = {},
                               .grouped = {.codes = codes.data(),
                                           .scales = scales.data(),
                                           .minima = has_minima ? scales.data() : nullptr,
                                           .group_size = storage.group_size,
                                           .num_groups = num_groups}};
    bench_matmul(backend, bandwidth, kRowsOfX, name, [&](Device& device, uint32_t /*i*/) {
      return device.make_matrix(std::span(&weight, 1), storage);
    });
  }
}

int run(std::span<const std::string_view> groups) {
  const auto has = [&](std::string_view group) {
    return groups.empty() || std::ranges::find(groups, group) != groups.end();
  };
  Backend& backend = find_backend("cuda");
  (void)backend.num_devices();
  const double bandwidth = copy_bandwidth();
  fmt::print(
      "copy: {:.2f} TB/s read and written; arithmetic is compared with 790 TFLOP/s (bf16)\n\n",
      bandwidth / 1e12);
  fmt::print("| op | ms | rate | of the ceiling |\n|---|---:|---:|---:|\n");
  if (has("dense")) bench_dense(backend, bandwidth);
  if (has("stored")) {
    bench_stored(backend, bandwidth, {Quantization::kInt4, 128}, false);
    bench_stored(backend, bandwidth, {Quantization::kInt4, 32}, true);
    bench_stored(backend, bandwidth, {Quantization::kMxfp4, kMxfp4GroupSize}, false);
    bench_stored(backend, bandwidth, {Quantization::kInt8, 128}, false);
    bench_stored(backend, bandwidth, {Quantization::kF8E4M3, 128}, false);
  }
  if (!has("attention")) return 0;
  bench_attention(backend, bandwidth, 1, 1, 1024);
  bench_attention(backend, bandwidth, 1, 1, 65536);
  bench_attention(backend, bandwidth, 64, 1, 1024);
  bench_attention(backend, bandwidth, 256, 1, 1024);
  bench_attention(backend, bandwidth, 64, 1, 8192);
  bench_attention(backend, bandwidth, 1, 2048, 2048);
  bench_attention(backend, bandwidth, 1, 8192, 8192);
  return 0;
}

}  // namespace
}  // namespace tgi

int main(int argc, char** argv) {
  try {
    const std::vector<std::string_view> groups(argv + 1, argv + argc);
    return tgi::run(groups);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_cuda: {}\n", error.what());
    return 1;
  }
}
