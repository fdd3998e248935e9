#include "engine/runtime/drafters/own_layer.h"

#include <utility>

#include "base/error.h"

namespace tgi {

// Of a pass, as wide as the stream: one of them is two.
static constexpr int32_t kNumStreamRows = 5;

static int64_t row_elements(const ModelConfig& config, int64_t input_cols) {
  return int64_t{kNumStreamRows} * config.hidden_size + input_cols;
}

int64_t OwnLayer::workspace_bytes(const Device& device,
                                  const ModelConfig& config,
                                  int64_t input_cols,
                                  const OwnCache& cache,
                                  const DrafterSizes& sizes) {
  return Transformer::workspace_bytes(config, device.info(), 1, sizes.max_batch_tokens) +
         DraftRows::bytes(device, sizes.max_batch_tokens * row_elements(config, input_cols)) +
         cache.slot_bytes(device) + waiting_row_bytes(sizes, input_cols);
}

OwnLayer::OwnLayer(const ModelConfig& config, OwnLayerParts parts, int64_t input_cols)
    : config_(config),
      weights_(std::move(parts.weights)),
      device_(parts.device),
      model_(parts.model),
      communicator_(std::move(parts.communicator)),
      transformer_(
          config_, weights_, device_, *communicator_, parts.kv_plan, model_.sizes.max_batch_tokens),
      memory_(device_,
              model_.sizes.max_batch_tokens * row_elements(config_, input_cols),
              "rows of what drafts") {
  const auto take = [&](int64_t cols) { return memory_.take(model_.sizes.max_batch_tokens, cols); };
  const int64_t hidden = config_.hidden_size;
  input_ = take(input_cols);
  stream_ = take(hidden);
  joined_ = take(2 * hidden);
  drawn_from_ = take(hidden);
  normed_ = take(hidden);
}

void OwnLayer::norm(const DeviceVector& weight, const Tensor& x, const Tensor& out) {
  device_.norm({.kind = config_.norm_kind,
                .eps = config_.norm_eps,
                .weight = weight.get(),
                .x = x,
                .residual = {},
                .out = out});
}

void OwnLayer::gather(const Tensor& stream, int32_t num_output_rows) {
  if (num_output_rows == 0) return;
  const Tensor drawn_from = drawn_from_.first_rows(num_output_rows);
  device_.gather_output_rows(stream, drawn_from);
  norm(weights_.final_norm, drawn_from, normed_.first_rows(num_output_rows));
}

std::unique_ptr<Drafter> load_own_layer(
    Backend& backend,
    const DeviceOptions& options,
    const OwnCache& cache,
    const DraftedModel& model,
    const std::function<ModelWeights(Device&)>& load_weights,
    const std::function<std::unique_ptr<DraftLayer>(OwnLayerParts)>& make_layer) {
  auto device = backend.make_device(options);
  ModelWeights weights = load_weights(*device);
  if (model.stop.stop_requested()) throw Error(Code::kCancelled, "the load was stopped");
  const RowDrafterOptions row_options = cache.allocate(*device);
  Device* const ranks[] = {device.get()};
  auto communicators = backend.make_communicators(ranks);
  auto layer = make_layer({.weights = std::move(weights),
                           .device = *device,
                           .communicator = std::move(communicators.front()),
                           .kv_plan = cache.plan(),
                           .model = model});
  return std::make_unique<RowDrafter>(std::move(device), std::move(layer), row_options);
}

}  // namespace tgi
