#include "engine/runtime/drafters/drafter_kind.h"

#include <array>
#include <span>

namespace tgi {

extern const DrafterKind kDraftModel;
extern const DrafterKind kMedusaDrafter;
extern const DrafterKind kMlpDrafter;
extern const DrafterKind kMtpDrafter;
extern const DrafterKind kNgramDrafter;

std::span<const DrafterKind* const> drafter_kinds() {
  static constexpr std::array<const DrafterKind*, 5> kKinds = {
      &kDraftModel, &kMedusaDrafter, &kMlpDrafter, &kMtpDrafter, &kNgramDrafter,
  };
  return kKinds;
}

}  // namespace tgi
