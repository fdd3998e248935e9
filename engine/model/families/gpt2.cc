// GPT-2: learned positions, LayerNorm with bias, one fused and transposed matrix for q, k and v.
// Source: models/gpt2 in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/gpt2_names.h"
#include "engine/model/known_fields.h"

namespace tgi {
namespace {

constexpr auto kGpt2OwnFields = join_fields(
    kGpt2Fields,
    std::to_array<KnownField>({
        read("scale_attn_weights"),
        read("scale_attn_by_inverse_layer_idx"),
        harmless("reorder_and_upcast_attn", "computes the same sums in float32, as is done here"),
    }));

ModelConfig read_gpt2(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, kGpt2Decoder);
  model.norm_kind = NormKind::kLayer;
  model.gated_mlp = false;
  model.learned_positions = true;
  if (!config.boolean_or("scale_attn_weights", true)) model.attention_scale = 1.0F;
  if (config.boolean_or("scale_attn_by_inverse_layer_idx", false)) {
    for (size_t i = 0; i < model.layers.size(); ++i) {
      model.layers[i].score_multiplier = 1.0F / static_cast<float>(i + 1);
    }
  }
  return model;
}

constexpr auto kGpt2Names = std::to_array<std::string_view>({"GPT2LMHeadModel"});
constexpr auto kGpt2Types = std::to_array<std::string_view>({"gpt2"});

constexpr auto kGpt2Tensors =
    join_tensors(kGpt2OuterTensors, kGpt2InnerTensors, kGpt2MatrixTensors);

}  // namespace

extern const Architecture kGpt2;
constexpr Architecture kGpt2 = {
    .names = kGpt2Names,
    .model_types = kGpt2Types,
    .prefix = "transformer.",
    .read_config = read_gpt2,
    .fields = kGpt2OwnFields,
    .aliases = kGpt2Aliases,
    .tensors = kGpt2Tensors,
    .ignored = kGpt2Ignored,
};

}  // namespace tgi
