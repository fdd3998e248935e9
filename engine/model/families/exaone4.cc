// EXAONE 4: what a branch adds is normed instead of what it reads, and each head of q and k. Models
// with windows rotate only where there is one.
// Source: models/exaone4 in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr DecoderFields kDecoder = {
    .default_vocab_size = 102400,
    .default_num_kv_heads = 32,
    .default_intermediate = 16384,
    .default_norm_eps = 1e-5,
    .default_bos = 0,
};

ModelConfig read_config(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, kDecoder);
  // The pattern may be spelt in letters where layer_types says the same.
  read_windows(config, {.default_pattern = 4, .pattern_name = "sliding_window_pattern"}, model);
  read_rope(config, model);
  const bool has_no_window =
      config.json().contains("sliding_window") && !config.has("sliding_window");
  for (LayerPlan& layer : model.layers) {
    if (!has_no_window && layer.sliding_window == 0) layer.rope = kNoRope;
  }
  return model;
}

constexpr auto kFields =
    join_fields(kDecoderFields,
                std::to_array<KnownField>({
                    read_or_null("sliding_window"),
                    read_or_null("sliding_window_pattern"),
                    read_or_null("layer_types"),
                    harmless_if("attention_bias", "[false]", "there are no biases"),
                    harmless_if("mlp_bias", "[false]", "there are no biases"),
                    harmless_if("reorder_norm", "[true]", "norms are of what branches add"),
                    harmless_if("use_qk_norm", "[true]", "heads of q and k are always normed"),
                }));

constexpr auto kNames = std::to_array<std::string_view>({"Exaone4ForCausalLM"});
constexpr auto kModelTypes = std::to_array<std::string_view>({"exaone4", "exaone4_5_text"});

constexpr auto kTensors = join_tensors(
    kLlamaOuterTensors, kPostNormTensors, kLlamaAttentionTensors, kQkNormTensors, kLlamaMlpTensors);

}  // namespace

extern const Architecture kExaone4;
constexpr Architecture kExaone4 = {
    .names = kNames,
    .model_types = kModelTypes,
    .prefix = "model.",
    .read_config = read_config,
    .fields = kFields,
    .tensors = kTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
