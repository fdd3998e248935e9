// The layer for the next tokens that the model's own checkpoint has (engine/model/next_tokens.h;
// --speculator mtp). For each further draft it runs once more, reading what it gave itself before
// its last norm. Embedding and head are the model's.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/known_names.h"
#include "engine/gguf/model_files.h"
#include "engine/model/kv_plan.h"
#include "engine/model/next_tokens.h"
#include "engine/model/state_layout.h"
#include "engine/model/transformer.h"
#include "engine/model/weight_check.h"
#include "engine/runtime/drafters/draft_rows.h"
#include "engine/runtime/drafters/drafter_kind.h"
#include "engine/runtime/drafters/own_cache.h"
#include "engine/runtime/drafters/row_drafter.h"

namespace tgi {
namespace {

constexpr int32_t kUsualMtpDrafts = 3;

constexpr int32_t kNumRowTensors = 6;  // of a pass, as wide as the stream: one of them is two

class MtpLayer final : public DraftLayer {
 public:
  MtpLayer(const ModelConfig& config,
           ModelWeights weights,
           Device& device,
           std::unique_ptr<Communicator> communicator,
           const KvPlan& kv_plan,
           const DraftedModel& model)
      : config_(config),
        weights_(std::move(weights)),
        device_(device),
        communicator_(std::move(communicator)),
        model_(model),
        transformer_(
            config, weights_, device, *communicator_, kv_plan, model.sizes.max_batch_tokens) {
    const int64_t rows = model.sizes.max_batch_tokens;
    const int64_t hidden = config.hidden_size;
    memory_ = DraftRows(device, row_elements(config) * rows, "rows of MTP");
    const auto take = [&](int64_t cols) { return memory_.take(rows, cols); };
    input_ = take(hidden);
    joined_ = take(2 * hidden);
    stream_ = take(hidden);
    drawn_from_ = take(hidden);
    normed_ = take(hidden);
  }

  static int64_t row_elements(const ModelConfig& config) {
    return int64_t{kNumRowTensors} * config.hidden_size;
  }

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
    device_.matmul({.x = joined, .w = weights_.embedding_in.get(), .out = stream});
    transformer_.run_layer(0, stream);
    if (num_output_rows == 0) return;
    const Tensor drawn_from = drawn_from_.first_rows(num_output_rows);
    device_.gather_output_rows(stream, drawn_from);
    norm(weights_.final_norm, drawn_from, normed_.first_rows(num_output_rows));
  }

  void sample(int32_t num_output_rows) override {
    device_.pool({.hidden = drawn_from_.first_rows(num_output_rows)});
    device_.sample({.hidden = normed_.first_rows(num_output_rows),
                    .lm_head = model_.lm_head,
                    .bias = model_.lm_head_bias,
                    .logit_scale = config_.logit_scale,
                    .logit_softcap = config_.logit_softcap});
  }

 private:
  void norm(const DeviceVector& weight, const Tensor& x, const Tensor& out) {
    device_.norm({.kind = config_.norm_kind,
                  .eps = config_.norm_eps,
                  .weight = weight.get(),
                  .x = x,
                  .residual = {},
                  .out = out});
  }

  const ModelConfig config_;
  const ModelWeights weights_;
  Device& device_;
  const std::unique_ptr<Communicator> communicator_;
  const DraftedModel model_;
  Transformer transformer_;
  DraftRows memory_;
  Tensor input_;       // (max_batch_tokens, hidden) each, but `joined_` of twice as many columns
  Tensor joined_;      // the embedding and the hidden state, normed
  Tensor stream_;      // what the layer adds to
  Tensor drawn_from_;  // of the rows that are drawn from
  Tensor normed_;
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
    const OwnCache cache(config, 2 * config.hidden_size, kv_dtype_, sizes);
    return {.weights = plan_weight_bytes(layer_.stored(), device, weights_),
            .workspace =
                Transformer::workspace_bytes(config, device.info(), 1, sizes.max_batch_tokens) +
                DraftRows::bytes(device, sizes.max_batch_tokens * MtpLayer::row_elements(config)) +
                cache.slot_bytes(device) + waiting_row_bytes(sizes, config.hidden_size),
            .block = cache.block_bytes(device)};
  }

  std::unique_ptr<Drafter> load(const DraftedModel& model) override {
    const ModelConfig& config = layer_.config();
    const OwnCache cache(config, 2 * config.hidden_size, kv_dtype_, model.sizes);
    auto device = backend_.make_device(device_);
    const auto tensors = open(device->info());
    ModelWeights weights = layer_.load(*tensors, *device, weights_);
    if (model.stop.stop_requested()) throw Error(Code::kCancelled, "the load was stopped");
    const RowDrafterOptions options = cache.allocate(*device);
    Device* const ranks[] = {device.get()};
    auto communicators = backend_.make_communicators(ranks);
    auto layer = std::make_unique<MtpLayer>(config, std::move(weights), *device,
                                            std::move(communicators.front()), cache.plan(), model);
    return std::make_unique<RowDrafter>(std::move(device), std::move(layer), options);
  }

 private:
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
