#include "engine/quantize/tap_device.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace tgi {

TapDevice::TapDevice(Device& device, int32_t max_logit_rows)
    : device_(device), max_logit_rows_(max_logit_rows) {
  TGI_CHECK(device.info().activation_dtype == DType::kF32);
}

void TapDevice::tap(const Matrix* w, See see, bool ends_step) {
  taps_.push_back({.w = w, .see = std::move(see), .ends_step = ends_step});
}

void TapDevice::clear_taps() {
  taps_.clear();
  see_logits_ = nullptr;
}

void TapDevice::allocate_state(const KvLayout& kv, const SlotLayout& slots) {
  KvLayout one_layer = kv;
  one_layer.num_layers = 1;
  SlotLayout one_state = slots;
  one_state.state.num_layers = std::min(slots.state.num_layers, 1);
  device_.allocate_state(one_layer, one_state);
  const auto size = static_cast<size_t>(max_logit_rows_) * static_cast<size_t>(slots.vocab_size);
  logits_ = device_.allocate(size * sizeof(float), "logits");
}

Ticket TapDevice::submit(const Batch& batch, Forward& forward) {
  is_over_ = false;
  return device_.submit(batch, forward);
}

void TapDevice::embed(const EmbedArgs& args) {
  if (!is_over_) device_.embed(args);
}

void TapDevice::norm(const NormArgs& args) {
  if (!is_over_) device_.norm(args);
}

void TapDevice::matmul(const MatmulArgs& args) {
  if (is_over_) return;
  for (const Tap& tap : taps_) {
    if (tap.w != args.w) continue;
    tap.see(args.x);
    is_over_ = tap.ends_step;
  }
  if (!is_over_) device_.matmul(args);
}

void TapDevice::qk_norm_rope_store_kv(const QkvArgs& args) {
  if (is_over_) return;
  QkvArgs first = args;
  first.place = {};
  device_.qk_norm_rope_store_kv(first);
}

void TapDevice::rotate_and_store_latent(const LatentArgs& args) {
  if (is_over_) return;
  LatentArgs first = args;
  first.place = {};
  device_.rotate_and_store_latent(first);
}

void TapDevice::head_matmul(const HeadMatmulArgs& args) {
  if (!is_over_) device_.head_matmul(args);
}

void TapDevice::attention(const AttentionArgs& args) {
  if (is_over_) return;
  AttentionArgs first = args;
  first.place = {};
  device_.attention(first);
}

void TapDevice::activation(const ActivationArgs& args) {
  if (!is_over_) device_.activation(args);
}

void TapDevice::pool(const PoolArgs& args) {
  if (!is_over_) device_.pool(args);
}

void TapDevice::gather_output_rows(const Tensor& x, const Tensor& out) {
  if (!is_over_) device_.gather_output_rows(x, out);
}

void TapDevice::add(const AddArgs& args) {
  if (!is_over_) device_.add(args);
}

void TapDevice::route(const RouteArgs& args) {
  if (!is_over_) device_.route(args);
}

void TapDevice::expert_matmul(const ExpertMatmulArgs& args) {
  if (!is_over_) device_.expert_matmul(args);
}

void TapDevice::weigh_experts(const WeighArgs& args) {
  if (!is_over_) device_.weigh_experts(args);
}

void TapDevice::combine_experts(const CombineArgs& args) {
  if (!is_over_) device_.combine_experts(args);
}

void TapDevice::causal_conv(const ConvArgs& args) {
  if (is_over_) return;
  ConvArgs first = args;
  first.layer = 0;
  device_.causal_conv(first);
}

void TapDevice::channel_scan(const ChannelScanArgs& args) {
  if (is_over_) return;
  ChannelScanArgs first = args;
  first.layer = 0;
  device_.channel_scan(first);
}

void TapDevice::head_scan(const HeadScanArgs& args) {
  if (is_over_) return;
  HeadScanArgs first = args;
  first.layer = 0;
  device_.head_scan(first);
}

void TapDevice::delta_rule(const DeltaRuleArgs& args) {
  if (is_over_) return;
  DeltaRuleArgs first = args;
  first.layer = 0;
  device_.delta_rule(first);
}

void TapDevice::rg_lru(const RgLruArgs& args) {
  if (is_over_) return;
  RgLruArgs first = args;
  first.layer = 0;
  device_.rg_lru(first);
}

void TapDevice::gated_norm(const GatedNormArgs& args) {
  if (!is_over_) device_.gated_norm(args);
}

void TapDevice::predict_streams(const PredictStreamsArgs& args) {
  if (!is_over_) device_.predict_streams(args);
}

void TapDevice::correct_streams(const CorrectStreamsArgs& args) {
  if (!is_over_) device_.correct_streams(args);
}

void TapDevice::collapse_streams(const CollapseStreamsArgs& args) {
  if (!is_over_) device_.collapse_streams(args);
}

void TapDevice::expand_streams(const ExpandStreamsArgs& args) {
  if (!is_over_) device_.expand_streams(args);
}

void TapDevice::choose_tokens(const ChooseArgs& args) {
  if (!is_over_) device_.choose_tokens(args);
}

void TapDevice::compress(const CompressArgs& args) {
  if (!is_over_) device_.compress(args);
}

void TapDevice::match_rms(const MatchRmsArgs& args) {
  if (!is_over_) device_.match_rms(args);
}

void TapDevice::statistical_top_k(const StatisticalTopKArgs& args) {
  if (!is_over_) device_.statistical_top_k(args);
}

void TapDevice::sample(const SampleArgs& args) {
  if (is_over_) return;
  if (!see_logits_) return device_.sample(args);
  TGI_CHECK(args.hidden.rows <= max_logit_rows_);
  const int64_t vocab_size = args.lm_head->rows;
  const Tensor logits{logits_.data(), DType::kF32, args.hidden.rows, vocab_size, vocab_size};
  device_.matmul({.x = args.hidden, .w = args.lm_head, .bias = args.bias, .out = logits});
  if (args.logit_scale != 1.0F || args.logit_softcap != 0.0F) {
    auto* values = logits.as<float>();
    for (int64_t i = 0; i < logits.rows * vocab_size; ++i) {
      values[i] *= args.logit_scale;
      if (args.logit_softcap != 0.0F) {
        values[i] = args.logit_softcap * std::tanh(values[i] / args.logit_softcap);
      }
    }
  }
  see_logits_(logits);
}

}  // namespace tgi
