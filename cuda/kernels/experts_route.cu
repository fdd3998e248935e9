// See experts.h: the choice of experts and the sort of rows by expert.
#include "base/error.h"
#include "cuda/kernels/dispatch.h"
#include "cuda/kernels/experts.h"
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/reduce.cuh"
#include "cuda/kernels/softplus.cuh"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

constexpr int kChoiceWarps = 4;  // of a CUDA block, one for a token each
constexpr int kSortWarps = 8;
constexpr unsigned kThreadsOfWarp = 32;

__device__ __forceinline__ float warp_highest(float x) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, distance));
  }
  return x;
}

// What a logit is worth, once the token's highest and the sum over all experts are known.
struct ScoreOf {
  RouterScore kind;
  float highest;
  float sum;

  __device__ __forceinline__ float operator()(float logit) const {
    if (kind == RouterScore::kSparseMixer) return logit;
    if (kind == RouterScore::kSqrtSoftplus) return sqrtf(softplus(logit));
    return kind == RouterScore::kSoftmax ? expf(logit - highest) / sum
                                         : 1.0F / (1.0F + expf(-logit));
  }

  // What an expert is chosen by.
  __device__ __forceinline__ float choice(float logit) const {
    return kind == RouterScore::kSigmoidOfChosen ? logit : (*this)(logit);
  }
};

template <typename T>
__device__ ScoreOf score_of(RouterScore kind, const T* logits, int32_t num_experts, int lane) {
  ScoreOf out = {kind, -INFINITY, 1.0F};
  if (kind != RouterScore::kSoftmax) return out;
  for (int32_t e = lane; e < num_experts; e += 32)
    out.highest = fmaxf(out.highest, to_float(logits[e]));
  out.highest = warp_highest(out.highest);
  float sum = 0.0F;
  for (int32_t e = lane; e < num_experts; e += 32) sum += expf(to_float(logits[e]) - out.highest);
  out.sum = warp_sum(sum);
  return out;
}

__device__ float goodness_of(const float* group, int32_t size, int32_t group_best) {
  float best = -INFINITY;
  float second = -INFINITY;
  for (int32_t i = 0; i < size; ++i) {
    second = fmaxf(second, fminf(best, group[i]));
    best = fmaxf(best, group[i]);
  }
  return group_best > 1 && size > 1 ? best + second : best;
}

// Leaves nothing to be chosen outside the best groups. A group stays when fewer than top_groups are
// better, or as good and before it. Lane i judges groups i and i + 32.
__device__ void keep_best_groups(const RouteRule& rule,
                                 float* scores,
                                 int32_t num_experts,
                                 int lane) {
  const int32_t size = num_experts / rule.num_groups;
  float own[2];
  int32_t before[2] = {0, 0};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int32_t group = lane + 32 * half;
    own[half] = group < rule.num_groups ? goodness_of(scores + group * size, size, rule.group_best)
                                        : -INFINITY;
  }
  for (int32_t other = 0; other < rule.num_groups; ++other) {
    const float theirs = __shfl_sync(kAllLanes, other < 32 ? own[0] : own[1], other % 32);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const bool is_first = theirs == own[half] && other < lane + 32 * half;
      if (theirs > own[half] || is_first) ++before[half];
    }
  }
  uint32_t kept[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    kept[half] = __ballot_sync(kAllLanes, before[half] < rule.top_groups ? 1 : 0);
  }
  __syncwarp();  // all have read the groups that are changed now
  for (int32_t e = lane; e < num_experts; e += 32) {
    const int32_t group = e / size;
    if ((kept[group / 32] >> (group % 32) & 1U) == 0) scores[e] = -INFINITY;
  }
}

// The expert of the highest score that is not taken, of two equal ones the first. A score that is
// not a number is one that is taken.
__device__ int32_t best_expert(const float* scores, int32_t num_experts, int lane) {
  float best = 0.0F;
  int32_t expert = num_experts;  // none
  for (int32_t e = lane; e < num_experts; e += 32) {
    const float score = scores[e];
    if (score != score || (expert != num_experts && !(score > best))) continue;
    best = score;
    expert = e;
  }
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    const float theirs = __shfl_xor_sync(kAllLanes, best, distance);
    const int32_t other = __shfl_xor_sync(kAllLanes, expert, distance);
    const bool is_theirs = other != num_experts && (expert == num_experts || theirs > best ||
                                                    (theirs == best && other < expert));
    best = is_theirs ? theirs : best;
    expert = is_theirs ? other : expert;
  }
  return expert;
}

// The expert's share of the softmax over those near it that are not taken yet (RouterScore).
template <typename T>
__device__ float sparse_share(const RouteRule& rule,
                              const T* logits,
                              const float* scores,
                              int32_t num_experts,
                              int32_t expert,
                              int lane) {
  const float own = to_float(logits[expert]);
  float sum = 0.0F;
  for (int32_t e = lane; e < num_experts; e += 32) {
    const float other = to_float(logits[e]);
    const bool is_taken = scores[e] != scores[e];
    const bool is_far = (own - other) / fmaxf(fabsf(other), own) > 2.0F * rule.mixer_width;
    if (!is_taken && !is_far) sum += expf(other - own);
  }
  return 1.0F / warp_sum(sum);
}

// Of the token's choices, whose scores are the weights and sum to that over all lanes.
__device__ __forceinline__ void scale_weights(const RouteRule& rule,
                                              const int32_t* experts,
                                              const float* expert_scale,
                                              float sum,
                                              float* weights,
                                              int lane) {
  sum = warp_sum(sum);
  __syncwarp();
  // Scores of a sigmoid may all be zero.
  const float factor = rule.normalises ? rule.scale / fmaxf(sum, 1e-20F) : rule.scale;
  for (int32_t i = lane; i < rule.top_k; i += 32) {
    weights[i] *= expert_scale == nullptr ? factor : factor * expert_scale[experts[i]];
  }
}

// One warp for a token; each lane keeps every 32nd expert, and is the only one that writes it.
template <typename T>
__global__ void choose_experts(RouteRule rule,
                               const T* logits,
                               int64_t stride,
                               const float* choice_bias,
                               const float* expert_scale,
                               ExpertRoutes routes) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const auto lane = static_cast<int>(threadIdx.x % 32);
  const auto token = static_cast<int32_t>(blockIdx.x * kChoiceWarps + threadIdx.x / 32);
  if (token >= routes.num_tokens) return;
  const int32_t num_experts = routes.num_experts;
  logits += token * stride;
  float* const scores = routes.memory.scores + int64_t{token} * num_experts;
  const ScoreOf score = score_of(rule.score, logits, num_experts, lane);
  for (int32_t e = lane; e < num_experts; e += 32) {
    const float value =
        score.choice(to_float(logits[e])) + (choice_bias == nullptr ? 0.0F : choice_bias[e]);
    // One that is not a number loses; the row's result is not a number all the same.
    scores[e] = value != value ? -INFINITY : value;
  }
  __syncwarp();
  if (rule.num_groups > 1) keep_best_groups(rule, scores, num_experts, lane);
  int32_t mixed = -1;  // of a sparse mixer, lane i: the i-th expert that was chosen, and its share
  float share = 0.0F;
  for (int32_t i = 0; i < rule.top_k; ++i) {
    const int32_t expert = best_expert(scores, num_experts, lane);
    if (rule.score == RouterScore::kSparseMixer) {
      const float its = sparse_share(rule, logits, scores, num_experts, expert, lane);
      if (lane == i) {
        mixed = expert;
        share = its;
      }
      __syncwarp();
    }
    if (expert % 32 == lane) scores[expert] = NAN;
  }

  int32_t* const experts = routes.memory.experts + int64_t{token} * rule.top_k;
  float* const weights = routes.memory.weights + int64_t{token} * rule.top_k;
  float sum = 0.0F;
  int32_t count = 0;
  for (int32_t first = 0; first < num_experts; first += 32) {
    const int32_t e = first + lane;
    const bool is_taken = e < num_experts && scores[e] != scores[e];
    const uint32_t taken = __ballot_sync(kAllLanes, is_taken ? 1 : 0);
    float weight = is_taken ? score(to_float(logits[e])) : 0.0F;
    for (int32_t i = 0; rule.score == RouterScore::kSparseMixer && i < rule.top_k; ++i) {
      const float its = __shfl_sync(kAllLanes, share, i);
      if (__shfl_sync(kAllLanes, mixed, i) == e) weight = its;
    }
    if (is_taken) {
      const int32_t at = count + __popc(taken & ((1U << lane) - 1));
      experts[at] = e;
      weights[at] = weight;
      sum += weight;
    }
    count += __popc(taken);
  }
  scale_weights(rule, experts, expert_scale, sum, weights, lane);
}

// One warp for a token, whose experts are those of a row of the table: a lane takes every 32nd.
template <typename T>
__global__ void take_experts(RouteRule rule,
                             const T* logits,
                             int64_t stride,
                             const int32_t* table,
                             int32_t num_ids,
                             const int32_t* token_ids,
                             const float* expert_scale,
                             ExpertRoutes routes) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const auto lane = static_cast<int>(threadIdx.x % 32);
  const auto token = static_cast<int32_t>(blockIdx.x * kChoiceWarps + threadIdx.x / 32);
  if (token >= routes.num_tokens) return;
  logits += token * stride;
  table += int64_t{token_ids[token] < num_ids ? token_ids[token] : 0} * rule.top_k;
  const ScoreOf score = score_of(rule.score, logits, routes.num_experts, lane);
  int32_t* const experts = routes.memory.experts + int64_t{token} * rule.top_k;
  float* const weights = routes.memory.weights + int64_t{token} * rule.top_k;
  float sum = 0.0F;
  for (int32_t i = lane; i < rule.top_k; i += 32) {
    experts[i] = table[i];
    weights[i] = score(to_float(logits[table[i]]));
    sum += weights[i];
  }
  scale_weights(rule, experts, expert_scale, sum, weights, lane);
}

// One CUDA block an expert: counts the choices of those before it, which is where its rows begin,
// and gives its own their rows in order. Each warp has a run of choices of its own.
__global__ void __launch_bounds__(32 * kSortWarps)
    sort_by_expert(ExpertRoutes routes, bool tile_for_each_row) {
  __shared__ int32_t counts[kSortWarps][2];
  wait_for_previous_kernel();
  launch_next_kernel();
  const auto lane = static_cast<int32_t>(threadIdx.x % 32);
  const auto warp = static_cast<int32_t>(threadIdx.x / 32);
  const auto self = static_cast<int32_t>(blockIdx.x);
  const int32_t num_choices = routes.num_tokens * routes.top_k;
  const int32_t run = (num_choices + 32 * kSortWarps - 1) / (32 * kSortWarps) * 32;
  const int32_t end = min((warp + 1) * run, num_choices);
  const int32_t* const experts = routes.memory.experts;
  int32_t less = 0;
  int32_t own = 0;
  for (int32_t first = warp * run; first < end; first += 32) {
    const int32_t expert = first + lane < end ? experts[first + lane] : routes.num_experts;
    less += __popc(__ballot_sync(kAllLanes, expert < self ? 1 : 0));
    own += __popc(__ballot_sync(kAllLanes, expert == self ? 1 : 0));
  }
  if (lane == 0) {
    counts[warp][0] = less;
    counts[warp][1] = own;
  }
  __syncthreads();
  int32_t begin = 0;
  int32_t before = 0;
  int32_t total = 0;
#pragma unroll
  for (int each = 0; each < kSortWarps; ++each) {
    begin += counts[each][0];
    if (each < warp) before += counts[each][1];
    total += counts[each][1];
  }

  int32_t next = begin + before;
  for (int32_t first = warp * run; first < end; first += 32) {
    const int32_t choice = first + lane;
    const bool is_own = choice < end && experts[choice] == self;
    const uint32_t mask = __ballot_sync(kAllLanes, is_own ? 1 : 0);
    if (is_own) {
      const int32_t row = next + __popc(mask & ((1U << lane) - 1));
      routes.memory.rows[choice] = row;
      routes.memory.tokens[row] = choice / routes.top_k;
    }
    next += __popc(mask);
  }

  // Where an expert's tiles stand depends on where its rows begin alone: with few rows there is a
  // tile for each row, of which the first few are used; with many there is room for one that is
  // not full. The rows of an expert without a matrix are no work.
  const bool has_matrix = self < routes.num_matrices;
  const int32_t after = begin + total;
  const int32_t size = routes.tile_rows;
  const int32_t first_tile = tile_for_each_row ? begin : begin / size + self;
  const int32_t end_tile = tile_for_each_row ? after : after / size + self + 1;
  for (auto tile = first_tile + static_cast<int32_t>(threadIdx.x); tile < end_tile;
       tile += 32 * kSortWarps) {
    const int32_t row = begin + (tile - first_tile) * size;
    routes.memory.tiles[tile] = {self, row, has_matrix ? max(min(after - row, size), 0) : 0};
  }
}

// Tiles where each row has one of its own, and where each expert has one beside those that are
// full.
bool has_tile_for_each_row(const ExpertRoutes& routes) {
  return routes.num_rows() <= routes.num_rows() / routes.tile_rows + routes.num_experts;
}

}  // namespace

ExpertRoutes plan_routes(const ExpertMemory& memory,
                         int64_t num_tokens,
                         int64_t num_experts,
                         const RouteRule& rule,
                         bool one_kernel) {
  ExpertRoutes out = {.memory = memory,
                      .num_experts = static_cast<int32_t>(num_experts),
                      .num_matrices = static_cast<int32_t>(num_experts) - rule.num_identity,
                      .num_tokens = static_cast<int32_t>(num_tokens),
                      .top_k = rule.top_k,
                      .tile_rows = 8};
  const auto is_filled = [&](int32_t rows) { return rows * num_experts < out.num_rows(); };
  while (out.tile_rows < 64 && is_filled(out.tile_rows)) out.tile_rows *= 2;
  // From there on the kernel that streams weights reads x too often.
  out.has_blocks = !one_kernel && out.tile_rows > 16;
  if (out.has_blocks) out.tile_rows = is_filled(64) ? 128 : 64;
  out.num_tiles = has_tile_for_each_row(out) ? out.num_rows()
                                             : out.num_rows() / out.tile_rows + out.num_experts;
  return out;
}

void launch_route(cudaStream_t stream,
                  const RouteArgs& args,
                  const int32_t* token_ids,
                  const ExpertRoutes& routes) {
  if (routes.num_tokens == 0) return;
  const RouteRule& rule = args.rule;
  TGI_CHECK(rule.num_groups <= kMaxExpertGroups && rule.group_best <= 2);
  TGI_CHECK(rule.score != RouterScore::kSparseMixer || rule.top_k <= 32);
  TGI_CHECK(routes.num_tokens == args.logits.rows && routes.top_k == rule.top_k);
  TGI_CHECK(args.experts_by_token == nullptr || !rule.scores_chosen());
  const LaunchShape warp_per_token = {
      .grid = dim3(static_cast<unsigned>((routes.num_tokens + kChoiceWarps - 1) / kChoiceWarps)),
      .block = dim3(kThreadsOfWarp * kChoiceWarps),
      .shared_bytes = 0,
      .overlaps_previous = true};
  const float* const expert_scale =
      args.expert_scale == nullptr ? nullptr : args.expert_scale->as<const float>();
  with_element(args.logits.dtype, [&](auto element) {
    using T = decltype(element);
    if (args.experts_by_token != nullptr) {
      launch(stream, warp_per_token, take_experts<T>, rule, args.logits.as<const T>(),
             args.logits.stride, args.experts_by_token, args.num_ids, token_ids, expert_scale,
             routes);
      return;
    }
    launch(stream, warp_per_token, choose_experts<T>, rule, args.logits.as<const T>(),
           args.logits.stride,
           args.choice_bias == nullptr ? nullptr : args.choice_bias->as<const float>(),
           expert_scale, routes);
  });
  launch(stream,
         {.grid = dim3(static_cast<unsigned>(routes.num_experts)),
          .block = dim3(kThreadsOfWarp * kSortWarps),
          .shared_bytes = 0,
          .overlaps_previous = true},
         sort_by_expert, routes, has_tile_for_each_row(routes));
}

}  // namespace tgi::cuda
