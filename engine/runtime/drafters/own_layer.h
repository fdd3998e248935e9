// What the layers that draft by hidden states (MTP, EAGLE-3) have in common: one layer of a
// transformer with a KV cache of its own, which reads what was reported beside the embedding of the
// token behind it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "engine/device/backend.h"
#include "engine/model/model_weights.h"
#include "engine/model/transformer.h"
#include "engine/runtime/drafters/draft_rows.h"
#include "engine/runtime/drafters/drafter_kind.h"
#include "engine/runtime/drafters/own_cache.h"
#include "engine/runtime/drafters/row_drafter.h"

namespace tgi {

// What a layer is made of.
struct OwnLayerParts {
  ModelWeights weights;
  Device& device;
  std::unique_ptr<Communicator> communicator;
  const KvPlan& kv_plan;
  const DraftedModel& model;
};

class OwnLayer : public DraftLayer {
 public:
  // Bytes of what a pass and the cache take, beside weights and blocks. `input_cols`: of a row as
  // the model reports it.
  static int64_t workspace_bytes(const Device& device,
                                 const ModelConfig& config,
                                 int64_t input_cols,
                                 const OwnCache& cache,
                                 const DrafterSizes& sizes);

 protected:
  OwnLayer(const ModelConfig& config, OwnLayerParts parts, int64_t input_cols);

  void norm(const DeviceVector& weight, const Tensor& x, const Tensor& out);
  // The rows that are drawn from, as they are and normed.
  void gather(const Tensor& stream, int32_t num_output_rows);

  const ModelConfig config_;
  const ModelWeights weights_;
  Device& device_;
  const DraftedModel model_;

 private:
  const std::unique_ptr<Communicator> communicator_;

 protected:
  Transformer transformer_;

 private:
  DraftRows memory_;

 protected:
  Tensor input_;       // (max_batch_tokens, input_cols)
  Tensor stream_;      // (max_batch_tokens, hidden) each, but `joined_` of twice as many columns
  Tensor joined_;      // the embedding and the hidden state, normed
  Tensor drawn_from_;  // of the rows that are drawn from
  Tensor normed_;
};

// Makes the device, the weights, the cache and the layer, in that order. Throws kOutOfMemory,
// kCancelled, and what the two throw.
std::unique_ptr<Drafter> load_own_layer(
    Backend& backend,
    const DeviceOptions& options,
    const OwnCache& cache,
    const DraftedModel& model,
    const std::function<ModelWeights(Device&)>& load_weights,
    const std::function<std::unique_ptr<DraftLayer>(OwnLayerParts)>& make_layer);

}  // namespace tgi
