// An EAGLE-3 drafter (eagle_layer.h): a layer that reads hidden states of the model, low, in the
// middle and high, beside the token behind each; for each further draft it runs once more, reading
// what it gave itself. One chain is drafted, no tree.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/model/weight_check.h"
#include "engine/runtime/drafters/drafter_kind.h"
#include "engine/runtime/drafters/eagle_layer.h"
#include "engine/runtime/drafters/own_cache.h"
#include "engine/runtime/drafters/own_layer.h"

namespace tgi {
namespace {

constexpr int32_t kUsualEagleDrafts = 5;

class EaglePass final : public OwnLayer {
 public:
  EaglePass(const EagleLayer& layer, std::vector<int32_t> token_ids, OwnLayerParts parts)
      : OwnLayer(layer.config(), std::move(parts), layer.fc_cols()),
        begins_normed_(layer.begins_normed()),
        hands_on_normed_(layer.hands_on_normed()),
        token_ids_(std::move(token_ids)) {
    if (token_ids_.empty()) return;
    const size_t bytes = token_ids_.size() * sizeof(int32_t);
    draw_ids_ = device_.allocate(bytes, "tokens of EAGLE-3");
    device_.copy_to_device(draw_ids_.data(), token_ids_.data(), bytes);
  }

  Tensor reported_rows() const override { return input_; }
  Tensor own_rows() const override { return stream_; }
  void choose(bool is_own) override { is_own_ = is_own; }
  int32_t token_of(int32_t drawn) const override {
    return token_ids_.empty() ? drawn : token_ids_[static_cast<size_t>(drawn)];
  }

  void run(int32_t num_tokens, int32_t num_output_rows) override {
    const int64_t hidden = config_.hidden_size;
    const Tensor joined = joined_.first_rows(num_tokens);
    const Tensor stream = stream_.first_rows(num_tokens);
    const Tensor embedded = normed_.first_rows(num_tokens);
    if (!is_own_) read_reported(input_.first_rows(num_tokens), stream);
    const Matrix* const own_table = weights_.token_embedding.get();
    device_.embed(
        {.table = own_table != nullptr ? own_table : model_.token_embedding, .out = embedded});
    norm(weights_.layers.front().attention_norm, embedded, joined.columns(0, hidden));
    norm(weights_.hidden_norm, stream, joined.columns(hidden, hidden));
    if (begins_normed_) norm(weights_.hidden_norm, stream, stream);
    transformer_.run_layer_beside(0, joined, stream);
    gather(stream, num_output_rows);
  }

  void sample(int32_t num_output_rows) override {
    const Tensor& own = hands_on_normed_ ? normed_ : drawn_from_;
    device_.pool({.hidden = own.first_rows(num_output_rows)});
    const Matrix* const own_head = weights_.untied_lm_head.get();
    device_.sample({.hidden = normed_.first_rows(num_output_rows),
                    .lm_head = own_head != nullptr ? own_head : model_.lm_head,
                    .draw_ids = static_cast<const int32_t*>(draw_ids_.data())});
  }

 private:
  void read_reported(const Tensor& reported, const Tensor& stream) {
    if (weights_.embedding_norm.get() != nullptr) norm(weights_.embedding_norm, reported, reported);
    device_.matmul({.x = reported, .w = weights_.embedding_in.weight.get(), .out = stream});
  }

  const bool begins_normed_;
  const bool hands_on_normed_;
  const std::vector<int32_t> token_ids_;  // of each that is drawn the model's; empty: the same
  Buffer draw_ids_;                       // the same, for the device
  bool is_own_ = false;
};

// Fields that only files of EAGLE-3 have.
bool says_eagle3(const Json& config) {
  constexpr std::array kFields = {"speculators_model_type", "draft_vocab_size", "eagle_config"};
  return std::ranges::any_of(kFields, [&](const char* field) { return config.contains(field); });
}

// Of the first two versions fc reads the embedding and one hidden state.
void refuse_first_versions(const Checkpoint& tensors, const Json& config, const std::string& file) {
  const StoredTensor* const fc = find_by_any_name(tensors, "fc.weight", "model.");
  if (fc == nullptr || fc->shape.size() != 2 || fc->shape[1] != 2 * fc->shape[0]) return;
  if (says_eagle3(config)) return;
  throw Error(Code::kUnsupported,
              fmt::format("{}: {} of the shape {} is that of an EAGLE 1 or EAGLE 2 drafter; of the "
                          "three only EAGLE-3 is supported",
                          file, fc->name, shape_text(fc->shape)));
}

std::unique_ptr<Checkpoint> open_drafter(const AskedDrafter& asked) {
  if (asked.settings.load_format == "dummy") return nullptr;
  auto out = open_checkpoint(*asked.files);
  refuse_first_versions(*out, *asked.config, asked.files->describe("model.safetensors"));
  return out;
}

class PreparedEagle final : public PreparedDrafter {
 public:
  explicit PreparedEagle(const AskedDrafter& asked)
      : backend_(asked.backend),
        device_(asked.device),
        kv_dtype_(asked.kv_dtype),
        checkpoint_(open_drafter(asked)),
        layer_(
            *asked.config, asked.files->describe("config.json"), asked.model, checkpoint_.get()) {
    weights_.dtype = asked.dtype;
    if (checkpoint_ == nullptr) return;
    try {
      check_weights(layer_.stored(), *checkpoint_);
      token_ids_ = layer_.token_ids(*checkpoint_, asked.model.config.vocab_size);
    } catch (const Error& error) {
      throw error.in(asked.files->describe("the EAGLE-3 drafter (midlayer: layers.0)"));
    }
  }

  int32_t most_drafts() const override { return kMostOwnDrafts; }
  int32_t usual_drafts() const override { return kUsualEagleDrafts; }
  ReportedRows reported_rows() const override { return layer_.reported_rows(); }

  DrafterBytes bytes(const Device& device, const DrafterSizes& sizes) const override {
    const OwnCache cache = cache_of(sizes);
    return {.weights = plan_weight_bytes(layer_.stored(), device, weights_),
            .workspace =
                OwnLayer::workspace_bytes(device, layer_.config(), layer_.fc_cols(), cache, sizes) +
                static_cast<int64_t>(token_ids_.size() * sizeof(int32_t)),
            .block = cache.block_bytes(device)};
  }

  std::unique_ptr<Drafter> load(const DraftedModel& model) override {
    return load_own_layer(
        backend_, device_, cache_of(model.sizes), model,
        [&](Device& device) { return load_tensors(device); },
        [&](OwnLayerParts parts) {
          return std::make_unique<EaglePass>(layer_, token_ids_, std::move(parts));
        });
  }

 private:
  OwnCache cache_of(const DrafterSizes& sizes) const {
    const int32_t widest = std::max(layer_.fc_cols(), layer_.stored().config.attention_input_size);
    return {layer_.config(), widest, kv_dtype_, sizes};
  }

  ModelWeights load_tensors(Device& device) const {
    if (checkpoint_ != nullptr) {
      return load_weights(layer_.stored(), *checkpoint_, device, weights_);
    }
    const auto random =
        make_dummy_checkpoint(layer_.stored(), 0, device.info().makes_random_matrices);
    return load_weights(layer_.stored(), *random, device, weights_);
  }

  Backend& backend_;
  const DeviceOptions device_;
  const DType kv_dtype_;
  const std::unique_ptr<Checkpoint> checkpoint_;  // null: random numbers
  const EagleLayer layer_;
  LoadWeightsOptions weights_;
  std::vector<int32_t> token_ids_;
};

// A config of EAGLE's own looks like that of a model of one layer.
bool has_fc(const FileSource& files) {
  try {
    return find_by_any_name(*open_checkpoint(files), "fc.weight", "model.") != nullptr;
  } catch (const Error&) {
    return false;  // whoever else reads it says what is wrong
  }
}

bool is_eagle(const AskedDrafter& asked) {
  if (asked.config == nullptr || !asked.config->is_object()) return false;
  if (says_eagle3(*asked.config)) return true;
  const auto num_layers = asked.config->find("num_hidden_layers");
  return num_layers != asked.config->end() && *num_layers == 1 && has_fc(*asked.files);
}

}  // namespace

extern const DrafterKind kEagleDrafter;
const DrafterKind kEagleDrafter = {
    .name = "eagle3",
    .is_asked = is_eagle,
    .prepare = [](const AskedDrafter& asked) -> std::unique_ptr<PreparedDrafter> {
      return std::make_unique<PreparedEagle>(asked);
    },
};

}  // namespace tgi
