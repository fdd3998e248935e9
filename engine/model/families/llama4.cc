// Llama 4 (text): layers that rotate attend within chunks of the context and norm heads of q and k
// without weights; the others see all of it, with queries scaled by their position. Experts in all
// or some layers, each weighed by the sigmoid of its logit before it reads, beside one that all
// tokens go to. Source: models/llama4 in `transformers`.
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/multimodal_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

// Whether a layer rotates; an empty list says nothing.
std::vector<bool> read_llama4_rotations(const JsonReader& config, const ModelConfig& model) {
  const bool is_listed =
      config.has("no_rope_layers") && !config.json().at("no_rope_layers").empty();
  if (is_listed) return read_layer_switches(config, "no_rope_layers", model);
  const int64_t interval = read_size(config, "no_rope_layer_interval", 4, kMaxLayers);
  std::vector<bool> out;
  for (int64_t i = 0; i < model.num_layers; ++i) out.push_back(!ends_pattern(i, interval));
  return out;
}

// Whether a layer's context is cut into chunks.
std::vector<bool> read_llama4_chunked(const JsonReader& config, const std::vector<bool>& rotates) {
  if (!config.has("layer_types")) return rotates;
  const std::vector<std::string> types = config.strings_or_empty("layer_types");
  if (types.size() != rotates.size()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected {} entries, one per layer, got {}",
                            config.path_of("layer_types"), rotates.size(), types.size()));
  }
  std::vector<bool> out;
  for (const std::string& type : types) {
    if (type != "chunked_attention" && type != "full_attention") {
      throw Error(Code::kUnsupported, fmt::format("{}: '{}' is not supported; known are "
                                                  "chunked_attention, full_attention",
                                                  config.path_of("layer_types"), type));
    }
    out.push_back(type == "chunked_attention");
  }
  return out;
}

// Old files have a number here.
bool scales_llama4_queries(const JsonReader& config) {
  static constexpr std::string_view kKey = "attn_temperature_tuning";
  const bool is_number = config.has(kKey) && config.json().at(kKey).is_number();
  return is_number ? config.number(kKey) != 0.0 : config.boolean_or(kKey, true);
}

void read_llama4_attention(const JsonReader& config, ModelConfig& model) {
  read_rope(config, model, {.default_theta = 500000.0, .interleaved = true});
  model.qk_norm_after_rope = true;
  const bool has_norm = config.boolean_or("use_qk_norm", true);
  const std::vector<bool> rotates = read_llama4_rotations(config, model);
  const std::vector<bool> is_chunked = read_llama4_chunked(config, rotates);
  const int32_t chunk = read_size(config, "attention_chunk_size", 8192, kMaxPositions);
  PositionScale scale{.beta = static_cast<float>(config.number_or("attn_scale", 0.1)),
                      .positions = read_size(config, "floor_scale", 8192, kMaxPositions),
                      .offset = 1};
  if (!scales_llama4_queries(config)) scale = {};
  for (size_t i = 0; i < model.layers.size(); ++i) {
    LayerPlan& layer = model.layers[i];
    if (is_chunked[i]) layer.attention_chunk = chunk;
    layer.divides_qk = rotates[i] && has_norm;
    if (rotates[i]) continue;
    layer.rope = kNoRope;
    layer.query_scale = scale;
  }
}

void read_llama4_layers_with_experts(const JsonReader& config, ModelConfig& model) {
  if (!config.has("moe_layers")) {
    const int64_t step = read_size(config, "interleave_moe_layer_step", 1, kMaxLayers);
    for (int64_t i = step - 1; i < model.num_layers; i += step) {
      model.layers[static_cast<size_t>(i)].mlp = MlpKind::kExperts;
    }
    return;
  }
  for (const int32_t layer : read_token_ids(config, "moe_layers")) {
    if (layer >= model.num_layers) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: names layer {}, but there are {}", config.path_of("moe_layers"),
                              layer, model.num_layers));
    }
    model.layers[static_cast<size_t>(layer)].mlp = MlpKind::kExperts;
  }
}

ModelConfig read_llama4(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.intermediate_size = "intermediate_size_mlp",
                                                   .default_vocab_size = 202048,
                                                   .default_hidden_size = 5120,
                                                   .default_num_layers = 48,
                                                   .default_num_heads = 40,
                                                   .default_num_kv_heads = 8,
                                                   .default_head_dim = 128,
                                                   .default_intermediate = 16384,
                                                   .default_max_positions = 131072,
                                                   .default_norm_eps = 1e-5});
  model.attention_bias = config.boolean_or("attention_bias", false);
  read_llama4_attention(config, model);
  read_experts(config,
               {.num_experts = "num_local_experts",
                .intermediate_size = "intermediate_size",
                .default_num_experts = 16,
                .default_top_k = 1,
                .default_intermediate = 8192,
                .score = RouterScore::kSigmoid},
               model);
  model.experts.shared_intermediate_size = model.experts.intermediate_size;
  model.experts.weighs_inputs = true;
  read_llama4_layers_with_experts(config, model);
  return model;
}

constexpr auto kLlama4Fields =
    join_fields(kDecoderFields,
                std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    read("intermediate_size_mlp"),
                    read("num_local_experts"),
                    read("num_experts_per_tok"),
                    read_or_null("moe_layers"),
                    read("interleave_moe_layer_step"),
                    read("use_qk_norm"),
                    read_or_null("no_rope_layers"),
                    read("no_rope_layer_interval"),
                    read("attention_chunk_size"),
                    read_or_null("layer_types"),
                    read("attn_temperature_tuning"),
                    read("floor_scale"),
                    read("attn_scale"),
                    harmless("for_llm_compressor", "says how the weights were quantised"),
                    harmless("router_aux_loss_coef", kTrainsRouter),
                    harmless("router_jitter_noise", kTrainsRouter),
                    harmless("output_router_logits", kTrainsRouter),
                }));

constexpr auto kLlama4Names = std::to_array<std::string_view>({"Llama4ForCausalLM"});
constexpr auto kLlama4Types = std::to_array<std::string_view>({"llama4_text"});
constexpr auto kLlama4MultimodalNames =
    std::to_array<std::string_view>({"Llama4ForConditionalGeneration"});
constexpr auto kLlama4MultimodalTypes = std::to_array<std::string_view>({"llama4"});

constexpr auto kLlama4MultimodalFields = join_fields(kMultimodalFields,
                                                     std::to_array<KnownField>({
                                                         harmless("boi_token_id", kImages),
                                                         harmless("eoi_token_id", kImages),
                                                     }));

constexpr auto kLlama4MlpTensors = std::to_array<TensorSpec>({
    {Role::kGate, "model.layers.{layer}.feed_forward.gate_proj.weight", Dim::kIntermediate,
     Dim::kHidden, Split::kRows, has_dense_mlp},
    {Role::kUp, "model.layers.{layer}.feed_forward.up_proj.weight", Dim::kIntermediate,
     Dim::kHidden, Split::kRows, has_dense_mlp},
    {Role::kDown, "model.layers.{layer}.feed_forward.down_proj.weight", Dim::kHidden,
     Dim::kIntermediate, Split::kColumns, has_dense_mlp},
    {Role::kRouter, "model.layers.{layer}.feed_forward.router.weight", Dim::kExperts, Dim::kHidden,
     Split::kNone, has_experts},
    {.role = Role::kExpertGateUp,
     .name = "model.layers.{layer}.feed_forward.experts.gate_up_proj",
     .rows = Dim::kExpertGateUp,
     .cols = Dim::kHidden,
     .split = Split::kRows,
     .only_if = has_experts,
     .transposed = true,
     .stacked = true},
    {.role = Role::kExpertDown,
     .name = "model.layers.{layer}.feed_forward.experts.down_proj",
     .rows = Dim::kHidden,
     .cols = Dim::kExpertIntermediate,
     .split = Split::kColumns,
     .only_if = has_experts,
     .transposed = true,
     .stacked = true},
    {Role::kSharedGate, "model.layers.{layer}.feed_forward.shared_expert.gate_proj.weight",
     Dim::kSharedIntermediate, Dim::kHidden, Split::kRows, has_experts},
    {Role::kSharedUp, "model.layers.{layer}.feed_forward.shared_expert.up_proj.weight",
     Dim::kSharedIntermediate, Dim::kHidden, Split::kRows, has_experts},
    {Role::kSharedDown, "model.layers.{layer}.feed_forward.shared_expert.down_proj.weight",
     Dim::kHidden, Dim::kSharedIntermediate, Split::kColumns, has_experts},
});

constexpr auto kLlama4Tensors = join_tensors(kLlamaOuterTensors,
                                             kLlamaNormTensors,
                                             kLlamaAttentionTensors,
                                             kLlamaQkvBiasTensors,
                                             kLlamaOBiasTensors,
                                             kLlama4MlpTensors);

}  // namespace

extern const Architecture kLlama4;
constexpr Architecture kLlama4 = {
    .names = kLlama4Names,
    .model_types = kLlama4Types,
    .prefix = "model.",
    .read_config = read_llama4,
    .fields = kLlama4Fields,
    .tensors = kLlama4Tensors,
    .ignored = kRotaryTables,
};

extern const Architecture kLlama4Multimodal;
constexpr Architecture kLlama4Multimodal = multimodal_of(kLlama4MultimodalNames,
                                                         kLlama4MultimodalTypes,
                                                         R"({"model_type": "llama4_text"})",
                                                         kLlama4MultimodalFields);

}  // namespace tgi
