#include "engine/runtime/drafters/drafter_kind.h"

#include <array>
#include <span>

namespace tgi {

extern const DrafterKind kDraftModel;
extern const DrafterKind kEagleDrafter;
extern const DrafterKind kMedusaDrafter;
extern const DrafterKind kMlpDrafter;
extern const DrafterKind kMtpDrafter;
extern const DrafterKind kNgramDrafter;

std::span<const DrafterKind* const> drafter_kinds() {
  static constexpr std::array<const DrafterKind*, 6> kKinds = {
      &kDraftModel, &kMedusaDrafter, &kMlpDrafter, &kEagleDrafter, &kMtpDrafter, &kNgramDrafter,
  };
  return kKinds;
}

}  // namespace tgi
