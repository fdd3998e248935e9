// See state_layers.h.
#include "cuda/state_layers.h"

#include "base/error.h"
#include "cuda/cuda_device.h"

namespace tgi::cuda {
namespace {

[[noreturn]] void fail_state() {
  throw Error(Code::kUnsupported,
              "the cuda backend has no kernels for layers that carry a state (convolutions, Mamba, "
              "gated delta rule), which this model has; use --backend cpu");
}

}  // namespace

void check_state(const StateLayout& layout) {
  if (layout.num_layers > 0) fail_state();
}

void CudaDevice::causal_conv(const ConvArgs& /*args*/) {
  fail_state();
}
void CudaDevice::channel_scan(const ChannelScanArgs& /*args*/) {
  fail_state();
}
void CudaDevice::head_scan(const HeadScanArgs& /*args*/) {
  fail_state();
}
void CudaDevice::delta_rule(const DeltaRuleArgs& /*args*/) {
  fail_state();
}
void CudaDevice::gated_norm(const GatedNormArgs& /*args*/) {
  fail_state();
}

}  // namespace tgi::cuda
