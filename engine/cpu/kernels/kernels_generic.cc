// The kernels over F32x16Generic. Compiled with its own flags: see engine/cpu/CMakeLists.txt.
#include "engine/cpu/kernels/i32x16_generic.h"
#include "engine/cpu/kernels/make_table.h"

namespace tgi {

const KernelTable& generic_kernels() {
  static constexpr KernelTable kTable = make_kernel_table<F32x16Generic, I32x16Generic>("generic");
  return kTable;
}

}  // namespace tgi
