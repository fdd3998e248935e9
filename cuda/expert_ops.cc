// CudaDevice: the ops of layers with experts.
#include <algorithm>

#include "base/error.h"
#include "cuda/cuda_device.h"
#include "cuda/kernels/experts.h"
#include "cuda/kernels/low_rank.h"
#include "cuda/kernels/packed.h"

namespace tgi::cuda {

void CudaDevice::route(const RouteArgs& args) {
  TGI_CHECK(args.logits.rows <= slot_layout_->max_batch_tokens &&
            args.logits.cols <= slot_layout_->num_experts &&
            args.rule.top_k <= slot_layout_->experts_per_token);
  routes_ = plan_routes(expert_memory_, args.logits.rows, args.logits.cols, args.rule,
                        plan_options_.deterministic);
  launch_route(stream_.get(), args, token_ids_, routes_);
}

void CudaDevice::expert_matmul(const ExpertMatmulArgs& args) {
  TGI_CHECK(static_cast<int32_t>(args.experts.size()) == routes_.num_matrices);
  const auto& first = static_cast<const CudaMatrix&>(*args.experts.front().w);
  const ExpertMatmulLaunch launch = {
      .experts = expert_tables_.table_of(stream_.get(), args.experts),
      .w_stride = first.stride,
      .outputs = first.rows,
      .x_is_routed = args.x_is_routed,
      .x = args.x,
      .out = args.out};
  if (first.packed) return launch_packed_experts(stream_.get(), *first.packed, launch, routes_);
  launch_expert_matmul(stream_.get(), launch, routes_);
}

// As many choices at once as there are rows for what lies between the products: those of a step's
// tokens, so that how many launches there are depends on the size of the step alone.
void CudaDevice::add_low_rank_to_experts(const ExpertLowRankArgs& args) {
  if (!has_adapters_) return;
  LowRankLaunch launch = low_rank_launch({.site = args.first_site, .x = args.x, .out = args.out});
  const int64_t room = slot_layout_->max_batch_tokens;
  for (int64_t first = 0; first < routes_.num_rows(); first += room) {
    launch.choices = {.rows = routes_.memory.rows,
                      .experts = routes_.memory.experts,
                      .num_matrices = routes_.num_matrices,
                      .top_k = routes_.top_k,
                      .x_is_routed = args.x_is_routed,
                      .first = first};
    launch.num_rows = std::min(room, routes_.num_rows() - first);
    launch_low_rank(stream_.get(), launch);
  }
}

void CudaDevice::weigh_experts(const WeighArgs& args) {
  launch_weigh_experts(stream_.get(), args, routes_);
}

void CudaDevice::combine_experts(const CombineArgs& args) {
  launch_combine_experts(stream_.get(), args, routes_);
}

}  // namespace tgi::cuda
