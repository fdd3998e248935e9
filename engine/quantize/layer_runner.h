// Runs a model over a calibration text a layer at a time, the hidden states being kept between
// layers: only one layer's weights are in memory. The arithmetic is that of Transformer on the cpu
// backend with weights in f32.
//
// Belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "engine/device/communicator.h"
#include "engine/model/model_weights.h"
#include "engine/model/transformer.h"
#include "engine/quantize/float_matrix.h"
#include "engine/quantize/tap_device.h"

namespace tgi {

// How near a changed model is to its source, over the text.
struct Fidelity {
  double source_perplexity = 0;
  double changed_perplexity = 0;
  double mean_kl = 0;              // nats, of KL(source || changed) after each token
  double top_token_agreement = 0;  // part of the tokens after which both find the same most likely
  int64_t num_tokens = 0;
};

class LayerRunner {
 public:
  // Sum of the tokens of all sequences, in their order.
  using HiddenStates = FloatMatrix;  // (num_tokens, hidden_size)

  // All but `stop` outlive it. Each method throws kCancelled soon after `stop` is asked for.
  LayerRunner(const LoadedConfig& model,
              const Checkpoint& checkpoint,
              Device& device,
              const std::vector<std::vector<int32_t>>& sequences,
              std::stop_token stop);

  int64_t num_tokens() const { return num_tokens_; }

  HiddenStates embed();

  // Replaces the layer that is loaded.
  LayerWeights& load_layer(int32_t layer);

  // REQUIRES: `layer` is loaded.
  void run_layer(int32_t layer, HiddenStates& states);

  struct Tap {
    const Matrix* w;  // of the layer
    TapDevice::See see;
  };
  // Calls what sees the input of each of these, as far as the last of them; the states stay.
  void see_inputs(int32_t layer, const HiddenStates& states, std::vector<Tap> taps);

  // From the states after the last layer, through one head.
  Fidelity compare(const HiddenStates& source, const HiddenStates& changed, int num_threads);

  // A matrix of the layer from floats, stacked by rows.
  std::unique_ptr<Matrix> make_matrix(std::span<const FloatMatrix* const> pieces);
  Device& device() { return device_; }

 private:
  friend Fidelity compare_runs(LayerRunner& source,
                               const HiddenStates& source_states,
                               LayerRunner& changed,
                               const HiddenStates& changed_states,
                               int num_threads);

  // Sequences that are run as one step.
  struct Step {
    size_t first = 0;       // sequence
    size_t count = 0;       // of sequences
    int64_t first_row = 0;  // of the hidden states
    int64_t num_rows = 0;
  };
  class Piece;

  void load_head();
  void plan_steps();
  const Batch& batch_of(const Step& step);
  void for_steps(const std::function<void(const Tensor& hidden)>& run, HiddenStates* states);
  void check_stop() const;
  void see_logits(const HiddenStates& states, int64_t first, int64_t count, TapDevice::See see);

  const LoadedConfig& model_;
  const std::vector<std::vector<int32_t>>& sequences_;
  const std::stop_token stop_;
  TapDevice device_;
  WeightLoader loader_;
  NullCommunicator communicator_;
  ModelWeights weights_;  // without most of its layers
  int32_t loaded_layer_ = -1;
  int64_t num_tokens_ = 0;
  int32_t max_step_tokens_ = 0;
  std::vector<Step> steps_;
  std::unique_ptr<Transformer> transformer_;
  Buffer hidden_;  // (max_step_tokens, hidden_size)
  Batch batch_;
};

// The same with a head for each. REQUIRES: both run the same sequences.
Fidelity compare_runs(LayerRunner& source,
                      const LayerRunner::HiddenStates& source_states,
                      LayerRunner& changed,
                      const LayerRunner::HiddenStates& changed_states,
                      int num_threads);

}  // namespace tgi
