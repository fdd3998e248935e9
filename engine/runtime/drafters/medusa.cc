// Medusa heads (https://arxiv.org/abs/2401.10774), as text-generation-inference has them: head i
// guesses the token i + 2 places behind what was read from the last hidden state alone.
//   x = hidden;  x += silu(W x + b) for each layer;  logits = head x
// Medusa 1 stores a head for each ("0.1.weight" behind one layer), Medusa 2 uses the model's.
//
// Files: config.json, medusa_lm_head.safetensors.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/known_fields.h"
#include "engine/model/config_fields.h"
#include "engine/model/tensor_table.h"
#include "engine/runtime/drafters/draft_rows.h"
#include "engine/runtime/drafters/drafter_kind.h"
#include "engine/runtime/drafters/head_tensors.h"
#include "engine/runtime/drafters/hidden_drafter.h"

namespace tgi {
namespace {

constexpr const char* kFile = "medusa_lm_head.safetensors";
constexpr int32_t kMostLayers = 64;

constexpr auto kMedusaFields = std::to_array<KnownField>({
    read("medusa_num_heads"),
    read("medusa_num_layers"),
    read_or_null("base_model_name_or_path"),
    read_or_null("hidden_size"),
    read_or_null("vocab_size"),
    harmless("_name_or_path", "says where the files came from"),
    harmless("transformers_version", "says what wrote the file"),
    harmless("torch_dtype", "types are those of the tensors"),
    harmless("dtype", "types are those of the tensors"),
    harmless_if("version", R"(["1", "2"])", "both are read by the tensors that there are"),
});

struct MedusaConfig {
  int32_t num_heads = 0;
  int32_t num_layers = 0;
  bool has_own_heads = false;  // Medusa 1
  int32_t hidden_size = 0;
  int32_t vocab_size = 0;

  int32_t max_cols() const { return hidden_size; }
};

std::string linear_name(int32_t head, int32_t layer) {
  return fmt::format("{}.{}.linear", head, layer);
}

std::string out_name(const MedusaConfig& config, int32_t head) {
  return fmt::format("{}.{}.weight", head, config.num_layers);
}

std::vector<HeadTensor> tensors_of(const MedusaConfig& config) {
  const int64_t hidden = config.hidden_size;
  std::vector<HeadTensor> out;
  for (int32_t head = 0; head < config.num_heads; ++head) {
    for (int32_t layer = 0; layer < config.num_layers; ++layer) {
      out.push_back({linear_name(head, layer) + ".weight", {hidden, hidden}});
      out.push_back({linear_name(head, layer) + ".bias", {hidden}});
    }
    if (config.has_own_heads) out.push_back({out_name(config, head), {config.vocab_size, hidden}});
  }
  return out;
}

int64_t row_elements(const MedusaConfig& config) {
  return int64_t{3} * config.hidden_size;
}

class MedusaHeads final : public DraftHeads {
 public:
  MedusaHeads(const MedusaConfig& config,
              const Checkpoint& checkpoint,
              Device& device,
              DType dtype,
              const DraftedModel& model)
      : config_(config), device_(device), model_(model) {
    for (int32_t head = 0; head < config.num_heads; ++head) {
      std::vector<Linear>& layers = layers_.emplace_back();
      for (int32_t layer = 0; layer < config.num_layers; ++layer) {
        if (model.stop.stop_requested()) throw Error(Code::kCancelled, "the load was stopped");
        const std::string name = linear_name(head, layer);
        layers.push_back({.weight = load_head_matrix(checkpoint, name + ".weight", device, dtype),
                          .bias = load_head_vector(checkpoint, name + ".bias", device)});
      }
      if (config.has_own_heads) {
        outs_.push_back(load_head_matrix(checkpoint, out_name(config, head), device, dtype));
      }
    }
    const int64_t rows = model.sizes.max_running;
    memory_ = DraftRows(device, rows * row_elements(config), "medusa's rows");
    input_ = memory_.take(rows, config.hidden_size);
    x_ = memory_.take(rows, config.hidden_size);
    branch_ = memory_.take(rows, config.hidden_size);
  }

  int32_t num_heads() const override { return config_.num_heads; }
  Tensor input() const override { return input_; }
  void choose(int32_t head) override { head_ = static_cast<size_t>(head); }

  void run(int32_t num_tokens, int32_t /*num_output_rows*/) override {
    Tensor x = input_.first_rows(num_tokens);
    const Tensor sum = x_.first_rows(num_tokens);
    const Tensor branch = branch_.first_rows(num_tokens);
    for (const Linear& linear : layers_[head_]) {
      linear.apply(device_, x, branch);
      device_.activation({.kind = Activation::kSilu, .gated = false, .in = branch, .out = branch});
      device_.add({.x = x, .y = branch, .out = sum});
      x = sum;
    }
    drawn_from_ = x;
  }

  void sample(int32_t /*num_output_rows*/) override {
    const bool own = config_.has_own_heads;
    device_.sample({.hidden = drawn_from_,
                    .lm_head = own ? outs_[head_].get() : model_.lm_head,
                    .bias = own ? nullptr : model_.lm_head_bias});
  }

 private:
  const MedusaConfig config_;
  Device& device_;
  const DraftedModel model_;
  std::vector<std::vector<Linear>> layers_;    // (num_heads, num_layers)
  std::vector<std::unique_ptr<Matrix>> outs_;  // (num_heads) of Medusa 1
  DraftRows memory_;
  Tensor input_;   // (max_running, hidden) each
  Tensor x_;       // behind the layers so far
  Tensor branch_;  // what the next one adds
  Tensor drawn_from_;
  size_t head_ = 0;
};

class PreparedMedusa final : public PreparedDrafter {
 public:
  explicit PreparedMedusa(const AskedDrafter& asked)
      : backend_(asked.backend),
        device_(asked.device),
        dtype_(asked.dtype),
        checkpoint_(open_safetensors(*asked.files, kFile)) {
    const std::string owner = asked.files->describe("config.json");
    const JsonReader json(*asked.config, "");
    try {
      refuse_unknown_fields(json, kMedusaFields, {}, "Medusa heads", "what the heads compute");
      config_.num_heads = read_size(json, "medusa_num_heads", 0, kMostDraftHeads);
      config_.num_layers = read_size(json, "medusa_num_layers", 1, kMostLayers);
    } catch (const Error& error) {
      throw error.in(owner);
    }
    const ModelConfig& model = asked.model.config;
    config_.hidden_size = model.hidden_size;
    config_.vocab_size = model.vocab_size;
    check_drafted_size(json, owner, "hidden_size", model.hidden_size);
    check_drafted_size(json, owner, "vocab_size", model.vocab_size);
    config_.has_own_heads = checkpoint_->find(out_name(config_, 0)) != nullptr;
    if (!config_.has_own_heads && has_matrix_before_head(asked.model)) {
      throw Error(Code::kUnsupported,
                  fmt::format("{}: these heads draw with the model's own head, but {} has another "
                              "matrix before it",
                              owner, model.architecture));
    }
    check_head_tensors(*checkpoint_, tensors_of(config_), asked.files->describe(kFile));
  }

  int32_t most_drafts() const override { return config_.num_heads; }
  bool reads_hidden() const override { return true; }

  DrafterBytes bytes(const Device& device, const DrafterSizes& sizes) const override {
    return {.weights = head_tensor_bytes(device, tensors_of(config_), dtype_),
            .workspace = device.slot_bytes(slots_of(sizes)) +
                         DraftRows::bytes(device, sizes.max_running * row_elements(config_))};
  }

  std::unique_ptr<Drafter> load(const DraftedModel& model) override {
    auto device = backend_.make_device(device_);
    auto heads = std::make_unique<MedusaHeads>(config_, *checkpoint_, *device, dtype_, model);
    return std::make_unique<HiddenDrafter>(std::move(device), std::move(heads),
                                           slots_of(model.sizes));
  }

 private:
  SlotLayout slots_of(const DrafterSizes& sizes) const {
    return heads_slots(sizes, config_.vocab_size, config_.max_cols());
  }

  Backend& backend_;
  const DeviceOptions device_;
  const DType dtype_;
  const std::unique_ptr<Checkpoint> checkpoint_;
  MedusaConfig config_;
};

}  // namespace

extern const DrafterKind kMedusaDrafter;
const DrafterKind kMedusaDrafter = {
    .name = "medusa",
    .is_asked =
        [](const AskedDrafter& asked) {
          return asked.config != nullptr && asked.config->contains("medusa_num_heads");
        },
    .prepare = [](const AskedDrafter& asked) -> std::unique_ptr<PreparedDrafter> {
      return std::make_unique<PreparedMedusa>(asked);
    },
};

}  // namespace tgi
