// See amx.h. Intel SDM volume 1 chapter 18; Linux Documentation/arch/x86/xstate.rst.
#include "engine/cpu/amx.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tgi {

#if defined(__x86_64__) && defined(__linux__)
bool amx_available() {
  static const bool available = [] {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
    constexpr unsigned kBf16 = 1U << 22;
    constexpr unsigned kTile = 1U << 24;
    constexpr unsigned kInt8 = 1U << 25;
    constexpr unsigned kAll = kBf16 | kTile | kInt8;
    constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
    constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
    return (d & kAll) == kAll && ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return available;
}
#else
bool amx_available() {
  return false;
}
#endif

}  // namespace tgi
