// CudaDevice: the ops of layers with experts.
#include "base/error.h"
#include "cuda/cuda_device.h"
#include "cuda/kernels/experts.h"
#include "cuda/kernels/packed.h"

namespace tgi::cuda {

void CudaDevice::route(const RouteArgs& args) {
  TGI_CHECK(args.logits.rows <= slot_layout_->max_batch_tokens &&
            args.logits.cols <= slot_layout_->num_experts &&
            args.rule.top_k <= slot_layout_->experts_per_token);
  routes_ = plan_routes(expert_memory_, args.logits.rows, args.logits.cols, args.rule.top_k,
                        plan_options_.deterministic);
  launch_route(stream_.get(), args, routes_);
}

void CudaDevice::expert_matmul(const ExpertMatmulArgs& args) {
  TGI_CHECK(static_cast<int32_t>(args.experts.size()) == routes_.num_experts);
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

void CudaDevice::weigh_experts(const WeighArgs& args) {
  launch_weigh_experts(stream_.get(), args, routes_);
}

void CudaDevice::combine_experts(const CombineArgs& args) {
  launch_combine_experts(stream_.get(), args, routes_);
}

}  // namespace tgi::cuda
