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
    for_integer_panels([&]<PanelType kType>() {
      out.matmul[static_cast<size_t>(kType)] = matmul_kernel<DotInt<I32x16Vnni, kType>>();
    });
    return out;
  }();
  return table;
}

}  // namespace tgi
