// AVX-512 with VNNI and the bf16 dot product. Compiled with its own flags: see
// engine/cpu/CMakeLists.txt.
#include "engine/cpu/kernels/attention.h"
#include "engine/cpu/kernels/dot_pairs.h"
#include "engine/cpu/kernels/matmul.h"
#include "engine/cpu/kernels/native_pairs.h"
#include "engine/cpu/kernels/pack.h"

namespace tgi {

const KernelTable& avx512bf16_kernels() {
  static const KernelTable table = [] {
    using BF16 = DotPairs<NativePairs, kPairBlock>;
    using ValuesBF16 = DotPairs<NativePairs, kValuePairBlock>;
    constexpr auto kIndex = static_cast<size_t>(PanelType::kBF16);
    KernelTable out = avx512vnni_kernels();
    out.isa = "avx512bf16";
    out.pair_order = PairOrder::kEvenOdd;
    out.matmul[kIndex] = matmul_kernel<BF16>();
    out.pack[kIndex] = pack_panel<F32x16Avx512, DType::kBF16, PairOrder::kEvenOdd>;
    set_attention<VectorProducts<BF16, ValuesBF16, DType::kBF16, PairOrder::kEvenOdd>>(
        out, PanelType::kBF16);
    return out;
  }();
  return table;
}

}  // namespace tgi
