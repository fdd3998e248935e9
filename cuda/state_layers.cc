// See state_layers.h.
#include "cuda/state_layers.h"

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/cuda_device.h"
#include "cuda/kernels/state.h"

namespace tgi::cuda {

void check_state(const StateLayout& layout) {
  const int32_t most = layout.decays_numbers ? kMaxDecayingNumbers : kMaxStateSize;
  if (layout.num_layers == 0 || layout.state_size <= most) return;
  throw Error(
      Code::kUnsupported,
      fmt::format("the cuda backend holds states of up to {} numbers for a channel, this model's "
                  "layers have {}; use --backend cpu",
                  most, layout.state_size));
}

StateStep CudaDevice::conv_step(int32_t layer) const {
  const int64_t floats = SlotStateShape::of(slot_layout_->state).floats();
  return {.states = layer_states_ + int64_t{layer} * slots_.num_slots * floats,
          .slot_stride = floats,
          .num_slots = slots_.num_slots,
          .rows = step_.tokens,
          .sequences = step_.sequences,
          .num_rows = shape_.num_tokens,
          .num_sequences = shape_.num_sequences};
}

StateStep CudaDevice::recurrent_step(int32_t layer) const {
  StateStep step = conv_step(layer);
  step.states += SlotStateShape::of(slot_layout_->state).conv_floats;
  return step;
}

void CudaDevice::causal_conv(const ConvArgs& args) {
  launch_causal_conv(stream_.get(), args, conv_step(args.layer));
}

void CudaDevice::channel_scan(const ChannelScanArgs& args) {
  launch_channel_scan(stream_.get(), args, recurrent_step(args.layer));
}

void CudaDevice::head_scan(const HeadScanArgs& args) {
  launch_head_scan(stream_.get(), args, slot_layout_->state, recurrent_step(args.layer));
}

void CudaDevice::delta_rule(const DeltaRuleArgs& args) {
  launch_delta_rule(stream_.get(), args, slot_layout_->state, recurrent_step(args.layer));
}

void CudaDevice::rg_lru(const RgLruArgs& args) {
  launch_rg_lru(stream_.get(), args, recurrent_step(args.layer));
}

void CudaDevice::gated_norm(const GatedNormArgs& args) {
  launch_gated_norm(stream_.get(), args);
}

}  // namespace tgi::cuda
