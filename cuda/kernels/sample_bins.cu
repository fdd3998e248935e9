// The second kernel of launch_sample puts together what the chunks of a row gave. Rows without
// filters are done then; of the others, and of rows that want alternatives, it finds the bins that
// hold all that can be kept. The first CUDA block of a row writes the results; the others are there
// for the bins.
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/sample_draw.cuh"
#include "cuda/kernels/sample_list.cuh"
#include "cuda/kernels/sample_row.cuh"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

// The lowest id of the mask, 0 when there is none. All threads of the block call this.
__device__ int32_t lowest_allowed(const LogitSource& source) {
  if (source.allowed == nullptr) return 0;
  uint32_t lowest = 0xffffffffU;
  const int32_t num_words = (source.vocab_size + 31) / 32;
  for (auto word = static_cast<int32_t>(threadIdx.x); word < num_words; word += kSampleThreads) {
    const uint32_t bits = source.allowed[word];
    if (bits == 0) continue;
    const int32_t id = word * 32 + __ffs(static_cast<int>(bits)) - 1;
    if (id < source.vocab_size) lowest = static_cast<uint32_t>(id);
    break;
  }
  const uint32_t found = ~block_combine(~lowest, Highest());
  return found == 0xffffffffU ? 0 : static_cast<int32_t>(found);
}

// A row's state and leaders; what the first warp finds, all threads get.
struct RowSummary {
  RowState state;
  PackedBest top;
  PackedBest race;
};

__device__ __forceinline__ void summarise(const ChunkStats* chunks,
                                          int32_t num_chunks,
                                          const RowPlan& plan,
                                          RowSummary& out) {
  if (threadIdx.x < 32) {
    const auto lane = static_cast<int32_t>(threadIdx.x);
    float raw_highest = -INFINITY;
    PackedBest top = 0;
    for (int32_t i = lane; i < num_chunks; i += 32) {
      raw_highest = fmaxf(raw_highest, chunks[i].raw_highest);
      top = Highest()(top, chunks[i].top);
    }
    raw_highest = warp_combine(raw_highest, Highest());
    top = warp_combine(top, Highest());
    const float highest = value_of(top);
    double raw_sum = 0.0;
    double weight = 0.0;
    double surprises = 0.0;
    PackedBest race = 0;
    for (int32_t i = lane; i < num_chunks; i += 32) {
      const ChunkStats& chunk = chunks[i];
      if (chunk.raw_highest > -INFINITY) {
        raw_sum += static_cast<double>(expf(chunk.raw_highest - raw_highest) * chunk.raw_sum);
      }
      if (chunk.race != 0) {
        const float speed = value_of(chunk.race) * expf(value_of(chunk.top) - highest);
        if (speed > 0.0F) race = Highest()(race, pack_best(speed, id_of(chunk.race)));
      }
      if (plan.first == FirstFilter::kTypical && chunk.top != 0) {
        const float shift = value_of(chunk.top) - highest;
        const auto factor = static_cast<double>(expf(shift));
        weight += chunk.weight * factor;
        if (factor > 0.0) {
          surprises += factor * (chunk.surprises + chunk.weight * static_cast<double>(shift));
        }
      }
    }
    raw_sum = warp_combine(raw_sum, Sum());
    race = warp_combine(race, Highest());
    if (plan.first == FirstFilter::kTypical) {
      weight = warp_combine(weight, Sum());
      surprises = warp_combine(surprises, Sum());
    }
    if (lane == 0) {
      out.top = top;
      out.race = race;
      out.state.raw_highest = raw_highest;
      out.state.highest = highest;
      out.state.raw_log_total = log(raw_sum);
      out.state.log_total = weight > 0.0 ? log(weight) : 0.0;
      out.state.entropy = weight > 0.0 ? out.state.log_total - surprises / weight : 0.0;
      out.state.total_mass = 0;
      out.state.last_bin = kNumBins - 1;
      out.state.last_top_bin = kNumBins - 1;
    }
  }
  __syncthreads();
}

// What the row gives without the filters' help. Its first CUDA block calls this.
__device__ __forceinline__ void finish_row(const SampleTask& task,
                                           const RowPlan& plan,
                                           const LogitSource& source,
                                           const RowSummary& row,
                                           bool filters_decide,
                                           unsigned index) {
  if (!plan.draws) {
    if (threadIdx.x != 0) return;
    SampledRow& out = task.launch.out[index];
    out.id = plan.row.target_id;
    out.logprob = raw_logprob(row.state, source.logits[plan.row.target_id]);
    out.num_top = 0;
    return;
  }
  if (threadIdx.x == 0) task.launch.out[index].num_top = 0;
  if (filters_decide) return;
  const bool can_pick = row.top != 0 && is_finite(row.state);
  const int32_t id = can_pick ? id_of(plan.races ? row.race : row.top) : lowest_allowed(source);
  if (threadIdx.x == 0) record_draw(task, plan, row.state, index, id);
}

// Counts the row's ids in `bins`: the filters' in the first, the alternatives' in the second.
__device__ __forceinline__ void count_row(const SampleTask& task,
                                          const LogitSource& source,
                                          const RowPlan& plan,
                                          const RowState& state,
                                          const OpenWork& open,
                                          Bins (&bins)[2]) {
  for (auto chunk = static_cast<int32_t>(blockIdx.x); chunk < task.num_chunks;
       chunk += static_cast<int32_t>(gridDim.x)) {
    float x[kIdsPerThread];
    load_raw(source, chunk, x);
    if (open.tops) {
#pragma unroll
      for (int i = 0; i < kIdsPerThread; ++i) {
        if (x[i] > -INFINITY) bins[1].add(bin_of(state.raw_highest - x[i]), 1);
      }
    }
    if (!open.filters || plan.first == FirstFilter::kMinP) continue;
    transform(source, chunk, x);
#pragma unroll
    for (int i = 0; i < kIdsPerThread; ++i) {
      if (!(x[i] > -INFINITY)) continue;
      const Wide mass = plan.first == FirstFilter::kTopK ? 1 : mass_of(x[i], state.highest);
      bins[0].add(bin_of_value(state, plan.first, x[i]), mass);
    }
  }
}

// The last bin of which the filters can keep something.
__device__ __forceinline__ int32_t last_bin(const RowPlan& plan, Wide mass, Wide& total) {
  const SlotSampling& sampling = plan.sampling;
  const bool then_min_p = sampling.min_p > 0.0F && sampling.typical_p >= 1.0F;
  // A hair more than min-p keeps.
  const auto least = static_cast<int32_t>(bin_of(0.01F - logf(sampling.min_p)));
  if (plan.first == FirstFilter::kMinP) return least;
  const bool by_count = plan.first == FirstFilter::kTopK;
  total = block_combine(mass, Sum());
  const Wide target =
      by_count ? static_cast<Wide>(sampling.top_k)
               : mass_share(plan.first == FirstFilter::kTopP ? sampling.top_p : sampling.typical_p,
                            total);
  const int32_t found = find_bin(mass, target).bin;
  // After top-k, top-p has to know all that top-k kept.
  return then_min_p && !(by_count && sampling.top_p < 1.0F) ? min(found, least) : found;
}

__global__ void __launch_bounds__(kSampleThreads)
    bin_rows(const __grid_constant__ SampleTask task) {
  wait_for_previous_kernel();
  launch_next_kernel();
  __shared__ RowSummary row;
  __shared__ Bins bins[2];
  const unsigned index = blockIdx.y;
  const RowPlan plan = plan_row(task.launch, index);
  if (plan.is_padding) return;
  if (blockIdx.x > 0 && plan.first == FirstFilter::kNone && plan.num_tops == 0) return;
  summarise(task.chunks + static_cast<int64_t>(index) * task.num_chunks, task.num_chunks, plan,
            row);
  const RowState& state = row.state;
  const LogitSource source = source_of(task, plan, index);
  const OpenWork open = open_work(plan, state);
  if (blockIdx.x == 0) finish_row(task, plan, source, row, open.filters, index);
  if (blockIdx.x == 0 && threadIdx.x == 0) task.states[index] = state;
  if (!open.filters && !open.tops) return;

  bins[0].clear();
  bins[1].clear();
  count_row(task, source, plan, state, open, bins);
  __syncthreads();
  Wide* const of_row = task.bins + static_cast<int64_t>(index) * 2 * kNumBins + threadIdx.x;
  if (bins[0].mine() != 0) atomicAdd(of_row, bins[0].mine());
  if (bins[1].mine() != 0) atomicAdd(of_row + kNumBins, bins[1].mine());
  if (!is_last_block(&task.counters[index].num_binned, gridDim.x)) return;

  RowState& out = task.states[index];
  if (open.filters) {
    Wide total = 0;
    const int32_t last = last_bin(plan, __ldcg(of_row), total);
    if (threadIdx.x == 0) {
      out.total_mass = total;
      out.last_bin = last;
    }
  }
  if (open.tops) {
    const int32_t last = find_bin(__ldcg(of_row + kNumBins), static_cast<Wide>(plan.num_tops)).bin;
    if (threadIdx.x == 0) out.last_top_bin = last;
  }
}

}  // namespace

void launch_bin_rows(cudaStream_t stream, const SampleTask& task, uint32_t blocks_per_row) {
  launch(stream,
         {.grid = dim3(blocks_per_row, static_cast<unsigned>(task.launch.num_rows)),
          .block = dim3(kSampleThreads),
          .overlaps_previous = true},
         bin_rows, task);
}

}  // namespace tgi::cuda
