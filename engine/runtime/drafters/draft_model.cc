// A smaller model of the same vocabulary (--draft-model), loaded beside the one that it drafts for
// (model_drafter.h). Any decoder that tgi loads will do, but for those that carry a state.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "engine/gguf/model_files.h"
#include "engine/model/kv_plan.h"
#include "engine/model/state_layout.h"
#include "engine/model/transformer.h"
#include "engine/model/weight_check.h"
#include "engine/runtime/demo_model.h"
#include "engine/runtime/drafters/drafter_kind.h"
#include "engine/runtime/drafters/model_drafter.h"
#include "engine/runtime/load_ranks.h"
#include "engine/text/byte_tokenizer.h"

namespace tgi {
namespace {

constexpr int32_t kMostDrafts = 64;
constexpr int32_t kUsualDrafts = 5;

std::unique_ptr<FileSource> open_files(const std::string& model) {
  return model == kDemoModel ? open_demo_model() : open_model_files(model);
}

// Every id must stand for the same text in both. Vocabularies may be filled up to other sizes.
void check_same_vocabulary(const FileSource& files,
                           int32_t vocab_size,
                           const Tokenizer& wanted,
                           const std::string& name) {
  std::unique_ptr<Tokenizer> own;
  if (has_tokenizer(files)) {
    own = load_tokenizer(files);
  } else {
    own = std::make_unique<ByteTokenizer>(vocab_size);
  }
  const auto fail = [&](const std::string& what) {
    throw Error(Code::kInvalidArgument,
                fmt::format("draft model {}: its vocabulary is not that of the model: {}; a draft "
                            "model must have the same tokenizer, as a smaller one of its family",
                            name, what));
  };
  if (own->vocab_size() != wanted.vocab_size()) {
    fail(fmt::format("it has {} tokens instead of {}", own->vocab_size(), wanted.vocab_size()));
  }
  for (int32_t id = 0; id < wanted.vocab_size(); ++id) {
    const std::string token = own->token_of(id);
    const std::string other = wanted.token_of(id);
    if (token != other) fail(fmt::format("token {} is \"{}\" instead of \"{}\"", id, token, other));
  }
}

class PreparedDraftModel final : public PreparedDrafter {
 public:
  explicit PreparedDraftModel(const AskedDrafter& asked)
      : backend_(asked.backend),
        name_(asked.settings.draft_model),
        is_dummy_(asked.settings.load_format == "dummy"),
        model_vocab_size_(asked.model.config.vocab_size),
        files_(open_files(name_)),
        loaded_(load_model_config(*files_)) {
    if (loaded_.task != Task::kGenerate) {
      refuse("it draws no tokens");
    }
    if (has_state(loaded_.config)) {
      refuse("it has layers that carry a state, which can't go back from a wrong draft");
    }
    check_same_vocabulary(*files_, loaded_.config.vocab_size, asked.tokenizer, name_);
    options_.device = asked.device;
    options_.weights.dtype = asked.dtype;
    options_.kv_dtype = asked.kv_dtype;
    try {
      check_weights(loaded_, *open({}));
    } catch (const Error& error) {
      throw error.in("draft model " + name_);
    }
  }

  int32_t most_drafts() const override { return kMostDrafts; }
  int32_t usual_drafts() const override { return kUsualDrafts; }

  DrafterBytes bytes(const Device& device, const DrafterSizes& sizes) const override {
    const int32_t context = context_of(sizes);
    const KvPlan plan = plan_kv_groups(loaded_.config, context);
    StateSize state{.num_blocks = 1,
                    .block_size = sizes.block_size,
                    .kv_dtype = options_.kv_dtype,
                    .num_slots = sizes.max_running,
                    .max_blocks_per_slot = (context + sizes.block_size - 1) / sizes.block_size,
                    .max_batch_tokens = sizes.max_batch_tokens};
    const int64_t block = device.kv_bytes(kv_layout(loaded_.config, plan, state));
    return {.weights = plan_weight_bytes(loaded_, device, options_.weights),
            .workspace = Transformer::workspace_bytes(loaded_.config, device.info(), 1,
                                                      sizes.max_batch_tokens) +
                         device.slot_bytes(slot_layout(loaded_.config, plan, state)),
            .block = (plan.groups.num_groups() * block + sizes.num_groups - 1) / sizes.num_groups};
  }

  std::unique_ptr<Drafter> load(const DraftedModel& model) override {
    const DrafterSizes& sizes = model.sizes;
    LoadRanksOptions options = options_;
    options.block_size = sizes.block_size;
    options.max_running = sizes.max_running;
    options.max_batch_tokens = sizes.max_batch_tokens;
    options.max_total_tokens = context_of(sizes);
    options.stop = model.stop;
    // Room for what the model has room for.
    const auto probe = backend_.make_device(options.device);
    options.kv_cache_bytes = sizes.num_blocks * bytes(*probe, sizes).block;
    LoadedRanks ranks = made_of_intact(*files_, [&] {
      return load_ranks(
          backend_, loaded_, [this](const DeviceInfo& device) { return open(device); }, options);
    });
    return std::make_unique<ModelDrafter>(
        std::move(ranks.workers),
        ModelDrafterOptions{.num_slots = sizes.max_running,
                            .max_batch_tokens = sizes.max_batch_tokens,
                            .max_total_tokens = ranks.plan.max_total_tokens,
                            .num_blocks = ranks.plan.num_blocks,
                            .block_size = sizes.block_size,
                            .kv_groups = ranks.kv_groups,
                            .vocab_size = std::min(loaded_.config.vocab_size, model_vocab_size_)});
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(Code::kUnsupported, fmt::format("{} can't be the draft model: {}", name_, why));
  }

  int32_t context_of(const DrafterSizes& sizes) const {
    return std::min(sizes.max_total_tokens, loaded_.config.max_positions);
  }

  std::unique_ptr<Checkpoint> open(const DeviceInfo& device) const {
    if (is_dummy_) return make_dummy_checkpoint(loaded_, 0, device.makes_random_matrices);
    return open_checkpoint(*files_);
  }

  Backend& backend_;
  const std::string name_;
  const bool is_dummy_;
  const int32_t model_vocab_size_;
  const std::unique_ptr<FileSource> files_;
  const LoadedConfig loaded_;
  LoadRanksOptions options_;
};

}  // namespace

extern const DrafterKind kDraftModel;
const DrafterKind kDraftModel = {
    .name = "draft-model",
    .is_asked = [](const AskedDrafter& asked) { return !asked.settings.draft_model.empty(); },
    .prepare = [](const AskedDrafter& asked) -> std::unique_ptr<PreparedDrafter> {
      return std::make_unique<PreparedDraftModel>(asked);
    },
};

}  // namespace tgi
