// The MLP speculator (https://arxiv.org/abs/2404.19124), as text-generation-inference has it: a
// recurrent state that begins with the last hidden state; head i reads the token before the one
// that it guesses.
//   state = w * proj[i] state + e * emb[i][token];  state = gelu(ln[i](state));  logits = head[i]
//   state
// with w = 0.5^(0.5 / n_predict) and e = sqrt((1 - w^2) * inner_dim / 2). scale_input: the first
// state is divided by its root mean square, and by sqrt(2). tie_weights: all heads share one of
// each, but for the first projection.
//
// Files: config.json (MLPSpeculatorPreTrainedModel), model.safetensors, sharded or not.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/known_fields.h"
#include "engine/model/config_fields.h"
#include "engine/runtime/drafters/draft_rows.h"
#include "engine/runtime/drafters/drafter_kind.h"
#include "engine/runtime/drafters/head_tensors.h"
#include "engine/runtime/drafters/hidden_drafter.h"

namespace tgi {
namespace {

constexpr float kNormEps = 1e-6F;
constexpr std::string_view kNoTree = "one chain is drafted, no tree of candidates";

constexpr auto kMlpFields = std::to_array<KnownField>({
    read("model_type"),
    read("n_predict"),
    read("emb_dim"),
    read("inner_dim"),
    read("vocab_size"),
    read_or_null("tie_weights"),
    read_or_null("scale_input"),
    read_or_null("base_model_name_or_path"),
    harmless("architectures", "model_type says it"),
    harmless("n_candidates", kNoTree),
    harmless("top_k_tokens_per_head", kNoTree),
    harmless("_name_or_path", "says where the files came from"),
    harmless("transformers_version", "says what wrote the file"),
    harmless("torch_dtype", "types are those of the tensors"),
    harmless("dtype", "types are those of the tensors"),
});

struct MlpConfig {
  int32_t num_heads = 0;
  int32_t hidden_size = 0;  // of the model
  int32_t inner_size = 0;   // of the state behind the first head
  int32_t vocab_size = 0;
  bool ties_weights = false;
  bool scales_input = false;

  // Which of the stored ones head i uses.
  int32_t part_of(int32_t head) const { return ties_weights ? 0 : head; }
  int32_t projection_of(int32_t head) const { return ties_weights ? std::min(head, 1) : head; }
  int32_t num_parts() const { return ties_weights ? 1 : num_heads; }
  int32_t num_projections() const { return ties_weights ? std::min(num_heads, 2) : num_heads; }

  float state_weight() const { return std::pow(0.5F, 0.5F / static_cast<float>(num_heads)); }
  float embedding_weight() const {
    const float w = state_weight();
    return std::sqrt((1.0F - w * w) * static_cast<float>(inner_size) / 2.0F);
  }
};

std::string part_name(std::string_view part, int32_t index, std::string_view what = "weight") {
  return fmt::format("speculator.{}.{}.{}", part, index, what);
}

std::vector<HeadTensor> tensors_of(const MlpConfig& config) {
  const int64_t inner = config.inner_size;
  std::vector<HeadTensor> out;
  for (int32_t i = 0; i < config.num_parts(); ++i) {
    out.push_back({part_name("emb", i), {config.vocab_size, inner}});
    out.push_back({part_name("head", i), {config.vocab_size, inner}});
    out.push_back({part_name("ln", i), {inner}});
    out.push_back({part_name("ln", i, "bias"), {inner}});
  }
  for (int32_t i = 0; i < config.num_projections(); ++i) {
    out.push_back({part_name("proj", i), {inner, i == 0 ? config.hidden_size : inner}});
  }
  return out;
}

// Of the first state, of the state, and of what the next one is made of.
int64_t row_elements(const MlpConfig& config) {
  return config.hidden_size + int64_t{2} * config.inner_size;
}

int64_t scale_bytes(const MlpConfig& config) {
  return config.hidden_size * int64_t{sizeof(float)};
}

class MlpHeads final : public DraftHeads {
 public:
  MlpHeads(const MlpConfig& config,
           const Checkpoint& checkpoint,
           Device& device,
           DType dtype,
           const DraftedModel& model)
      : config_(config), device_(device) {
    const auto matrix = [&](std::string_view part, int32_t index) {
      if (model.stop.stop_requested()) throw Error(Code::kCancelled, "the load was stopped");
      return load_head_matrix(checkpoint, part_name(part, index), device, dtype);
    };
    for (int32_t i = 0; i < config.num_parts(); ++i) {
      embeddings_.push_back(matrix("emb", i));
      outs_.push_back(matrix("head", i));
      norms_.push_back(load_head_vector(checkpoint, part_name("ln", i), device));
      norm_biases_.push_back(load_head_vector(checkpoint, part_name("ln", i, "bias"), device));
    }
    for (int32_t i = 0; i < config.num_projections(); ++i)
      projections_.push_back(matrix("proj", i));
    lay_out(model.sizes.max_running);
  }

  int32_t num_heads() const override { return config_.num_heads; }
  Tensor input() const override { return input_; }
  void choose(int32_t head) override { head_ = head; }

  void run(int32_t num_tokens, int32_t /*num_output_rows*/) override {
    const auto part = static_cast<size_t>(config_.part_of(head_));
    const Tensor state = state_.first_rows(num_tokens);
    const Tensor projected = projected_.first_rows(num_tokens);
    const Tensor input = input_.first_rows(num_tokens);
    if (head_ == 0 && config_.scales_input) {
      device_.norm(
          {.eps = kNormEps, .weight = &input_scale_, .x = input, .residual = {}, .out = input});
    }
    device_.matmul({.x = head_ == 0 ? input : state,
                    .w = projections_[static_cast<size_t>(config_.projection_of(head_))].get(),
                    .out = projected});
    device_.embed(
        {.table = embeddings_[part].get(), .multiplier = config_.embedding_weight(), .out = state});
    device_.add({.x = state, .y = projected, .y_multiplier = config_.state_weight(), .out = state});
    device_.norm({.eps = kNormEps,
                  .weight = norms_[part].get(),
                  .bias = norm_biases_[part].get(),
                  .x = state,
                  .residual = {},
                  .out = state});
    device_.activation({.kind = Activation::kGelu, .gated = false, .in = state, .out = state});
    drawn_from_ = state;
  }

  void sample(int32_t /*num_output_rows*/) override {
    const auto part = static_cast<size_t>(config_.part_of(head_));
    device_.sample({.hidden = drawn_from_, .lm_head = outs_[part].get()});
  }

 private:
  void lay_out(int64_t rows) {
    memory_ = DraftRows(device_, rows * row_elements(config_), "the speculator's rows");
    input_ = memory_.take(rows, config_.hidden_size);
    state_ = memory_.take(rows, config_.inner_size);
    projected_ = memory_.take(rows, config_.inner_size);
    if (!config_.scales_input) return;
    const std::vector<float> scale(static_cast<size_t>(config_.hidden_size), std::sqrt(0.5F));
    const auto size = static_cast<size_t>(scale_bytes(config_));
    scale_memory_ = device_.allocate(size, "the speculator's scale");
    device_.copy_to_device(scale_memory_.data(), scale.data(), size);
    input_scale_ = {.data = scale_memory_.data(),
                    .rows = 1,
                    .cols = config_.hidden_size,
                    .stride = config_.hidden_size};
  }

  const MlpConfig config_;
  Device& device_;
  std::vector<std::unique_ptr<Matrix>> embeddings_;  // (num_parts) each
  std::vector<std::unique_ptr<Matrix>> outs_;
  std::vector<DeviceVector> norms_;
  std::vector<DeviceVector> norm_biases_;
  std::vector<std::unique_ptr<Matrix>> projections_;  // (num_projections)
  DraftRows memory_;
  Buffer scale_memory_;
  Tensor input_;        // (max_running, hidden)
  Tensor state_;        // (max_running, inner)
  Tensor projected_;    // (max_running, inner): the state before, through the projection
  Tensor input_scale_;  // (1, hidden), f32: 1 / sqrt(2), which the norm multiplies by
  Tensor drawn_from_;
  int32_t head_ = 0;
};

MlpConfig read_config(const AskedDrafter& asked, const std::string& owner) {
  const JsonReader json(*asked.config, "");
  const ModelConfig& model = asked.model.config;
  MlpConfig out;
  try {
    refuse_unknown_fields(json, kMlpFields, {}, "an MLP speculator", "what the heads compute");
    out.num_heads = read_size(json, "n_predict", 3, kMostDraftHeads);
    out.hidden_size = read_size(json, "emb_dim", 4096, kMaxHiddenSize);
    // 0: as wide as the model.
    const int64_t inner = json.integer_or("inner_dim", 0);
    out.inner_size = inner == 0 ? out.hidden_size : read_size(json, "inner_dim", 0, kMaxHiddenSize);
    out.vocab_size = read_size(json, "vocab_size", 32000, kMaxVocabSize);
    out.ties_weights = json.boolean_or("tie_weights", false);
    out.scales_input = json.boolean_or("scale_input", false);
  } catch (const Error& error) {
    throw error.in(owner);
  }
  check_drafted_size(json, owner, "emb_dim", model.hidden_size);
  check_drafted_size(json, owner, "vocab_size", model.vocab_size);
  out.hidden_size = model.hidden_size;
  out.vocab_size = model.vocab_size;
  return out;
}

class PreparedMlp final : public PreparedDrafter {
 public:
  explicit PreparedMlp(const AskedDrafter& asked)
      : backend_(asked.backend),
        device_(asked.device),
        dtype_(asked.dtype),
        config_(read_config(asked, asked.files->describe("config.json"))),
        checkpoint_(open_checkpoint(*asked.files)) {
    check_head_tensors(*checkpoint_, tensors_of(config_),
                       asked.files->describe("model.safetensors"));
  }

  int32_t most_drafts() const override { return config_.num_heads; }
  bool reads_hidden() const override { return true; }

  DrafterBytes bytes(const Device& device, const DrafterSizes& sizes) const override {
    return {.weights = head_tensor_bytes(device, tensors_of(config_), dtype_),
            .workspace = device.slot_bytes(slots_of(sizes)) + scale_bytes(config_) +
                         DraftRows::bytes(device, sizes.max_running * row_elements(config_))};
  }

  std::unique_ptr<Drafter> load(const DraftedModel& model) override {
    auto device = backend_.make_device(device_);
    auto heads = std::make_unique<MlpHeads>(config_, *checkpoint_, *device, dtype_, model);
    return std::make_unique<HiddenDrafter>(std::move(device), std::move(heads),
                                           slots_of(model.sizes));
  }

 private:
  SlotLayout slots_of(const DrafterSizes& sizes) const {
    return heads_slots(sizes, config_.vocab_size,
                       std::max(config_.hidden_size, config_.inner_size));
  }

  Backend& backend_;
  const DeviceOptions device_;
  const DType dtype_;
  const MlpConfig config_;
  const std::unique_ptr<Checkpoint> checkpoint_;
};

}  // namespace

extern const DrafterKind kMlpDrafter;
const DrafterKind kMlpDrafter = {
    .name = "mlp-speculator",
    .is_asked =
        [](const AskedDrafter& asked) {
          return asked.config != nullptr &&
                 asked.config->value("model_type", "") == "mlp_speculator";
        },
    .prepare = [](const AskedDrafter& asked) -> std::unique_ptr<PreparedDrafter> {
      return std::make_unique<PreparedMlp>(asked);
    },
};

}  // namespace tgi
