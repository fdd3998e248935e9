// The layer of an EAGLE-3 drafter (https://arxiv.org/abs/2503.01840), from its config.json: how it
// is stored, how it runs and what it reads of the model. It reads hidden states before some of the
// model's layers, through one matrix (fc), and the embedding of the token behind each; attention
// reads both normed, side by side. What it draws may be of a smaller vocabulary (d2t).
//
// Two kinds of files: those of EAGLE itself and of SpecForge (a Llama config with draft_vocab_size
// and eagle_config), and those of vLLM's speculators (speculators_model_type, with the layer in
// transformer_layer_config).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/model/architecture.h"
#include "engine/model/reported_rows.h"
#include "engine/weights/checkpoint.h"

namespace tgi {

class EagleLayer {
 public:
  // `file`: of `config`, for messages. `tensors`: null where random numbers take their place. What
  // it does not have is the model's, which outlives it. Throws an Error naming the field that is
  // not known, or does not fit the model.
  EagleLayer(const Json& config,
             const std::string& file,
             const LoadedConfig& model,
             const Checkpoint* tensors);
  EagleLayer(const EagleLayer&) = delete;
  EagleLayer& operator=(const EagleLayer&) = delete;

  // As its tensors are stored. ModelWeights::embedding_in is fc, embedding_norm what norms its
  // input, hidden_norm and the layer's attention_norm norm both halves of what attention reads.
  const LoadedConfig& stored() const { return stored_; }
  // As it runs: the vocabulary is what it draws of.
  const ModelConfig& config() const { return config_; }
  const ReportedRows& reported_rows() const { return reported_; }
  int32_t fc_cols() const { return stored_.config.embedding_size; }

  // The stream begins as the hidden state after its norm, not before it.
  bool begins_normed() const { return begins_normed_; }
  // What is read for the next draft is what the last was drawn from after the last norm.
  bool hands_on_normed() const { return hands_on_normed_; }

  // Of each id that it draws the model's, each once; empty: the same. Throws kInvalidArgument where
  // they are none of the model's.
  std::vector<int32_t> token_ids(const Checkpoint& tensors, int32_t vocab_size) const;

 private:
  void read(const Json& config, const std::string& file, const LoadedConfig& model);
  void read_layers(const JsonReader& config, int32_t num_layers);
  void list_tensors(const LoadedConfig& model, const Checkpoint* tensors);

  std::vector<TensorSpec> specs_;
  Architecture architecture_;
  LoadedConfig stored_;
  ModelConfig config_;
  ReportedRows reported_;
  bool begins_normed_ = false;
  bool hands_on_normed_ = false;
  bool norms_fc_input_ = false;
};

}  // namespace tgi
