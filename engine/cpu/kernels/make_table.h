// Fills a KernelTable from the kernels, written over one vector type. Included only by the one
// source per instruction set. Everything here is a template over that type, so that no code
// compiled for a newer processor can be taken by the linker for an older one.
#pragma once

#include <string_view>

#include "engine/cpu/kernels/attention.h"
#include "engine/cpu/kernels/dot_int.h"
#include "engine/cpu/kernels/dot_pairs.h"
#include "engine/cpu/kernels/dot_plain.h"
#include "engine/cpu/kernels/elementwise.h"
#include "engine/cpu/kernels/kernel_table.h"
#include "engine/cpu/kernels/matmul.h"
#include "engine/cpu/kernels/pack.h"
#include "engine/cpu/kernels/quantise.h"
#include "engine/cpu/kernels/sampling.h"
#include "engine/cpu/kernels/state.h"
#include "engine/cpu/kernels/streams.h"

namespace tgi {

template <typename V, typename Ints>
constexpr KernelTable make_kernel_table(std::string_view isa) {
  using F32 = DotPlain<V, LineF32>;
  using F16 = DotPlain<V, LineF16>;
  using BF16 = DotPairs<FmaPairs<V>, kPairBlock>;
  using ValuesBF16 = DotPairs<FmaPairs<V>, kValuePairBlock>;
  KernelTable out{
      .isa = isa,
      .pair_order = PairOrder::kAdjacent,
      .attention_rows = {},
      .matmul = {matmul_kernel<F32>(), matmul_kernel<F16>(), matmul_kernel<BF16>(),
                 matmul_kernel<DotInt<Ints, PanelType::kInt8>>(),
                 matmul_kernel<DotInt<Ints, PanelType::kInt4>>(),
                 matmul_kernel<DotInt<Ints, PanelType::kMxfp4>>(),
                 matmul_kernel<DotInt<Ints, PanelType::kInt6>>(),
                 matmul_kernel<DotInt<Ints, PanelType::kInt5>>(),
                 matmul_kernel<DotInt<Ints, PanelType::kTable4>>()},
      .matmul_many = {},
      .pack = {pack_panel<V, DType::kF32>, pack_panel<V, DType::kF16>, pack_panel<V, DType::kBF16>,
               quantise_panel<V, QuantiseInt8<V>>, quantise_panel<V, QuantiseInt4<V>>},
      .attention = {},
      .rms_norm = rms_norm<V>,
      .layer_norm = layer_norm<V>,
      .gated_activation = {activation_row<V, Activation::kSilu, true>,
                           activation_row<V, Activation::kGelu, true>,
                           activation_row<V, Activation::kGeluTanh, true>,
                           activation_row<V, Activation::kRelu, true>,
                           activation_row<V, Activation::kReluSquared, true>},
      .activation = {activation_row<V, Activation::kSilu, false>,
                     activation_row<V, Activation::kGelu, false>,
                     activation_row<V, Activation::kGeluTanh, false>,
                     activation_row<V, Activation::kRelu, false>,
                     activation_row<V, Activation::kReluSquared, false>},
      .limited_silu = limited_silu_row<V>,
      .xielu = xielu_row<V>,
      .add = add_rows<V>,
      .scale_and_cap = scale_and_cap<V>,
      .rotate_half = rotate_half<V>,
      .rotate_interleaved = rotate_interleaved<V>,
      .state = {.softplus = softplus_row<V>,
                .sigmoid = sigmoid_row<V>,
                .gate = {gate_row<V, GateKind::kSilu>, gate_row<V, GateKind::kSigmoid>,
                         gate_row<V, GateKind::kSoftplus>},
                .multiply = multiply_row<V>,
                .divide_by_length = divide_by_length<V>,
                .conv = conv_row<V>,
                .scan_channels = scan_block<V, false>,
                .scan_head = scan_block<V, true>,
                .kept = kept_row<V>,
                .delta = delta_block<V, false>,
                .delta_of_numbers = delta_block<V, true>,
                .rg_lru = rg_lru_block<V>},
      .streams = {.predict = predict_streams<V>,
                  .collapse = collapse_streams<V>,
                  .expand = expand_streams<V>,
                  .correct = correct_streams<V>,
                  .match_rms = match_rms<V>,
                  .statistical_top_k = statistical_top_k<V>},
      .sampler_math = {.max_value = max_value<V>,
                       .sum_exp = sum_exp<V>,
                       .exp_shifted = exp_shifted<V>,
                       .temper = temper<V>,
                       .list_from = list_from<V>,
                       .draw = draw<V>},
      .math = {.exp = map_array<V, vector_exp<V>>,
               .tanh = map_array<V, vector_tanh<V>>,
               .erf = map_array<V, vector_erf<V>>,
               .exp_less_tangent = map_array<V, vector_exp_less_tangent<V>>},
      .decode_e4m3 = V::decode_e4m3,
      .decode_int8 = V::decode_int8,
  };
  constexpr PairOrder kOrder = PairOrder::kAdjacent;
  set_attention<VectorProducts<F32, F32, DType::kF32, kOrder>>(out, PanelType::kF32);
  set_attention<VectorProducts<F16, F16, DType::kF16, kOrder>>(out, PanelType::kF16);
  set_attention<VectorProducts<BF16, ValuesBF16, DType::kBF16, kOrder>>(out, PanelType::kBF16);
  return out;
}

}  // namespace tgi
