// AVX2 with the byte dot products of AVX-VNNI. Compiled with its own flags: see
// engine/cpu/CMakeLists.txt.
#include "engine/cpu/kernels/dot_int.h"
#include "engine/cpu/kernels/i32x16_avx2.h"
#include "engine/cpu/kernels/matmul.h"

namespace tgi {

const KernelTable& avxvnni_kernels() {
  static const KernelTable table = [] {
    KernelTable out = avx2_kernels();
    out.isa = "avxvnni";
    for_integer_panels([&]<PanelType kType>() {
      out.matmul[static_cast<size_t>(kType)] = matmul_kernel<DotInt<I32x16AvxVnni, kType>>();
    });
    return out;
  }();
  return table;
}

}  // namespace tgi
