// What followed the same text before: needs no files (engine/draft/ngram_drafter.h).
#include <memory>

#include "engine/draft/ngram_drafter.h"
#include "engine/runtime/drafters/drafter_kind.h"

namespace tgi {
namespace {

class PreparedNgram final : public PreparedDrafter {
 public:
  explicit PreparedNgram(int32_t most) : most_(most) {}
  int32_t most_drafts() const override { return most_; }
  std::unique_ptr<Drafter> load(const DraftedModel& /*model*/) override {
    return std::make_unique<NgramDrafter>();
  }

 private:
  const int32_t most_;
};

}  // namespace

extern const DrafterKind kNgramDrafter;
const DrafterKind kNgramDrafter = {
    .name = "n-gram",
    .is_asked =
        [](const AskedDrafter& asked) {
          return asked.settings.speculator.empty() && asked.settings.draft_model.empty() &&
                 asked.settings.speculate.value_or(0) > 0;
        },
    .prepare = [](const AskedDrafter& asked) -> std::unique_ptr<PreparedDrafter> {
      return std::make_unique<PreparedNgram>(*asked.settings.speculate);
    },
};

}  // namespace tgi
