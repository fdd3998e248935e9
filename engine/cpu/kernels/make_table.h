// Fills a KernelTable from the kernels, written over one vector type. Included only by the one
// source per instruction set. Everything here is a template over that type, so that no code
// compiled for a newer processor can be taken by the linker for an older one.
#pragma once

#include "engine/cpu/kernels/attention.h"
#include "engine/cpu/kernels/elementwise.h"
#include "engine/cpu/kernels/kernel_table.h"
#include "engine/cpu/kernels/line.h"
#include "engine/cpu/kernels/matmul.h"
#include "engine/cpu/kernels/pack.h"
#include "engine/cpu/kernels/sampling.h"

namespace tgi {

template <typename V>
constexpr KernelTable make_kernel_table(std::string_view isa) {
  static_assert(tiles_fit<V>());
  return {
      .isa = isa,
      .matmul = {matmul_block<V, LineF32>, matmul_block<V, LineF16>, matmul_block<V, LineBf16>},
      .attention = {attention_block<V, LineF32, DType::kF32>,
                    attention_block<V, LineF16, DType::kF16>,
                    attention_block<V, LineBf16, DType::kBF16>},
      .pack = {pack_panel<V, DType::kF32>, pack_panel<V, DType::kF16>, pack_panel<V, DType::kBF16>},
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
      .add = add_rows<V>,
      .scale_and_cap = scale_and_cap<V>,
      .rotate_half = rotate_half<V>,
      .rotate_interleaved = rotate_interleaved<V>,
      .sampler_math = {.max_value = max_value<V>,
                       .sum_exp = sum_exp<V>,
                       .exp_shifted = exp_shifted<V>,
                       .temper = temper<V>,
                       .list_from = list_from<V>,
                       .draw = draw<V>},
      .math = {.exp = map_array<V, vector_exp<V>>,
               .tanh = map_array<V, vector_tanh<V>>,
               .erf = map_array<V, vector_erf<V>>},
  };
}

}  // namespace tgi
