// The layer for the next tokens that the model's own checkpoint has (engine/model/next_tokens.h;
// --speculator mtp). For each further draft it runs once more, reading what it gave itself, before
// its last norm or behind that. Embedding and head are the model's.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/known_names.h"
#include "engine/gguf/model_files.h"
#include "engine/model/next_tokens.h"
#include "engine/model/weight_check.h"
#include "engine/runtime/drafters/drafter_kind.h"
#include "engine/runtime/drafters/own_cache.h"
#include "engine/runtime/drafters/own_layer.h"

namespace tgi {
namespace {

constexpr int32_t kUsualMtpDrafts = 3;

class MtpLayer final : public OwnLayer {
 public:
  MtpLayer(const NextTokenLayer& layer, OwnLayerParts parts)
      : OwnLayer(layer.config(), std::move(parts), layer.config().hidden_size),
        hands_on_normed_(layer.hands_on_normed()) {}

  Tensor reported_rows() const override { return input_; }
  Tensor own_rows() const override { return input_; }
  void choose(bool /*is_own*/) override {}

  void run(int32_t num_tokens, int32_t num_output_rows) override {
    const int64_t hidden = config_.hidden_size;
    const Tensor joined = joined_.first_rows(num_tokens);
    const Tensor stream = stream_.first_rows(num_tokens);
    device_.embed({.table = model_.token_embedding,
                   .multiplier = config_.embedding_multiplier,
                   .out = stream});
    norm(weights_.embedding_norm, stream, joined.columns(0, hidden));
    norm(weights_.hidden_norm, input_.first_rows(num_tokens), joined.columns(hidden, hidden));
    device_.matmul({.x = joined, .w = weights_.embedding_in.weight.get(), .out = stream});
    transformer_.run_layer(0, stream);
    gather(stream, num_output_rows);
  }

  void sample(int32_t num_output_rows) override {
    const Tensor& own = hands_on_normed_ ? normed_ : drawn_from_;
    device_.pool({.hidden = own.first_rows(num_output_rows)});
    device_.sample({.hidden = normed_.first_rows(num_output_rows),
                    .lm_head = model_.lm_head,
                    .bias = model_.lm_head_bias,
                    .logit_scale = config_.logit_scale,
                    .logit_softcap = config_.logit_softcap});
  }

 private:
  const bool hands_on_normed_;
};

class PreparedMtp final : public PreparedDrafter {
 public:
  explicit PreparedMtp(const AskedDrafter& asked)
      : backend_(asked.backend),
        files_(*asked.model_files),
        is_dummy_(asked.settings.load_format == "dummy"),
        device_(asked.device),
        kv_dtype_(asked.kv_dtype),
        layer_(asked.model) {
    weights_.dtype = asked.dtype;
    try {
      check_weights(layer_.stored(), *open({}));
    } catch (const Error& error) {
      throw error.in("the layer for the next tokens (MTP)");
    }
  }

  int32_t most_drafts() const override { return kMostOwnDrafts; }
  int32_t usual_drafts() const override { return kUsualMtpDrafts; }
  ReportedRows reported_rows() const override { return {.after_last_norm = true}; }

  DrafterBytes bytes(const Device& device, const DrafterSizes& sizes) const override {
    const ModelConfig& config = layer_.config();
    const OwnCache cache = cache_of(sizes);
    return {
        .weights = plan_weight_bytes(layer_.stored(), device, weights_),
        .workspace = OwnLayer::workspace_bytes(device, config, config.hidden_size, cache, sizes),
        .block = cache.block_bytes(device)};
  }

  std::unique_ptr<Drafter> load(const DraftedModel& model) override {
    return load_own_layer(
        backend_, device_, cache_of(model.sizes), model,
        [&](Device& device) { return layer_.load(*open(device.info()), device, weights_); },
        [&](OwnLayerParts parts) { return std::make_unique<MtpLayer>(layer_, std::move(parts)); });
  }

 private:
  OwnCache cache_of(const DrafterSizes& sizes) const {
    const ModelConfig& config = layer_.config();
    return {config, 2 * config.hidden_size, kv_dtype_, sizes};
  }

  std::unique_ptr<Checkpoint> open(const DeviceInfo& device) const {
    if (is_dummy_) return make_dummy_checkpoint(layer_.stored(), 0, device.makes_random_matrices);
    return layer_.tensors_of(open_checkpoint(files_));
  }

  Backend& backend_;
  const FileSource& files_;
  const bool is_dummy_;
  const DeviceOptions device_;
  const DType kv_dtype_;
  const NextTokenLayer layer_;
  LoadWeightsOptions weights_;
};

}  // namespace

extern const DrafterKind kMtpDrafter;
const DrafterKind kMtpDrafter = {
    .name = "mtp",
    .is_asked = [](const AskedDrafter& asked) { return asked.settings.speculator == kOwnLayer; },
    .prepare = [](const AskedDrafter& asked) -> std::unique_ptr<PreparedDrafter> {
      return std::make_unique<PreparedMtp>(asked);
    },
};

}  // namespace tgi
