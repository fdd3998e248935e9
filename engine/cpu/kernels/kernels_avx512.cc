// The kernels over F32x16Avx512. Compiled with its own flags: see engine/cpu/CMakeLists.txt.
#include "engine/cpu/kernels/i32x16_avx512.h"
#include "engine/cpu/kernels/make_table.h"

namespace tgi {

const KernelTable& avx512_kernels() {
  static constexpr KernelTable kTable = make_kernel_table<F32x16Avx512, I32x16Avx512>("avx512");
  return kTable;
}

}  // namespace tgi
