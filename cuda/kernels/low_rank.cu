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
constexpr unsigned kShrinkBlocks = 4;  // of a row
constexpr unsigned kMaxGridRows = 65535;

// Null where the row's sequence has no adapter, or it has nothing at the site.
__device__ __forceinline__ const LowRankSite* site_of(const LowRankLaunch& args, int64_t row) {
  const int64_t token = args.logit_rows == nullptr ? row : args.logit_rows[row].row;
  const LowRankAdapter adapter = args.places[args.slot_places[args.tokens[token].slot]];
  if (args.site >= adapter.num_sites) return nullptr;
  const LowRankSite* const site = adapter.sites + args.site;
  return site->a == nullptr ? nullptr : site;
}

// A warp makes one number of the short row after the other.
template <typename T>
__global__ void __launch_bounds__(kThreads) shrink(const __grid_constant__ LowRankLaunch args) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const unsigned warp = blockIdx.x * kWarps + threadIdx.x / 32;
  const auto lane = static_cast<int32_t>(threadIdx.x % 32);
  for (int64_t row = blockIdx.y; row < args.x.rows; row += gridDim.y) {
    const LowRankSite* const site = site_of(args, row);
    if (site == nullptr) continue;
    const T* const x = static_cast<const T*>(args.x.data) + row * args.x.stride;
    for (auto r = static_cast<int32_t>(warp); r < site->rank;
         r += static_cast<int32_t>(kShrinkBlocks * kWarps)) {
      const T* const a = static_cast<const T*>(site->a) + r * args.x.cols;
      float sum = 0.0F;
      for (int64_t k = lane; k < args.x.cols; k += 32) sum += to_float(a[k]) * to_float(x[k]);
      sum = warp_sum(sum);
      if (lane == 0) args.shrunk[row * kMaxStackedRank + r] = sum;
    }
  }
}

// A thread has one output of a row. What the pieces of overlapping outputs give is added in their
// order.
template <typename T, typename Out>
__global__ void __launch_bounds__(kThreads) expand(const __grid_constant__ LowRankLaunch args) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const auto output = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  if (output >= args.out.cols) return;
  for (int64_t row = blockIdx.y; row < args.out.rows; row += gridDim.y) {
    const LowRankSite* const site = site_of(args, row);
    if (site == nullptr) continue;
    const float* const shrunk = args.shrunk + row * kMaxStackedRank;
    Out* const out = static_cast<Out*>(args.out.data) + row * args.out.stride + output;
    float added = 0.0F;
    bool is_changed = false;
    for (int32_t i = 0; i < site->num_pieces; ++i) {
      const LowRankPiece& piece = site->pieces[i];
      const int32_t n = output - piece.first_output;
      if (n < 0 || n >= piece.num_outputs) continue;
      const T* const b = static_cast<const T*>(piece.b) + static_cast<int64_t>(n) * piece.rank;
      float sum = 0.0F;
      for (int32_t r = 0; r < piece.rank; ++r) {
        const T t = from_float<T>(shrunk[piece.first_rank + r] * piece.scale);
        sum += to_float(b[r]) * to_float(t);
      }
      added += sum;
      is_changed = true;
    }
    if (is_changed) *out = from_float<Out>(to_float(*out) + added);
  }
}

}  // namespace

void launch_low_rank(cudaStream_t stream, const LowRankLaunch& args) {
  if (args.x.rows == 0) return;
  const auto rows = static_cast<unsigned>(std::min<int64_t>(args.x.rows, kMaxGridRows));
  const auto columns = static_cast<unsigned>((args.out.cols + kThreads - 1) / kThreads);
  const auto shape = [&](unsigned blocks) {
    return LaunchShape{.grid = dim3(blocks, rows),
                       .block = dim3(kThreads),
                       .shared_bytes = 0,
                       .overlaps_previous = true};
  };
  with_element(args.x.dtype, [&](auto element) {
    using T = decltype(element);
    launch(stream, shape(kShrinkBlocks), shrink<T>, args);
    if (args.out.dtype == DType::kF32) {
      launch(stream, shape(columns), expand<T, float>, args);
    } else {
      TGI_CHECK(args.out.dtype == args.x.dtype);
      launch(stream, shape(columns), expand<T, T>, args);
    }
  });
}

}  // namespace tgi::cuda
