// The dense checkpoint that is being quantised: its matrices and vectors as floats, one at a time.
#pragma once

#include <vector>

#include "engine/model/tensor_table.h"
#include "engine/model/weight_check.h"
#include "engine/quantize/float_matrix.h"
#include "engine/weights/checkpoint.h"

namespace tgi {

// Whether a layer can be run by itself and consists of kLayerLinears: no experts, states, latents.
bool has_plain_layers(const ModelConfig& config);

// Throws kUnsupported saying which of these the model has.
void require_plain_layers(const ModelConfig& config);

class SourceModel {
 public:
  // Both outlive it. Throws what match_checkpoint throws; kInvalidArgument when the checkpoint is
  // quantised already.
  SourceModel(const LoadedConfig& model, const Checkpoint& checkpoint);

  const LoadedConfig& model() const { return model_; }
  const Checkpoint& checkpoint() const { return checkpoint_; }
  const TensorTable& table() const { return table_; }
  const TensorEntry* find(Role role, int32_t layer) const { return table_.find(role, layer); }

  // The one tensor that stores the entry.
  const StoredTensor& stored(const TensorEntry& entry) const;

  // (out_features, in_features). Throws kInvalidArgument naming the tensor when a number in it is
  // not finite.
  FloatMatrix read_matrix(const TensorEntry& entry) const;
  std::vector<float> read_vector(const TensorEntry& entry) const;

 private:
  const LoadedConfig& model_;
  const Checkpoint& checkpoint_;
  const TensorTable table_;
  const TensorSources sources_;
};

}  // namespace tgi
