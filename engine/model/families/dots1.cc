// dots.llm1: Qwen 3's attention and, behind the first layers, DeepSeek's experts.
// Source: models/dots1 in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

// Without layer_types the first layers have no window.
void read_late_windows(const JsonReader& config, ModelConfig& model) {
  read_windows(config, {}, model);
  if (config.has("layer_types")) return;
  const int64_t first = config.integer_or("max_window_layers", 62);
  for (int64_t i = 0; i < first && i < model.num_layers; ++i) {
    model.layers[static_cast<size_t>(i)].sliding_window = 0;
  }
}

ModelConfig read_dots1(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 152064,
                                                   .default_hidden_size = 4608,
                                                   .default_num_layers = 62,
                                                   .default_intermediate = 10944,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.attention_bias = config.boolean_or("attention_bias", false);
  read_late_windows(config, model);
  read_rope(config, model);
  read_deepseek_experts(config, {.default_intermediate = 1408}, model);
  model.experts.route.normalises = config.boolean_or("norm_topk_prob", false);
  read_first_sparse_layer(config, 0, model);
  return model;
}

constexpr auto kDots1Fields = join_fields(
    std::to_array<KnownField>({
        harmless_if("scoring_func", R"(["noaux_tc", "sigmoid"])", "scores are sigmoids"),
    }),
    kDecoderFields,
    kDeepSeekExpertFields,
    std::to_array<KnownField>({
        read_or_null("attention_bias"),
        read_or_null("sliding_window"),
        read_or_null("max_window_layers"),
        read_or_null("layer_types"),
        harmless("use_sliding_window", "sliding_window and max_window_layers alone say it"),
        harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
    }));

constexpr auto kDots1Names = std::to_array<std::string_view>({"Dots1ForCausalLM"});
constexpr auto kDots1Types = std::to_array<std::string_view>({"dots1"});

constexpr auto kDots1Tensors = join_tensors(kLlamaOuterTensors,
                                            kLlamaNormTensors,
                                            kLlamaAttentionTensors,
                                            kLlamaQkvBiasTensors,
                                            kLlamaOBiasTensors,
                                            kQkNormTensors,
                                            kLlamaMlpTensors,
                                            kExpertTensors,
                                            kDeepSeekExpertTensors);

}  // namespace

extern const Architecture kDots1;
constexpr Architecture kDots1 = {
    .names = kDots1Names,
    .model_types = kDots1Types,
    .prefix = "model.",
    .read_config = read_dots1,
    .fields = kDots1Fields,
    .tensors = kDots1Tensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
