// Many rows on the matrix unit (AMX), few on AVX-512. Compiled with its own flags: see
// engine/cpu/CMakeLists.txt.
#include "engine/cpu/kernels/amx_int.h"
#include "engine/cpu/kernels/amx_matmul.h"
#include "engine/cpu/kernels/i32x16_avx512.h"

namespace tgi {

const KernelTable& amx_kernels() {
  static const KernelTable table = [] {
    using V = F32x16Avx512;
    constexpr auto kBF16 = static_cast<size_t>(PanelType::kBF16);
    constexpr auto kInt8 = static_cast<size_t>(PanelType::kInt8);
    constexpr auto kInt4 = static_cast<size_t>(PanelType::kInt4);
    constexpr auto kMxfp4 = static_cast<size_t>(PanelType::kMxfp4);
    constexpr auto kInt6 = static_cast<size_t>(PanelType::kInt6);
    constexpr auto kInt5 = static_cast<size_t>(PanelType::kInt5);
    constexpr auto kIq4 = static_cast<size_t>(PanelType::kIq4);
    KernelTable out = avx512vnni_kernels();
    out.isa = "amx";
    out.matmul_many[kBF16] = {.x_bytes = AmxBf16X<V>::x_bytes,
                              .prepare = AmxBf16X<V>::prepare,
                              .block = AmxBf16<V, AmxUnit>::run};
    out.matmul_many[kInt8] = out.matmul[kInt8];
    out.matmul_many[kInt8].block = AmxInt<I32x16Vnni, AmxUnit, PanelType::kInt8>::run;
    out.matmul_many[kInt4] = out.matmul[kInt4];
    out.matmul_many[kInt4].block = AmxInt<I32x16Vnni, AmxUnit, PanelType::kInt4>::run;
    out.matmul_many[kMxfp4] = out.matmul[kMxfp4];
    out.matmul_many[kMxfp4].block = AmxInt<I32x16Vnni, AmxUnit, PanelType::kMxfp4>::run;
    out.matmul_many[kInt6] = out.matmul[kInt6];
    out.matmul_many[kInt6].block = AmxInt<I32x16Vnni, AmxUnit, PanelType::kInt6>::run;
    out.matmul_many[kInt5] = out.matmul[kInt5];
    out.matmul_many[kInt5].block = AmxInt<I32x16Vnni, AmxUnit, PanelType::kInt5>::run;
    out.matmul_many[kIq4] = out.matmul[kIq4];
    out.matmul_many[kIq4].block = AmxInt<I32x16Vnni, AmxUnit, PanelType::kIq4>::run;
    return out;
  }();
  return table;
}

}  // namespace tgi
