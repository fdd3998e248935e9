// AVX-512 with the byte dot products of VNNI. Compiled with its own flags: see
// engine/cpu/CMakeLists.txt.
#include "engine/cpu/kernels/dot_int.h"
#include "engine/cpu/kernels/i32x16_avx512.h"
#include "engine/cpu/kernels/matmul.h"

namespace tgi {

const KernelTable& avx512vnni_kernels() {
  static const KernelTable table = [] {
    KernelTable out = avx512_kernels();
    out.isa = "avx512vnni";
    out.matmul[static_cast<size_t>(PanelType::kInt8)] =
        matmul_kernel<DotInt<I32x16Vnni, PanelType::kInt8>>();
    out.matmul[static_cast<size_t>(PanelType::kInt4)] =
        matmul_kernel<DotInt<I32x16Vnni, PanelType::kInt4>>();
    out.matmul[static_cast<size_t>(PanelType::kMxfp4)] =
        matmul_kernel<DotInt<I32x16Vnni, PanelType::kMxfp4>>();
    out.matmul[static_cast<size_t>(PanelType::kInt6)] =
        matmul_kernel<DotInt<I32x16Vnni, PanelType::kInt6>>();
    out.matmul[static_cast<size_t>(PanelType::kInt5)] =
        matmul_kernel<DotInt<I32x16Vnni, PanelType::kInt5>>();
    out.matmul[static_cast<size_t>(PanelType::kIq4)] =
        matmul_kernel<DotInt<I32x16Vnni, PanelType::kIq4>>();
    return out;
  }();
  return table;
}

}  // namespace tgi
