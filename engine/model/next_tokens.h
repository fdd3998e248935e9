// The layer that some checkpoints store beside those that config.json counts: trained to predict
// the token after the next (multi-token prediction, MTP; https://arxiv.org/abs/2412.19437, 2.2). It
// reads the model's last hidden state at a token and the embedding of the token behind it, each
// normed, through one matrix; what follows is a layer as the model's others, a norm and the model's
// head. Only what drafts runs it (engine/runtime/drafters/mtp.cc).
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/architecture.h"
#include "engine/model/model_weights.h"

namespace tgi {

// As DeepSeek V3 names them, which other families have taken over.
inline constexpr auto kDeepSeekCopies =
    std::to_array<std::string_view>({"embed_tokens.weight", "shared_head.head.weight"});
inline constexpr NextTokenNames kDeepSeekNextTokens = {
    .count_field = "num_nextn_predict_layers",
    .embedding_norm = "enorm.weight",
    .hidden_norm = "hnorm.weight",
    .projection = "eh_proj.weight",
    .final_norm = "shared_head.norm.weight",
    .copies = kDeepSeekCopies,
};

// That layer of a model, as one that is loaded by itself. The model outlives it.
class NextTokenLayer {
 public:
  // Throws kUnsupported where the model has none, or not one alone.
  explicit NextTokenLayer(const LoadedConfig& model);
  NextTokenLayer(const NextTokenLayer&) = delete;
  NextTokenLayer& operator=(const NextTokenLayer&) = delete;

  // As its tensors are named in the model's checkpoint: behind all layers of the model, which are
  // not loaded, or apart. ModelWeights::embedding_norm, hidden_norm and embedding_in are what it
  // reads by.
  const LoadedConfig& stored() const { return stored_; }
  // As it runs: one layer.
  const ModelConfig& config() const { return config_; }
  bool hands_on_normed() const { return hands_on_normed_; }

  // Of all tensors of the model those of the layer.
  std::unique_ptr<Checkpoint> tensors_of(std::unique_ptr<Checkpoint> model) const;
  // Its layer is the only one. Throws what load_weights throws.
  ModelWeights load(const Checkpoint& tensors,
                    Device& device,
                    const LoadWeightsOptions& options) const;

 private:
  std::string prefix_;             // "layers.61.", "mtp."
  std::deque<std::string> names_;  // of specs_, where they are not the model's
  std::vector<TensorSpec> specs_;
  Architecture architecture_;
  LoadedConfig stored_;
  ModelConfig config_;
  bool hands_on_normed_;
};

}  // namespace tgi
