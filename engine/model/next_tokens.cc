#include "engine/model/next_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "engine/model/tensor_table.h"

namespace tgi {
namespace {

bool begins_with(std::string_view name, std::string_view prefix) {
  constexpr std::string_view kOuter = "model.";
  if (name.starts_with(kOuter)) name.remove_prefix(kOuter.size());
  return name.starts_with(prefix);
}

class LayerCheckpoint final : public Checkpoint {
 public:
  LayerCheckpoint(std::unique_ptr<Checkpoint> model, std::string prefix)
      : model_(std::move(model)), prefix_(std::move(prefix)) {}

  const StoredTensor* find(std::string_view name) const override {
    return begins_with(name, prefix_) ? model_->find(name) : nullptr;
  }
  std::vector<std::string_view> names() const override {
    std::vector<std::string_view> out = model_->names();
    std::erase_if(out, [this](std::string_view name) { return !begins_with(name, prefix_); });
    return out;
  }
  std::span<const std::byte> bytes(const StoredTensor& tensor) const override {
    return model_->bytes(tensor);
  }
  std::optional<RandomKey> random_key(const StoredTensor& tensor) const override {
    return model_->random_key(tensor);
  }
  void release(const StoredTensor& tensor) const override { model_->release(tensor); }

 private:
  const std::unique_ptr<Checkpoint> model_;
  const std::string prefix_;
};

void check_has_layer(const LoadedConfig& model) {
  const NextTokenNames* const names = model.text->next_tokens;
  const auto refuse = [&](const std::string& why) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: {}; draft with something else, as n-grams (--speculate alone) or "
                            "a smaller model (--draft-model)",
                            model.config.architecture, why));
  };
  if (names == nullptr) refuse("it has no layer for the next tokens (MTP) that is known");
  const JsonReader config(model.json, "");
  const int64_t count = config.optional_integer(names->count_field).value_or(0);
  if (count == 0) {
    refuse(fmt::format("{} is 0: its checkpoint has no layer for the next tokens (MTP)",
                       names->count_field));
  }
  if (count != 1) {
    refuse(
        fmt::format("{} is {}: layers for the next tokens (MTP) behind each other are not "
                    "supported, only one",
                    names->count_field, count));
  }
  if (model.config.embedding_size > 0 || model.config.layers.empty()) {
    refuse("its layer for the next tokens (MTP) is not supported");
  }
}

}  // namespace

NextTokenLayer::NextTokenLayer(const LoadedConfig& model) : stored_(model), config_(model.config) {
  check_has_layer(model);
  const NextTokenNames& names = *model.text->next_tokens;
  const bool is_apart = !names.apart.empty();
  const int32_t index = is_apart ? 0 : model.config.num_layers;
  const std::string_view outer = model.architecture->prefix;
  prefix_ = is_apart ? std::string(names.apart) : fmt::format("layers.{}.", index);
  hands_on_normed_ = names.hands_on_normed;

  // Behind the first layers of another kind it is as the last.
  LayerPlan plan = model.config.layers.back();
  plan.kv_layer = kOwnKv;
  // It drafts well enough with all tokens seen.
  plan.seen = SeenTokens::kAll;
  config_.indexer = {};
  config_.layers = {plan};
  config_.num_layers = 1;
  if (names.shape != nullptr) names.shape(JsonReader(model.json, ""), config_);

  const auto keep = [&](std::string name) -> std::string_view {
    return names_.emplace_back(std::move(name));
  };
  const auto add = [&](Role role, std::string_view name, Dim rows, Dim cols) {
    specs_.push_back(
        {role, keep(fmt::format("{}{}{}", is_apart ? "" : outer, prefix_, name)), rows, cols});
  };
  add(Role::kEmbeddingNorm, names.embedding_norm, Dim::kOne, Dim::kHidden);
  add(Role::kHiddenNorm, names.hidden_norm, Dim::kOne, Dim::kHidden);
  add(Role::kEmbeddingIn, names.projection, Dim::kHidden, Dim::kEmbedding);
  add(Role::kFinalNorm, names.final_norm, Dim::kOne, Dim::kHidden);
  for (TensorSpec spec : model.tensors()) {
    if (!is_per_layer(spec)) continue;
    if (is_apart) spec.name = keep(prefix_ + std::string(spec.name.substr(outer.size())));
    specs_.push_back(spec);
  }

  architecture_ = *model.architecture;
  architecture_.tensors = specs_;
  architecture_.tensors_of_separate_experts = {};
  architecture_.ignored = names.copies;
  architecture_.ignores_layer_after_last = false;
  stored_.architecture = &architecture_;
  stored_.text = &architecture_;
  stored_.has_separate_experts = false;
  stored_.first_layer = index;
  if (is_apart) {
    architecture_.prefix = names.apart;
    stored_.config = config_;
  } else {
    stored_.config.num_layers = index + 1;
    stored_.config.layers.push_back(config_.layers.front());
  }
  stored_.config.embedding_size = 2 * model.config.hidden_size;  // what the projection reads
}

std::unique_ptr<Checkpoint> NextTokenLayer::tensors_of(std::unique_ptr<Checkpoint> model) const {
  return std::make_unique<LayerCheckpoint>(std::move(model), prefix_);
}

ModelWeights NextTokenLayer::load(const Checkpoint& tensors,
                                  Device& device,
                                  const LoadWeightsOptions& options) const {
  ModelWeights out = load_weights(stored_, tensors, device, options);
  LayerWeights layer = std::move(out.layers.back());
  out.layers.clear();
  out.layers.push_back(std::move(layer));
  return out;
}

}  // namespace tgi
