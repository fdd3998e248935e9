// nanochat: Llama's block with norms that have no weights, one behind the embedding too, an MLP
// without a gate, and heads that are rotated the other way round before they are normed. Source:
// models/nanochat in `transformers`.
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_nanochat(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 50304,
                                                   .default_hidden_size = 768,
                                                   .default_num_layers = 12,
                                                   .default_num_heads = 6,
                                                   .default_intermediate = 8192,
                                                   .default_activation = "relu2",
                                                   .default_bos = 0,
                                                   .default_eos = 1});
  model.gated_mlp = false;
  model.norms_have_weights = false;
  model.norms_embedding = true;
  model.qk_norm_after_rope = true;
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.logit_softcap =
      read_optional_positive(config, "final_logit_softcapping", 15.0).value_or(0.0F);
  read_rope(config, model);
  for (LayerPlan& layer : model.layers) layer.divides_qk = true;
  for (RopeSpec& rope : model.ropes) {
    if (rope.dynamic_original_positions > 0) {
      throw Error(Code::kUnsupported,
                  fmt::format("{}: dynamic scaling is not supported for nanochat",
                              config.path_of("rope_parameters")));
    }
    for (float& frequency : rope.inv_freq) frequency = -frequency;
  }
  return model;
}

constexpr auto kNanoChatFields = join_fields(kDecoderFields,
                                             std::to_array<KnownField>({
                                                 read_or_null("attention_bias"),
                                                 read_or_null("final_logit_softcapping"),
                                             }));

constexpr auto kNanoChatNames = std::to_array<std::string_view>({"NanoChatForCausalLM"});
constexpr auto kNanoChatTypes = std::to_array<std::string_view>({"nanochat"});

constexpr auto kNanoChatTensors =
    join_tensors(kLlamaEmbeddingTensors,
                 kLlamaAttentionTensors,
                 kLlamaQkvBiasTensors,
                 kLlamaOBiasTensors,
                 std::to_array<TensorSpec>({
                     {Role::kUp, "model.layers.{layer}.mlp.fc1.weight", Dim::kIntermediate,
                      Dim::kHidden, Split::kRows},
                     {Role::kDown, "model.layers.{layer}.mlp.fc2.weight", Dim::kHidden,
                      Dim::kIntermediate, Split::kColumns},
                 }));

}  // namespace

extern const Architecture kNanoChat;
constexpr Architecture kNanoChat = {
    .names = kNanoChatNames,
    .model_types = kNanoChatTypes,
    .prefix = "model.",
    .read_config = read_nanochat,
    .fields = kNanoChatFields,
    .tensors = kNanoChatTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
