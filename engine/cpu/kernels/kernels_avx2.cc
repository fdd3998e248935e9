// The kernels over F32x16Avx2. Compiled with its own flags: see engine/cpu/CMakeLists.txt.
#include "engine/cpu/kernels/i32x16_avx2.h"
#include "engine/cpu/kernels/make_table.h"

namespace tgi {

const KernelTable& avx2_kernels() {
  static constexpr KernelTable kTable = make_kernel_table<F32x16Avx2, I32x16Avx2>("avx2");
  return kTable;
}

}  // namespace tgi
