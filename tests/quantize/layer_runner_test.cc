// The model run a layer at a time: the same as the model run whole.
#include "engine/quantize/layer_runner.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "engine/cpu/cpu_backend.h"
#include "engine/model/state_layout.h"
#include "engine/quantize/awq.h"
#include "engine/quantize/layer_quantizer.h"
#include "engine/quantize/source_model.h"
#include "tests/catch.h"
#include "tests/quantize/random_matrix.h"

namespace tgi {
namespace {

const std::vector<std::vector<int32_t>> kTexts = {
    {5, 7, 11, 2, 50, 33, 14, 9, 31, 8, 8, 21, 3, 47, 40, 1, 19, 26, 54},
    {10, 4},
    {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17},
};

// Those that can be run a layer at a time, of one kind or of all.
std::vector<std::string> golden_folders(std::vector<std::string> kinds = {"models"}) {
  std::vector<std::string> out;
  for (const std::string& kind : kinds) {
    const std::string root = std::string(TGI_SOURCE_DIR) + "/tests/golden/" + kind;
    for (const auto& entry : std::filesystem::directory_iterator(root)) {
      if (!entry.is_directory()) continue;
      const LoadedConfig model = load_model_config(*open_folder(entry.path().string()));
      if (has_plain_layers(model.config) && model.task == Task::kGenerate) {
        out.push_back(entry.path().string());
      }
    }
  }
  std::ranges::sort(out);
  return out;
}

// By the forward pass of the engine, whole, each text a sequence of one step.
double whole_perplexity(const LoadedConfig& model, const Checkpoint& checkpoint) {
  const auto device = make_cpu_device({.num_threads = 1});
  const ModelWeights weights = load_weights(model, checkpoint, *device, {.dtype = DType::kF32});
  allocate_state(*device, model.config, one_kv_group(model.config),
                 {.num_blocks = 8,
                  .kv_dtype = DType::kF32,
                  .num_slots = 1,
                  .max_blocks_per_slot = 8,
                  .max_batch_tokens = 64});
  NullCommunicator communicator;
  Transformer transformer(model.config, weights, *device, communicator, one_kv_group(model.config),
                          64);
  double loss = 0.0;
  double count = 0.0;
  for (const std::vector<int32_t>& ids : kTexts) {
    Batch batch;
    batch.clear();
    batch.slot_starts.push_back({.slot = 0,
                                 .sampling = {},
                                 .token_ids = ids,
                                 .num_prompt_tokens = static_cast<int32_t>(ids.size())});
    batch.block_appends.push_back({.slot = 0, .index = 0, .block = 0});
    batch.block_appends.push_back({.slot = 0, .index = 1, .block = 1});
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto row = static_cast<int32_t>(i);
      batch.token_ids.push_back(ids[i]);
      batch.positions.push_back(row);
      if (i + 1 < ids.size()) batch.score_rows.push_back({.row = row, .target_id = ids[i + 1]});
    }
    batch.slots.push_back(0);
    batch.cu_seqlens_q.push_back(batch.num_tokens());
    batch.context_lens.push_back(batch.num_tokens());
    for (const float score : run_step(*device, batch, transformer).scores) {
      loss -= double{score};
      count += 1.0;
    }
  }
  return std::exp(loss / count);
}

TEST_CASE("a layer at a time gives what the whole model gives, in every family") {
  for (const std::string& folder : golden_folders({"models", "families"})) {
    INFO(folder);
    const auto files = open_folder(folder);
    const LoadedConfig model = load_model_config(*files);
    const auto checkpoint = open_checkpoint(*files);
    const auto device = make_cpu_device({.num_threads = 1});
    LayerRunner runner(model, *checkpoint, *device, kTexts, {});
    LayerRunner::HiddenStates states = runner.embed();
    for (int32_t layer = 0; layer < model.config.num_layers; ++layer) {
      (void)runner.load_layer(layer);
      runner.run_layer(layer, states);
    }
    const Fidelity same = runner.compare(states, states, 2);
    CHECK(same.source_perplexity == Approx(whole_perplexity(model, *checkpoint)).epsilon(1e-6));
    CHECK(same.changed_perplexity == same.source_perplexity);
    CHECK(same.mean_kl == 0.0);
    CHECK(same.top_token_agreement == 1.0);
    CHECK(same.num_tokens == 18 + 1 + 16);
    LayerRunner::HiddenStates other = states;
    other.values[3] += 1.0F;
    CHECK(runner.compare(states, other, 1).mean_kl > 0.0);
  }
}

TEST_CASE("taps see what goes into a matrix, and leave the states as they are") {
  for (const std::string& folder : golden_folders()) {
    INFO(folder);
    const auto files = open_folder(folder);
    const LoadedConfig model = load_model_config(*files);
    const auto checkpoint = open_checkpoint(*files);
    const SourceModel source(model, *checkpoint);
    const auto device = make_cpu_device({.num_threads = 1});
    LayerRunner runner(model, *checkpoint, *device, kTexts, {});
    const LayerRunner::HiddenStates before = runner.embed();
    LayerWeights& weights = runner.load_layer(0);
    FloatMatrix inputs;
    std::vector<LayerRunner::Tap> taps;
    taps.push_back({.w = weights.down.weight.get(), .see = [&](const Tensor& x) {
                      inputs.cols = x.cols;
                      inputs.rows += x.rows;
                      for (int64_t row = 0; row < x.rows; ++row) {
                        const float* values = x.as<const float>() + row * x.stride;
                        inputs.values.insert(inputs.values.end(), values, values + x.cols);
                      }
                    }});
    runner.see_inputs(0, before, std::move(taps));
    REQUIRE(inputs.rows == runner.num_tokens());

    // Without the matrix the layer gives as much less as the matrix makes of its input.
    LayerRunner::HiddenStates with = before;
    runner.run_layer(0, with);
    const FloatMatrix down = source.read_matrix(*source.find(Role::kDown, 0));
    const FloatMatrix nothing(down.rows, down.cols);
    const FloatMatrix* const one = &nothing;
    weights.down.weight = runner.make_matrix({&one, 1});
    LayerRunner::HiddenStates without = before;
    runner.run_layer(0, without);
    double worst = 0.0;
    for (int64_t row = 0; row < inputs.rows; ++row) {
      for (int64_t n = 0; n < down.rows; ++n) {
        double sum = 0.0;
        for (int64_t c = 0; c < down.cols; ++c) {
          sum += double{inputs.row(row)[static_cast<size_t>(c)]} *
                 double{down.row(n)[static_cast<size_t>(c)]};
        }
        const auto at = static_cast<size_t>(n);
        worst = std::max(worst, std::abs(double{with.row(row)[at] - without.row(row)[at]} - sum));
      }
    }
    CHECK(worst < 2e-5);
  }
}

TEST_CASE("scales taken out of a norm or a matrix and put into the next leave a layer as it was") {
  for (const std::string& folder : golden_folders()) {
    INFO(folder);
    const auto files = open_folder(folder);
    const LoadedConfig model = load_model_config(*files);
    const auto checkpoint = open_checkpoint(*files);
    const SourceModel source(model, *checkpoint);
    const auto device = make_cpu_device({.num_threads = 1});
    LayerRunner runner(model, *checkpoint, *device, kTexts, {});
    const LayerRunner::HiddenStates before = runner.embed();
    LayerWeights& weights = runner.load_layer(0);
    LayerRunner::HiddenStates expected = before;
    runner.run_layer(0, expected);

    LayerTensors tensors(source, 0);
    TestNumbers numbers(9);
    int num_taken_out = 0;
    for (const LayerLinear& linear : kLayerLinears) {
      const int64_t cols = (weights.*linear.target).weight->cols;
      std::vector<float> scales;
      for (int64_t i = 0; i < cols; ++i) scales.push_back(std::exp(0.5F * numbers.next()));
      if (!tensors.take_out(linear, scales)) continue;
      ++num_taken_out;
      for (const Role role : tensors.roles_of(linear)) scale_columns(tensors.matrix(role), scales);
    }
    CHECK(num_taken_out >= 2);
    for (const LayerLinear& linear : kLayerLinears) {
      std::vector<const FloatMatrix*> pieces;
      for (const Role role : tensors.roles_of(linear)) pieces.push_back(&tensors.matrix(role));
      (weights.*linear.target).weight = runner.make_matrix(pieces);
    }
    upload_vectors(runner.device(), weights, tensors);
    LayerRunner::HiddenStates got = before;
    runner.run_layer(0, got);
    double largest = 0.0;
    double difference = 0.0;
    for (size_t i = 0; i < got.values.size(); ++i) {
      largest = std::max(largest, std::abs(double{expected.values[i]}));
      difference = std::max(difference, std::abs(double{expected.values[i] - got.values[i]}));
    }
    // A bias is rounded to its stored type once more.
    const bool rounds = tensors.vector(Role::kAttentionNormBias) != nullptr ||
                        tensors.vector(Role::kVBias) != nullptr ||
                        tensors.vector(Role::kUpBias) != nullptr;
    CHECK(difference < (rounds ? 2e-3 : 2e-5) * largest);
  }
}

}  // namespace
}  // namespace tgi
