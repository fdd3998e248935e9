// The third kernel of launch_sample, for rows with filters or alternatives: lists the ids that the
// second one left in the running, and the last CUDA block of the row to be done with that applies
// the filters to the list, draws, and orders the alternatives.
//
// The filters do not thin the list: each is a bound that an id has to keep, and the next works on
// the ids that keep all bounds so far. engine/sample/candidates.cc is the definition.
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/sample_draw.cuh"
#include "cuda/kernels/sample_list.cuh"
#include "cuda/kernels/sample_select.cuh"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

// One in 2^40 of a nat: of a sum over 2^18 ids nothing overflows.
constexpr double kSurpriseUnits = 0x1p40;

// Appends the thread's values that `keeps` names to the list; nothing past its end, but counts on.
template <typename Keeps>
__device__ __forceinline__ void append(const float (&x)[kIdsPerThread],
                                       int32_t chunk,
                                       Candidate* list,
                                       uint32_t capacity,
                                       uint32_t* count,
                                       Keeps keeps) {
  uint32_t kept = 0;
#pragma unroll
  for (int i = 0; i < kIdsPerThread; ++i) {
    if (x[i] > -INFINITY && keeps(x[i])) kept |= 1U << i;
  }
  if (kept == 0) return;
  uint32_t place = atomicAdd(count, static_cast<uint32_t>(__popc(kept)));
#pragma unroll
  for (int i = 0; i < kIdsPerThread; ++i) {
    if ((kept >> i & 1U) == 0) continue;
    if (place < capacity) list[place] = {x[i], id_at(first_id(chunk), i)};
    ++place;
  }
}

__device__ __forceinline__ void list_row(const SampleTask& task,
                                         const LogitSource& source,
                                         const RowPlan& plan,
                                         const RowState& state,
                                         const OpenWork& open,
                                         unsigned index) {
  RowCounters& counters = task.counters[index];
  for (auto chunk = static_cast<int32_t>(blockIdx.x); chunk < task.num_chunks;
       chunk += static_cast<int32_t>(gridDim.x)) {
    float x[kIdsPerThread];
    load_raw(source, chunk, x);
    if (open.tops) {
      append(x, chunk, task.listed_tops + static_cast<int64_t>(index) * kMaxListedTops,
             kMaxListedTops, &counters.num_listed_tops, [&](float value) {
               return static_cast<int32_t>(bin_of(state.raw_highest - value)) <= state.last_top_bin;
             });
    }
    if (!open.filters) continue;
    transform(source, chunk, x);
    append(x, chunk, task.listed + static_cast<int64_t>(index) * kMaxListed, kMaxListed,
           &counters.num_listed, [&](float value) {
             return static_cast<int32_t>(bin_of_value(state, plan.first, value)) <= state.last_bin;
           });
  }
}

// What the filters have found so far.
struct Bounds {
  float least = -INFINITY;       // top-k
  float least_p = -INFINITY;     // top-p: above it, or equal to it and
  int32_t last_id = 0x7fffffff;  // up to this id
  float atypical = INFINITY;     // typical-p: up to this
  double log_total = 0.0;
  double entropy = 0.0;
  float highest = 0.0F;       // of all ids
  float kept_highest = 0.0F;  // of those that keep all bounds up to typical-p
  float min_p = 0.0F;

  __device__ __forceinline__ bool keeps(float value, int32_t id) const {
    if (value < least || value < least_p || (value == least_p && id > last_id)) return false;
    if (atypical < INFINITY && typicality(value, highest, log_total, entropy) > atypical) {
      return false;
    }
    return min_p <= 0.0F || expf(value - kept_highest) >= min_p;
  }
};

__device__ __forceinline__ void keep_top_k(const CandidateSource& all,
                                           int32_t k,
                                           Bins& bins,
                                           Bounds& bounds) {
  const Cut cut = find_cut(all, bins, static_cast<Wide>(k),
                           [](float value, int32_t, auto add) { add(~order_key(value), 1); });
  bounds.least = value_of_key(~cut.key);
}

// `total`: 0 when only the candidates count.
__device__ __forceinline__ void keep_top_p(
    const CandidateSource& all, float share, Wide total, Bins& bins, Bounds& bounds) {
  const Bounds before = bounds;
  if (total == 0) {
    total = sum_over(all, [&](float value, int32_t id) {
      return before.keeps(value, id) ? mass_of(value, before.highest) : 0;
    });
  }
  const Wide target = max(mass_share(share, total), Wide{1});
  const Cut cut = find_cut(all, bins, target, [&](float value, int32_t id, auto add) {
    if (before.keeps(value, id)) add(~order_key(value), mass_of(value, before.highest));
  });
  const float least = value_of_key(~cut.key);
  bounds.least_p = least;
  // Among equal values the lowest ids are kept, no more than it takes.
  const Wide each = mass_of(least, before.highest);
  const Wide missing = target > cut.before ? target - cut.before : 1;
  if (each == 0 || missing > cut.mass - each) return;
  const Cut id_cut =
      find_cut(all, bins, (missing + each - 1) / each, [&](float value, int32_t id, auto add) {
        if (value == least && before.keeps(value, id)) add(static_cast<uint32_t>(id), 1);
      });
  bounds.last_id = static_cast<int32_t>(id_cut.key);
}

// `state`: of rows that begin with this filter, whose total and entropy are those of all ids.
__device__ __forceinline__ void keep_typical(
    const CandidateSource& all, float share, const RowState* state, Bins& bins, Bounds& bounds) {
  const Bounds before = bounds;
  Wide total = 0;
  if (state != nullptr) {
    total = state->total_mass;
    bounds.log_total = state->log_total;
    bounds.entropy = state->entropy;
  } else {
    total = sum_over(all, [&](float value, int32_t id) {
      return before.keeps(value, id) ? mass_of(value, before.highest) : 0;
    });
    const double sum = static_cast<double>(total) / static_cast<double>(kMassUnits);
    const double log_total = log(sum);
    const Wide surprises = sum_over(all, [&](float value, int32_t id) -> Wide {
      const float distance = value - before.highest;
      const float weight = expf(distance);
      if (!(weight > 0.0F) || !before.keeps(value, id)) return 0;
      const double surprise = log_total - static_cast<double>(distance);
      return static_cast<Wide>(fmax(static_cast<double>(weight) * surprise, 0.0) * kSurpriseUnits);
    });
    bounds.log_total = log_total;
    bounds.entropy = static_cast<double>(surprises) / kSurpriseUnits / sum;
  }
  const double log_total = bounds.log_total;
  const double entropy = bounds.entropy;
  const Cut cut =
      find_cut(all, bins, mass_share(share, total), [&](float value, int32_t id, auto add) {
        if (!before.keeps(value, id)) return;
        const float key = typicality(value, before.highest, log_total, entropy);
        add(__float_as_uint(key), mass_of(value, before.highest));
      });
  bounds.atypical = __uint_as_float(cut.key);
  const Wide highest = highest_over(all, [&](float value, int32_t id) {
    return bounds.keeps(value, id) ? order_key(value) : 0U;
  });
  bounds.kept_highest = value_of_key(static_cast<uint32_t>(highest));
}

__device__ __forceinline__ int32_t draw_filtered(const CandidateSource& all,
                                                 const RowPlan& plan,
                                                 const RowState& state,
                                                 const NoiseSource& noise,
                                                 Bins& bins) {
  const SlotSampling& sampling = plan.sampling;
  Bounds bounds;
  bounds.highest = state.highest;
  bounds.kept_highest = state.highest;
  if (plan.first == FirstFilter::kTopK) keep_top_k(all, sampling.top_k, bins, bounds);
  if (sampling.top_p < 1.0F) {
    keep_top_p(all, sampling.top_p, plan.first == FirstFilter::kTopP ? state.total_mass : 0, bins,
               bounds);
  }
  if (sampling.typical_p < 1.0F) {
    keep_typical(all, sampling.typical_p, plan.first == FirstFilter::kTypical ? &state : nullptr,
                 bins, bounds);
  }
  bounds.min_p = sampling.min_p;
  const PackedBest winner = highest_over(all, [&](float value, int32_t id) -> Wide {
    if (!bounds.keeps(value, id)) return 0;
    const float speed = speed_of(value - bounds.kept_highest, noise.bits(id));
    return speed > 0.0F ? pack_best(speed, id) : 0;
  });
  return winner == 0 ? 0 : id_of(winner);
}

__device__ __forceinline__ void order_tops(const CandidateSource& all,
                                           int32_t wanted,
                                           const RowState& state,
                                           Bins& bins,
                                           SampledRow& out) {
  __shared__ Candidate kept[kMaxTopTokens];
  __shared__ int32_t num_kept;
  const Cut cut = find_cut(all, bins, static_cast<Wide>(wanted),
                           [](float value, int32_t, auto add) { add(~order_key(value), 1); });
  const float least = value_of_key(~cut.key);
  int32_t last_id = 0x7fffffff;
  if (cut.before + cut.mass > kMaxTopTokens) {
    last_id = static_cast<int32_t>(
        find_cut(all, bins, kMaxTopTokens - cut.before, [&](float value, int32_t id, auto add) {
          if (value == least) add(static_cast<uint32_t>(id), 1);
        }).key);
  }
  if (threadIdx.x == 0) num_kept = 0;
  __syncthreads();
  for_each(all, [&](float value, int32_t id) {
    if (value < least || (value == least && id > last_id)) return;
    kept[atomicAdd(&num_kept, 1)] = {value, id};
  });
  __syncthreads();
  const auto me = static_cast<int32_t>(threadIdx.x);
  if (me == 0) out.num_top = num_kept;
  if (me >= num_kept) return;
  const Candidate mine = kept[me];
  int32_t rank = 0;
  for (int32_t i = 0; i < num_kept; ++i) {
    const Candidate other = kept[i];
    rank += other.value > mine.value || (other.value == mine.value && other.id < mine.id) ? 1 : 0;
  }
  out.top_ids[rank] = mine.id;
  out.top_logprobs[rank] = raw_logprob(state, mine.value);
}

// -1 for a list that overflowed.
__device__ __forceinline__ int32_t listed(const uint32_t* count, uint32_t capacity) {
  const uint32_t all = __ldcg(count);
  return all > capacity ? -1 : static_cast<int32_t>(all);
}

__global__ void __launch_bounds__(kSampleThreads, 2)
    filter_rows(const __grid_constant__ SampleTask task) {
  wait_for_previous_kernel();
  launch_next_kernel();
  __shared__ Bins bins;
  const unsigned index = blockIdx.y;
  const RowPlan plan = plan_row(task.launch, index);
  if (plan.is_padding || (plan.first == FirstFilter::kNone && plan.num_tops == 0)) return;
  const RowState state = task.states[index];
  const OpenWork open = open_work(plan, state);
  if (!open.filters && !open.tops) return;
  const LogitSource source = source_of(task, plan, index);
  list_row(task, source, plan, state, open, index);
  RowCounters& counters = task.counters[index];
  if (!is_last_block(&counters.num_filtered, gridDim.x)) return;

  if (open.filters) {
    const CandidateSource all = {&source, task.listed + static_cast<int64_t>(index) * kMaxListed,
                                 listed(&counters.num_listed, kMaxListed), task.num_chunks, false};
    const int32_t id = draw_filtered(all, plan, state, noise_source(task.launch, plan), bins);
    if (threadIdx.x == 0) record_draw(task, plan, state, index, id);
  }
  if (open.tops) {
    const CandidateSource all = {
        &source, task.listed_tops + static_cast<int64_t>(index) * kMaxListedTops,
        listed(&counters.num_listed_tops, kMaxListedTops), task.num_chunks, true};
    order_tops(all, plan.num_tops, state, bins, task.launch.out[index]);
  }
}

}  // namespace

void launch_filter_rows(cudaStream_t stream, const SampleTask& task, uint32_t blocks_per_row) {
  launch(stream,
         {.grid = dim3(blocks_per_row, static_cast<unsigned>(task.launch.num_rows)),
          .block = dim3(kSampleThreads),
          .overlaps_previous = true},
         filter_rows, task);
}

}  // namespace tgi::cuda
