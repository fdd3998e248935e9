// Speed of the CPU kernels as a table: matmul and packing next to plain reading of memory and next
// to plain fused multiply-adds, attention next to both. Not a test; run it by hand on a quiet
// machine: bench_cpu [isa] [num_threads] [what...], what of: memory, pack, matmul, attention,
// other.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "engine/cpu/cpu_backend.h"
#include "engine/cpu/host_resources.h"
#include "engine/cpu/kernels/kernel_table.h"
#include "engine/cpu/panel_matrix.h"
#include "engine/cpu/thread_pool.h"
#include "engine/sample/sampler.h"
#include "tests/conformance/harness.h"

namespace tgi {
namespace {

using Clock = std::chrono::steady_clock;

// One thread is timed by the processor time it took, which a busy machine disturbs less.
bool use_cpu_time = false;

double now_s() {
  timespec time{};
  ::clock_gettime(use_cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// The best of several timings, in seconds.
double time_of(const std::function<void()>& work) {
  work();
  double best = 1e30;
  const auto begin = Clock::now();
  for (int i = 0; i < 200; ++i) {
    const double start = now_s();
    work();
    best = std::min(best, now_s() - start);
    if (i >= 4 && Clock::now() - begin > std::chrono::milliseconds(400)) break;
  }
  return best;
}

struct Peaks {
  double read_bytes_per_s = 0;
  double flops = 0;
};

// Brings 512 MiB into the first-level cache, a word of each line being looked at.
double measure_read(ThreadPool& pool) {
  constexpr int64_t kBytes = int64_t{512} << 20;
  constexpr int64_t kTask = int64_t{1} << 20;
  const Buffer memory = map_memory(kBytes, "bench");
  std::memset(memory.data(), 1, kBytes);
  std::vector<uint64_t> sums(kBytes / kTask);
  const double seconds = time_of([&] {
    pool.parallel_for(kBytes / kTask, [&](int64_t task, int) {
      const auto* from = static_cast<const uint64_t*>(memory.data()) + task * (kTask / 8);
      uint64_t sum = 0;
      for (int64_t i = 0; i < kTask / 8; i += 8) {
        __builtin_prefetch(from + i + 384);
        sum += from[i];
      }
      sums[static_cast<size_t>(task)] = sum;
    });
  });
  return static_cast<double>(kBytes) / seconds;
}

// Matmul whose operands stay in the first-level cache.
double measure_flops(const KernelTable& kernels, ThreadPool& pool, const MatrixStorage& storage) {
  const PanelLayout layout = PanelMatrix::layout_for(storage, kernels.pair_order, 64);
  const auto type = static_cast<size_t>(layout.type);
  const bool many = kernels.matmul_many[type].block != nullptr;
  const MatmulKernel& kernel = many ? kernels.matmul_many[type] : kernels.matmul[type];
  const int64_t rows = many ? 32 : 6;
  constexpr int kRepeats = 2000;
  const double seconds = time_of([&] {
    pool.parallel_for(pool.num_threads(), [&](int64_t, int) {
      alignas(64) std::byte x[64 * 320] = {};
      alignas(64) std::byte w[4 * 64 * 64] = {};
      alignas(64) float out[32 * 64];
      for (int i = 0; i < kRepeats; ++i) {
        kernel.block({.x = x,
                      .x_stride_bytes = 320,
                      .num_rows = rows,
                      .k = 64,
                      .group_size = layout.group_size,
                      .head = layout.head,
                      .panels = w,
                      .panel_bytes = layout.bytes(),
                      .num_panels = 4,
                      .bias = nullptr,
                      .out = out,
                      .out_stride = 64,
                      .num_outputs = 64});
      }
    });
  });
  return 2.0 * static_cast<double>(rows) * 64 * 64 * kRepeats * pool.num_threads() / seconds;
}

struct NamedStorage {
  const char* name;
  MatrixStorage storage;
  bool all_rows;
};

MatrixStorage stored_integers(Quantization kind, bool zero_points) {
  MatrixStorage out(kind, kind == Quantization::kMxfp4 ? kMxfp4GroupSize : 128);
  out.stored = true;
  out.zero_points = zero_points;
  return out;
}

// As the types of GGUF files are held.
MatrixStorage stored_groups(Quantization kind, int32_t group_size, bool minima, ScaleForm scales) {
  MatrixStorage out(kind, group_size);
  out.stored = true;
  out.minima = minima;
  out.scales = scales;
  return out;
}

const NamedStorage kStorages[] = {
    {"bf16", DType::kBF16, true},
    {"int8", {Quantization::kInt8, 128}, true},
    {"int4", {Quantization::kInt4, 32}, true},
    {"gptq", stored_integers(Quantization::kInt4, false), false},
    {"awq", stored_integers(Quantization::kInt4, true), false},
    {"mxfp4", stored_integers(Quantization::kMxfp4, false), false},
    {"q4_0", stored_groups(Quantization::kInt4, 32, false, ScaleForm::kF16), false},
    {"q8_0", stored_groups(Quantization::kInt8, 32, false, ScaleForm::kF16), false},
    {"q4_k", stored_groups(Quantization::kInt4, 32, true, ScaleForm::kFactors), true},
    {"q5_k", stored_groups(Quantization::kInt5, 32, true, ScaleForm::kFactors), true},
    {"q6_k", stored_groups(Quantization::kInt6, 16, false, ScaleForm::kFactors), true},
    {"iq4_xs", stored_groups(Quantization::kIq4, 32, false, ScaleForm::kFactors), false},
    {"nf4", stored_groups(Quantization::kNf4, 64, false, ScaleForm::kF32), true},
    {"f16", DType::kF16, false},
    {"f32", DType::kF32, false}};

void bench_matmul(Device& device, const KernelTable& kernels, ThreadPool& pool, double read) {
  fmt::print("\n{:<22}{:>6}{:>6}{:>10}{:>9}{:>8}{:>10}{:>11}\n", "matmul", "type", "rows", "us",
             "GB/s", "of read", "GFLOP/s", "of in L1");
  Random random(1);
  for (const auto& [k, n] :
       {std::pair<int64_t, int64_t>{2048, 5632}, {2048, 2048}, {2048, 32000}, {5632, 2048}}) {
    const Floats values = random.values(n * k);
    for (const auto& [name, storage, all_rows] : kStorages) {
      const double peak = measure_flops(kernels, pool, storage);
      // Several copies, so that none stays in the cache between two uses.
      std::vector<std::unique_ptr<Matrix>> copies;
      const int64_t size = device.matrix_bytes(storage.format(), storage, n, k);
      const int64_t num_copies = std::max<int64_t>(1, (int64_t{160} << 20) / size);
      for (int64_t i = 0; i < num_copies; ++i) {
        if (storage.stored) {
          const GroupedWeight stored(random, n, k, storage, false);
          copies.push_back(device.make_matrix(std::span(&stored.weight, 1), storage));
        } else {
          copies.push_back(make_matrix(device, values, n, k, storage));
        }
      }
      for (const int64_t rows : {1, 2, 4, 8, 16, 32, 128, 512}) {
        if (!all_rows && rows != 1 && rows != 512) continue;
        DeviceTensor x(device, rows, k, random.values(rows * k));
        DeviceTensor out(device, rows, n, DType::kF32);
        const auto many = rows < 64 ? num_copies : 1;
        double seconds = 0;
        run_step(device, one_sequence({0}), [&] {
          seconds = time_of([&] {
            for (int64_t i = 0; i < many; ++i) {
              device.matmul({.x = x.view(),
                             .w = copies[static_cast<size_t>(i)].get(),
                             .bias = nullptr,
                             .out = out.view()});
            }
          });
        });
        seconds /= static_cast<double>(many);
        const double bytes = static_cast<double>(size) / seconds;
        const double flops = 2.0 * static_cast<double>(rows * n * k) / seconds;
        fmt::print("{:<22}{:>6}{:>6}{:>10.0f}{:>9.1f}{:>7.0f}%{:>10.0f}{:>10.0f}%\n",
                   fmt::format("{} x {}", k, n), name, rows, seconds * 1e6, bytes * 1e-9,
                   100 * bytes / read, flops * 1e-9, 100 * flops / peak);
      }
    }
  }
}

void bench_pack(Device& device, const Peaks& peaks) {
  fmt::print("\n{:<30}{:>12}{:>9}{:>10}\n", "pack 2048 x 32000", "ms", "GB/s r+w", "of read");
  const int64_t n = 32000;
  const int64_t k = 2048;
  const Floats values(static_cast<size_t>(n * k), 0.5F);
  struct Case {
    DType from, to;
    bool transposed;
  };
  for (const Case& c : {Case{DType::kBF16, DType::kBF16, false},
                        {DType::kF16, DType::kF16, false},
                        {DType::kF32, DType::kF32, false},
                        {DType::kF32, DType::kBF16, false},
                        {DType::kBF16, DType::kF32, false},
                        {DType::kBF16, DType::kBF16, true}}) {
    const StoredMatrix stored(values, n, k, c.from, c.transposed);
    const double seconds = time_of([&] { device.make_matrix(std::span(&stored.weight, 1), c.to); });
    const double bytes =
        static_cast<double>(n * k) * static_cast<double>(dtype_size(c.from) + dtype_size(c.to));
    fmt::print("{:<30}{:>12.1f}{:>9.1f}{:>9.0f}%\n",
               fmt::format("{} to {}{}", dtype_name(c.from), dtype_name(c.to),
                           c.transposed ? ", transposed" : ""),
               seconds * 1e3, bytes / seconds * 1e-9,
               100 * bytes / seconds / peaks.read_bytes_per_s);
  }
}

// 32 query heads of 64; on 4 KV heads, as a 1.1B llama has, or as many.
void bench_attention(const CpuOptions& options,
                     const Peaks& peaks,
                     DType cache,
                     int32_t num_kv_heads) {
  constexpr int32_t kHeads = 32;
  constexpr int32_t kHeadDim = 64;
  for (const auto& [queries, context] : {std::pair<int32_t, int32_t>{1, 64},
                                         {1, 512},
                                         {1, 4096},
                                         {1, 8192},
                                         {1, 32768},
                                         {512, 512},
                                         {512, 4096}}) {
    const auto device = make_cpu_device(options);
    constexpr int32_t kLayers = 4;
    const int32_t blocks = (context + 15) / 16;
    device->allocate_state({.num_layers = kLayers,
                            .num_kv_heads = num_kv_heads,
                            .head_dim = kHeadDim,
                            .block_size = 16,
                            .num_blocks = blocks,
                            .dtype = cache},
                           {.num_slots = 1,
                            .max_blocks_per_slot = blocks,
                            .max_batch_tokens = context,
                            .vocab_size = 32,
                            .block_size = 16});
    Batch batch;
    batch.clear();
    batch.token_ids.assign(static_cast<size_t>(context), 0);
    batch.positions.assign(static_cast<size_t>(context), 0);
    batch.slots = {0};
    batch.cu_seqlens_q = {0, context};
    batch.context_lens = {context};
    for (int32_t i = 0; i < blocks; ++i) {
      batch.block_appends.push_back({.slot = 0, .index = i, .block = blocks - 1 - i});
    }
    const int32_t width = (kHeads + 2 * num_kv_heads) * kHeadDim;
    DeviceTensor qkv(*device, context, width, Random(3).values(int64_t{context} * width));
    run_step(*device, batch, [&] {
      for (int32_t layer = 0; layer < kLayers; ++layer) {
        device->qk_norm_rope_store_kv({.place = {.layer = layer},
                                       .num_heads = kHeads,
                                       .num_kv_heads = num_kv_heads,
                                       .head_dim = kHeadDim,
                                       .q_norm = nullptr,
                                       .k_norm = nullptr,
                                       .qkv = qkv.view()});
      }
    });
    batch.block_appends.clear();
    batch.cu_seqlens_q = {0, queries};
    batch.token_ids.resize(static_cast<size_t>(queries));
    batch.positions.resize(static_cast<size_t>(queries));
    DeviceTensor out(*device, queries, kHeads * kHeadDim, DType::kF32);
    double seconds = 0;
    run_step(*device, batch, [&] {
      seconds = time_of([&] {
        for (int32_t layer = 0; layer < kLayers; ++layer) {
          device->attention({.place = {.layer = layer},
                             .num_heads = kHeads,
                             .num_kv_heads = num_kv_heads,
                             .head_dim = kHeadDim,
                             .scale = 0.125F,
                             .q = qkv.view().first_rows(queries).columns(0, kHeads * kHeadDim),
                             .out = out.view()});
        }
      });
    });
    seconds /= kLayers;
    const double number_bytes =
        static_cast<double>(dtype_size(cache)) + (cache == DType::kInt8 ? 4.0 / kHeadDim : 0.0);
    const double bytes = 2.0 * context * num_kv_heads * kHeadDim * number_bytes / seconds;
    const double seen = queries * (context - 0.5 * (queries - 1));
    const double flops = 4.0 * seen * kHeads * kHeadDim / seconds;
    fmt::print("{:<22}{:>9}{:>9}{:>10.0f}{:>9.1f}{:>7.0f}%{:>10.0f}{:>7.0f}%\n",
               fmt::format("{} cache, {} heads", dtype_name(cache), num_kv_heads), queries, context,
               seconds * 1e6, bytes * 1e-9, 100 * bytes / peaks.read_bytes_per_s, flops * 1e-9,
               100 * flops / peaks.flops);
  }
}

void bench_other(const KernelTable& kernels, ThreadPool& pool) {
  fmt::print("\n{:<44}{:>10}\n", "one row, one thread", "us");
  const int32_t vocab_size = 128000;
  Random random(5);
  Floats logits(static_cast<size_t>(vocab_size));  // nearly normal, deviation 3
  for (float& x : logits) {
    for (int i = 0; i < 12; ++i) x += 1.5F * random.value();
  }
  SamplerScratch scratch(vocab_size);
  SampledToken out;
  const std::pair<const char*, SamplingParams> cases[] = {
      {"greedy", {}},
      {"greedy, 5 alternatives", {.top_n_tokens = 5}},
      {"temperature", {.do_sample = true, .temperature = 0.8F}},
      {"top_k 50", {.do_sample = true, .top_k = 50}},
      {"top_p 0.9", {.do_sample = true, .top_p = 0.9F}},
      {"top_k 50, top_p 0.9", {.do_sample = true, .top_k = 50, .top_p = 0.9F}},
      {"typical_p 0.9", {.do_sample = true, .typical_p = 0.9F}},
      {"min_p 0.05", {.do_sample = true, .min_p = 0.05F}},
      {"watermark", {.watermark = true}},
  };
  for (const auto& [name, params] : cases) {
    const double seconds = time_of([&] {
      sample_row({.logits = logits.data(),
                  .vocab_size = vocab_size,
                  .params = &params,
                  .history = {},
                  .previous_id = 3,
                  .position = 9},
                 kernels.sampler_math, scratch, out);
    });
    fmt::print("{:<44}{:>10.1f}\n", fmt::format("sample of {}, {}", vocab_size, name),
               seconds * 1e6);
  }
  const double loop = time_of([&] {
    for (int i = 0; i < 100; ++i) pool.parallel_for(pool.num_threads(), [](int64_t, int) {});
  });
  fmt::print("{:<44}{:>10.2f}\n", fmt::format("empty loop on {} threads", pool.num_threads()),
             loop * 1e4);
}

int run(int argc, char** argv) {
  CpuOptions options;
  if (argc > 1) options.isa = argv[1];
  if (argc > 2) options.num_threads = std::atoi(argv[2]);
  std::vector<std::string> wanted(argv + std::min(argc, 3), argv + argc);
  const auto wants = [&](const char* what) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), what) != wanted.end();
  };
  const KernelTable& kernels = find_kernels(options.isa);
  ThreadPool pool(options.num_threads);
  use_cpu_time = pool.num_threads() == 1;
  const Peaks peaks{measure_read(pool), measure_flops(kernels, pool, DType::kF32)};
  fmt::print("{}, {}, {} threads\nread {:.1f} GB/s, fma {:.0f} GFLOP/s\n", cpu_description(),
             kernels.isa, pool.num_threads(), peaks.read_bytes_per_s * 1e-9, peaks.flops * 1e-9);
  const auto device = make_cpu_device(options);
  device->allocate_state({.num_layers = 1, .num_kv_heads = 1, .head_dim = 16, .num_blocks = 4},
                         {.num_slots = 4,
                          .max_blocks_per_slot = 4,
                          .max_batch_tokens = 512,
                          .vocab_size = 64,
                          .max_matmul_cols = 8192});
  if (wants("pack")) bench_pack(*device, peaks);
  if (wants("matmul")) bench_matmul(*device, kernels, pool, peaks.read_bytes_per_s);
  if (wants("attention")) {
    fmt::print("\n{:<22}{:>9}{:>9}{:>10}{:>9}{:>8}{:>10}{:>8}\n", "attention (32 x 64)", "queries",
               "context", "us", "GB/s", "of read", "GFLOP/s", "of peak");
    for (const int32_t num_kv_heads : {4, 32}) {
      for (const DType cache : {DType::kBF16, DType::kF8E4M3, DType::kInt8}) {
        bench_attention(options, peaks, cache, num_kv_heads);
      }
    }
  }
  if (wants("other")) bench_other(kernels, pool);
  return 0;
}

}  // namespace
}  // namespace tgi

int main(int argc, char** argv) {
  return tgi::run(argc, argv);
}
