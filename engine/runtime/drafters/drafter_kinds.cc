#include "engine/runtime/drafters/drafter_kind.h"

#include <array>
#include <span>

namespace tgi {

extern const DrafterKind kNgramDrafter;

std::span<const DrafterKind* const> drafter_kinds() {
  static constexpr std::array<const DrafterKind*, 1> kKinds = {
      &kNgramDrafter,
  };
  return kKinds;
}

}  // namespace tgi
