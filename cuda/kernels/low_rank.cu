// See low_rank.h. Sums run in one order for each number, whatever else is in the step.
#include <algorithm>

#include "base/error.h"
#include "cuda/kernels/dispatch.h"
#include "cuda/kernels/low_rank.h"
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/reduce.cuh"
#include "cuda/launch.h"
#include "engine/device/backend.h"

namespace tgi::cuda {
namespace {

constexpr int kThreads = 128;
constexpr unsigned kWarps = kThreads / 32;
constexpr unsigned kShrinkBlocks = 16;  // of a row
constexpr unsigned kMaxGridRows = 65535;
constexpr int kLaneColumns = 8;  // 16 bytes, one after the other

// What one row of shrunk is for. The head is the third index of a block.
struct LowRankRow {
  const LowRankSite* site =
      nullptr;    // null: its sequence has no adapter, or that has nothing there
  int64_t x = 0;  // the row of it
  int64_t out = 0;
  int64_t shrunk = 0;
};

__device__ __forceinline__ LowRankRow row_at(const LowRankLaunch& args, int64_t index) {
  const auto head = static_cast<int32_t>(blockIdx.z);
  LowRankRow row = {
      .site = nullptr, .x = index, .out = index, .shrunk = head * args.num_rows + index};
  int64_t token = index;
  int32_t number = args.site + head;
  if (args.choices.rows != nullptr) {
    const int64_t choice = args.choices.first + index;
    token = choice / args.choices.top_k;
    const int32_t expert = args.choices.experts[choice];
    if (expert >= args.choices.num_matrices) return row;
    number += expert;
    row.out = args.choices.rows[choice];
    row.x = args.choices.x_is_routed ? row.out : token;
  } else if (args.logit_rows != nullptr) {
    token = args.logit_rows[index].row;
  }
  const LowRankAdapter adapter = args.places[args.slot_places[args.tokens[token].slot]];
  if (number >= adapter.num_sites) return row;
  const LowRankSite* const site = adapter.sites + number;
  if (site->num_pieces > 0) row.site = site;
  return row;
}

__device__ __forceinline__ bool is_vector(const void* from, int64_t stride) {
  return reinterpret_cast<uintptr_t>(from) % 16 == 0 && stride % kLaneColumns == 0;
}

// The product of kLaneColumns neighbours, the same bits whichever way they are read.
template <typename T>
__device__ __forceinline__ float add_products(const T* a, const T* b, bool are_vectors, float sum) {
  Vector<T, kLaneColumns> x;
  Vector<T, kLaneColumns> y;
  if (are_vectors) {
    x = load<T, kLaneColumns>(a);
    y = load<T, kLaneColumns>(b);
  } else {
#pragma unroll
    for (int i = 0; i < kLaneColumns; ++i) {
      x.at[i] = a[i];
      y.at[i] = b[i];
    }
  }
#pragma unroll
  for (int i = 0; i < kLaneColumns; ++i) sum += to_float(x.at[i]) * to_float(y.at[i]);
  return sum;
}

// A warp makes one number of the short row after the other.
template <typename T>
__global__ void __launch_bounds__(kThreads) shrink(const __grid_constant__ LowRankLaunch args) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const unsigned warp = blockIdx.x * kWarps + threadIdx.x / 32;
  const auto lane = static_cast<int64_t>(threadIdx.x % 32);
  const int64_t cols = args.x.cols;
  const int64_t whole = cols / kLaneColumns * kLaneColumns;
  for (int64_t index = blockIdx.y; index < args.num_rows; index += gridDim.y) {
    const LowRankRow row = row_at(args, index);
    const LowRankSite* const site = row.site;
    if (site == nullptr) continue;
    const T* const x =
        static_cast<const T*>(args.x.data) + row.x * args.x.stride + blockIdx.z * args.heads.x_step;
    const bool are_vectors = is_vector(x, 0) && is_vector(site->a, cols);
    for (auto r = static_cast<int32_t>(warp); r < site->rank;
         r += static_cast<int32_t>(kShrinkBlocks * kWarps)) {
      const T* const a = static_cast<const T*>(site->a) + r * cols;
      float sum = 0.0F;
#pragma unroll 4
      for (int64_t k = lane * kLaneColumns; k < whole; k += 32 * kLaneColumns) {
        sum = add_products(a + k, x + k, are_vectors, sum);
      }
      if (whole + lane < cols) sum += to_float(a[whole + lane]) * to_float(x[whole + lane]);
      sum = warp_sum(sum);
      if (lane == 0) args.shrunk[row.shrunk * kMaxStackedRank + r] = sum;
    }
  }
}

// The short row of a token, which its adapter has as it is.
template <typename T>
__global__ void __launch_bounds__(kThreads) look_up(const __grid_constant__ LowRankLaunch args) {
  wait_for_previous_kernel();
  launch_next_kernel();
  for (int64_t index = blockIdx.y; index < args.num_rows; index += gridDim.y) {
    const LowRankRow row = row_at(args, index);
    const LowRankSite* const site = row.site;
    if (site == nullptr) continue;
    const int32_t id = args.token_ids[index];
    const T* const a = static_cast<const T*>(site->a) + static_cast<int64_t>(id) * site->rank;
    for (auto r = static_cast<int32_t>(threadIdx.x); r < site->rank; r += kThreads) {
      args.shrunk[row.shrunk * kMaxStackedRank + r] = id < site->num_tokens ? to_float(a[r]) : 0.0F;
    }
  }
}

// The short row of a block's outputs as the products want it: scaled, and rounded to T.
template <typename T>
__device__ __forceinline__ void scale_shrunk(const LowRankSite& site, const float* shrunk, T* out) {
  for (int32_t i = 0; i < site.num_pieces; ++i) {
    const LowRankPiece& piece = site.pieces[i];
    for (auto r = static_cast<int32_t>(threadIdx.x); r < piece.rank; r += kThreads) {
      out[piece.first_rank + r] = from_float<T>(shrunk[piece.first_rank + r] * piece.scale);
    }
  }
}

// A thread has one output of a row. What the pieces of overlapping outputs do to it is done in
// their order.
template <typename T, typename Out>
__global__ void __launch_bounds__(kThreads) expand(const __grid_constant__ LowRankLaunch args) {
  alignas(16) __shared__ T scaled[kMaxStackedRank];
  wait_for_previous_kernel();
  launch_next_kernel();
  const auto output = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  for (int64_t index = blockIdx.y; index < args.num_rows; index += gridDim.y) {
    const LowRankRow row = row_at(args, index);
    const LowRankSite* const site = row.site;
    if (site == nullptr) continue;
    __syncthreads();  // the row before is done with
    scale_shrunk(*site, args.shrunk + row.shrunk * kMaxStackedRank, scaled);
    __syncthreads();
    if (output >= args.out.cols) continue;
    Out* const out = static_cast<Out*>(args.out.data) + row.out * args.out.stride +
                     blockIdx.z * args.heads.out_step + output;
    float value = to_float(*out);
    bool is_changed = false;
    for (int32_t i = 0; i < site->num_pieces; ++i) {
      const LowRankPiece& piece = site->pieces[i];
      const int32_t n = output - piece.first_output;
      if (n < 0 || n >= piece.num_outputs) continue;
      const T* const b = static_cast<const T*>(piece.b) + static_cast<int64_t>(n) * piece.rank;
      const T* const t = scaled + piece.first_rank;
      const bool are_vectors = is_vector(piece.b, piece.rank) && is_vector(t, 0);
      const int32_t whole = piece.rank / kLaneColumns * kLaneColumns;
      float sum = 0.0F;
      for (int32_t r = 0; r < whole; r += kLaneColumns) {
        sum = add_products(b + r, t + r, are_vectors, sum);
      }
      for (int32_t r = whole; r < piece.rank; ++r) sum += to_float(b[r]) * to_float(t[r]);
      value += sum;
      if (piece.gain != nullptr) value *= piece.gain[n];
      if (piece.offset != nullptr) value += piece.offset[n];
      is_changed = true;
    }
    if (is_changed) *out = from_float<Out>(value);
  }
}

}  // namespace

void launch_low_rank(cudaStream_t stream, const LowRankLaunch& args) {
  if (args.num_rows == 0) return;
  const auto rows = static_cast<unsigned>(std::min<int64_t>(args.num_rows, kMaxGridRows));
  const auto columns = static_cast<unsigned>((args.out.cols + kThreads - 1) / kThreads);
  const auto heads = static_cast<unsigned>(args.heads.count);
  const auto shape = [&](unsigned blocks) {
    return LaunchShape{.grid = dim3(blocks, rows, heads),
                       .block = dim3(kThreads),
                       .shared_bytes = 0,
                       .overlaps_previous = true};
  };
  with_element(args.x.dtype, [&](auto element) {
    using T = decltype(element);
    if (args.token_ids != nullptr) {
      launch(stream, shape(1), look_up<T>, args);
    } else {
      launch(stream, shape(kShrinkBlocks), shrink<T>, args);
    }
    if (args.out.dtype == DType::kF32) {
      launch(stream, shape(columns), expand<T, float>, args);
    } else {
      TGI_CHECK(args.out.dtype == args.x.dtype);
      launch(stream, shape(columns), expand<T, T>, args);
    }
  });
}

}  // namespace tgi::cuda
