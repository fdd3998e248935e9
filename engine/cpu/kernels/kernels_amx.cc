// Many rows on the matrix unit (AMX), few on AVX-512. Compiled with its own flags: see
// engine/cpu/CMakeLists.txt.
#include "engine/cpu/kernels/amx_attention.h"
#include "engine/cpu/kernels/amx_int.h"
#include "engine/cpu/kernels/amx_matmul.h"
#include "engine/cpu/kernels/attention.h"
#include "engine/cpu/kernels/i32x16_avx512.h"
#include "engine/cpu/kernels/native_pairs.h"

namespace tgi {
namespace {

using Attention = AmxProducts<F32x16Avx512, AmxUnit>;

// Below so many rows what there is to multiply does not pay for setting up the unit.
constexpr int32_t kLeastAttentionRows = 3;

void attention(const AttentionBlock& block) {
  if (block.num_rows >= kLeastAttentionRows) {
    return attention_block<Attention>(block);
  }
  avx512vnni_kernels().attention[static_cast<size_t>(PanelType::kBF16)](block);
}

}  // namespace

const KernelTable& amx_kernels() {
  static const KernelTable table = [] {
    using V = F32x16Avx512;
    constexpr auto kBF16 = static_cast<size_t>(PanelType::kBF16);
    KernelTable out = avx512vnni_kernels();
    out.isa = "amx";
    out.matmul_many[kBF16] = {.x_bytes = AmxBf16X<V>::x_bytes,
                              .prepare = AmxBf16X<V>::prepare,
                              .block = AmxBf16<V, AmxUnit>::run};
    out.attention_rows[kBF16] = Attention::kSuitableRows;
    out.attention[kBF16] = attention;
    for_integer_panels([&]<PanelType kType>() {
      MatmulKernel& many = out.matmul_many[static_cast<size_t>(kType)];
      many = out.matmul[static_cast<size_t>(kType)];
      many.block = AmxInt<I32x16Vnni, AmxUnit, kType>::run;
    });
    return out;
  }();
  return table;
}

}  // namespace tgi
