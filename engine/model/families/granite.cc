// Granite 3: Llama's block with multipliers of embedding, branches, scores and logits; dense, or
// with experts in place of the MLP, the last kind beside one that all tokens go to. Newer ones have
// windows in most layers, a sink for each head, and a base of the rotation for each layer. Source:
// models/granite, models/granitemoe, models/granitemoeshared, models/granite_swa and
// models/granitemoe_swa in `transformers`, and models/granite_docling for its text model.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

// What absent ones mean.
struct GraniteFactors {
  double embedding = 1.0;
  double residual = 1.0;
  double attention = 1.0;
  double logits = 1.0;
};

ModelConfig read_granite_common(const JsonReader& config,
                                const DecoderFields& fields,
                                const GraniteFactors& factors = {}) {
  ModelConfig model = read_decoder_config(config, fields);
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.mlp_bias = config.boolean_or("mlp_bias", false);
  model.embedding_multiplier = read_positive(config, "embedding_multiplier", factors.embedding);
  model.residual_multiplier = read_positive(config, "residual_multiplier", factors.residual);
  model.attention_scale = read_positive(config, "attention_multiplier", factors.attention);
  model.logit_scale = 1.0F / read_positive(config, "logits_scaling", factors.logits);
  return model;
}

ModelConfig read_granite(const JsonReader& config) {
  ModelConfig model = read_granite_common(config, {});
  read_rope(config, model);
  refuse_windows(config, model);
  return model;
}

ModelConfig read_granite_docling(const JsonReader& config) {
  ModelConfig model = read_granite_common(
      config,
      {.default_vocab_size = 133800,
       .default_hidden_size = 1024,
       .default_num_layers = 28,
       .default_num_heads = 16,
       .default_num_kv_heads = 4,
       .default_intermediate = 2048,
       .default_max_positions = 32768,
       .default_norm_eps = 1e-5,
       .default_tied = true,
       .default_bos = 100257,
       .default_eos = 100257},
      {.embedding = 12.0, .residual = 0.263, .attention = 0.015625, .logits = 4.0});
  read_rope(config, model);
  refuse_windows(config, model);
  return model;
}

// Its router takes the softmax over the chosen: the same as all of it, divided by their sum.
void read_granite_experts(const JsonReader& config, ModelConfig& model) {
  read_experts(config,
               {.num_experts = "num_local_experts",
                .default_num_experts = 8,
                .default_top_k = 2,
                .normalises = true},
               model);
  use_experts_in_all_layers(model);
}

void read_shared_size(const JsonReader& config, ModelConfig& model) {
  const int64_t shared = config.integer_or("shared_intermediate_size", 0);
  if (shared == 0) return;
  model.experts.shared_intermediate_size =
      check_size(config, "shared_intermediate_size", shared, kMaxIntermediateSize);
}

ModelConfig read_granite_moe(const JsonReader& config) {
  ModelConfig model = read_granite(config);
  read_granite_experts(config, model);
  return model;
}

ModelConfig read_config_shared(const JsonReader& config) {
  ModelConfig model = read_granite_moe(config);
  read_shared_size(config, model);
  return model;
}

double check_layer_base(const JsonReader& config, const Json& list, size_t layer) {
  const Json& entry = list[layer];
  const double base = entry.is_number() ? entry.get<double>() : -1.0;
  if (!std::isfinite(base) || base < 0.0) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: entry {}: expected a number of 0 or more, got {}",
                            config.path_of("layer_rope_theta"), layer, entry.dump()));
  }
  return base;
}

// layer_rope_theta: a base for each layer, in place of the one for all; 0: q and k are not rotated.
void read_layer_bases(const JsonReader& config, ModelConfig& model) {
  if (!config.has("layer_rope_theta")) {
    read_rope(config, model);
    return;
  }
  const Json& bases = config.json().at("layer_rope_theta");
  if (!bases.is_array() || bases.size() != model.layers.size()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected a list of {} numbers, one per layer, got {}",
                            config.path_of("layer_rope_theta"), model.num_layers,
                            bases.is_array() ? fmt::format("{} entries", bases.size())
                                             : std::string(bases.type_name())));
  }
  std::map<double, int32_t> ropes;
  for (size_t i = 0; i < bases.size(); ++i) {
    const double base = check_layer_base(config, bases, i);
    if (base == 0.0) continue;
    if (!ropes.contains(base)) {
      Json json = config.json();
      (config.has("rope_parameters") ? json["rope_parameters"] : json)["rope_theta"] = base;
      ropes[base] = add_rope(JsonReader(json, ""), {}, model);
    }
    model.layers[i].rope = ropes[base];
  }
}

void read_granite_windows(const JsonReader& config, ModelConfig& model) {
  read_windows(config, {.default_window = 128}, model);
  read_layer_bases(config, model);
  if (config.has("layer_types")) return;
  for (size_t i = 0; i < model.layers.size(); i += 4) model.layers[i].sliding_window = 0;
}

ModelConfig read_granite_swa(const JsonReader& config) {
  ModelConfig model = read_granite_common(config, {.default_vocab_size = 100352,
                                                   .default_hidden_size = 2560,
                                                   .default_num_layers = 24,
                                                   .default_num_heads = 20,
                                                   .default_num_kv_heads = 4,
                                                   .default_intermediate = 8192,
                                                   .default_max_positions = 8192,
                                                   .default_norm_eps = 1e-5,
                                                   .default_tied = true,
                                                   .default_bos = 100257,
                                                   .default_eos = 100257});
  read_granite_windows(config, model);
  return model;
}

ModelConfig read_granite_moe_swa(const JsonReader& config) {
  ModelConfig model = read_granite_common(config, {});
  read_granite_windows(config, model);
  read_granite_experts(config, model);
  read_shared_size(config, model);
  return model;
}

constexpr auto kGraniteFields = join_fields(kDecoderFields,
                                            std::to_array<KnownField>({
                                                read_or_null("attention_bias"),
                                                read_or_null("mlp_bias"),
                                                read("embedding_multiplier"),
                                                read("residual_multiplier"),
                                                read("attention_multiplier"),
                                                read("logits_scaling"),
                                                read_or_null("layer_types"),
                                                read_or_null("sliding_window"),
                                                read_or_null("use_sliding_window"),
                                            }));

constexpr auto kGraniteFieldsMoe =
    join_fields(std::to_array<KnownField>({
                    read("num_local_experts"),
                    read("num_experts_per_tok"),
                    harmless("router_aux_loss_coef", kTrainsRouter),
                    harmless("output_router_logits", kTrainsRouter),
                    harmless_if("mlp_bias", "[false]", "experts have none"),
                    harmless_if("position_embedding_type", R"(["rope"])", "positions are rotated"),
                }),
                kGraniteFields);

constexpr auto kFieldsShared = join_fields(std::to_array<KnownField>({
                                               read("shared_intermediate_size"),
                                           }),
                                           kGraniteFieldsMoe);

constexpr auto kGraniteSwaFields = std::to_array<KnownField>({
    read_or_null("layer_rope_theta"),
    harmless("use_sliding_window", "layer_types alone says it"),
});
constexpr auto kGraniteFieldsSwa = join_fields(kGraniteSwaFields, kGraniteFields);
constexpr auto kGraniteFieldsMoeSwa = join_fields(kGraniteSwaFields, kFieldsShared);

constexpr auto kGraniteNamesSwa = std::to_array<std::string_view>({"GraniteSWAForCausalLM"});
constexpr auto kGraniteTypesSwa = std::to_array<std::string_view>({"granite_swa"});
constexpr auto kGraniteNamesMoeSwa = std::to_array<std::string_view>({"GraniteMoeSWAForCausalLM"});
constexpr auto kGraniteTypesMoeSwa = std::to_array<std::string_view>({"granitemoe_swa"});

constexpr auto kGraniteNamesMoe = std::to_array<std::string_view>({"GraniteMoeForCausalLM"});
constexpr auto kGraniteTypesMoe = std::to_array<std::string_view>({"granitemoe"});
constexpr auto kNamesShared = std::to_array<std::string_view>({"GraniteMoeSharedForCausalLM"});
constexpr auto kModelTypesShared = std::to_array<std::string_view>({"granitemoeshared"});

constexpr auto kGraniteNames = std::to_array<std::string_view>({"GraniteForCausalLM"});
constexpr auto kGraniteTypes = std::to_array<std::string_view>({"granite", "granite4_vision_text"});
constexpr auto kGraniteDoclingTextNames =
    std::to_array<std::string_view>({"GraniteDoclingTextModel"});
constexpr auto kGraniteDoclingTextTypes = std::to_array<std::string_view>({"granite_docling_text"});

constexpr auto kGraniteTensors = join_tensors(kLlamaOuterTensors,
                                              kLlamaNormTensors,
                                              kLlamaAttentionTensors,
                                              kLlamaQkvBiasTensors,
                                              kLlamaOBiasTensors,
                                              kLlamaMlpTensors,
                                              kLlamaMlpBiasTensors);

constexpr auto kGraniteSinkTensors = std::to_array<TensorSpec>({
    {Role::kSinks, "model.layers.{layer}.self_attn.sinks", Dim::kOne, Dim::kHeads, Split::kRows},
});
constexpr auto kGraniteTensorsSwa = join_tensors(kGraniteTensors, kGraniteSinkTensors);

constexpr auto kGraniteAttentionTensors = join_tensors(kLlamaOuterTensors,
                                                       kLlamaNormTensors,
                                                       kLlamaAttentionTensors,
                                                       kLlamaQkvBiasTensors,
                                                       kLlamaOBiasTensors);

constexpr auto kGraniteTensorsMoe =
    join_tensors(kGraniteAttentionTensors,
                 std::to_array<TensorSpec>({
                     {Role::kRouter, "model.layers.{layer}.block_sparse_moe.router.layer.weight",
                      Dim::kExperts, Dim::kHidden},
                     {.role = Role::kExpertGateUp,
                      .name = "model.layers.{layer}.block_sparse_moe.input_linear.weight",
                      .rows = Dim::kExpertGateUp,
                      .cols = Dim::kHidden,
                      .split = Split::kRows,
                      .stacked = true},
                     {.role = Role::kExpertDown,
                      .name = "model.layers.{layer}.block_sparse_moe.output_linear.weight",
                      .rows = Dim::kHidden,
                      .cols = Dim::kExpertIntermediate,
                      .split = Split::kColumns,
                      .stacked = true},
                 }));
constexpr auto kGraniteSharedExpertTensors = std::to_array<TensorSpec>({
    {Role::kSharedGateUp, "model.layers.{layer}.shared_mlp.input_linear.weight", Dim::kSharedGateUp,
     Dim::kHidden, Split::kRows, has_shared_expert},
    {Role::kSharedDown, "model.layers.{layer}.shared_mlp.output_linear.weight", Dim::kHidden,
     Dim::kSharedIntermediate, Split::kColumns, has_shared_expert},
});
constexpr auto kTensorsShared = join_tensors(kGraniteTensorsMoe, kGraniteSharedExpertTensors);

constexpr auto kGraniteTensorsMoeSwa =
    join_tensors(kGraniteAttentionTensors,
                 kGraniteSinkTensors,
                 kGraniteSharedExpertTensors,
                 std::to_array<TensorSpec>({
                     {Role::kRouter, "model.layers.{layer}.block_sparse_moe.router.weight",
                      Dim::kExperts, Dim::kHidden},
                     {.role = Role::kExpertGateUp,
                      .name = "model.layers.{layer}.block_sparse_moe.experts.gate_up_proj",
                      .rows = Dim::kExpertGateUp,
                      .cols = Dim::kHidden,
                      .split = Split::kRows,
                      .stacked = true},
                     {.role = Role::kExpertDown,
                      .name = "model.layers.{layer}.block_sparse_moe.experts.down_proj",
                      .rows = Dim::kHidden,
                      .cols = Dim::kExpertIntermediate,
                      .split = Split::kColumns,
                      .stacked = true},
                 }));

}  // namespace

extern const Architecture kGranite;
constexpr Architecture kGranite = {
    .names = kGraniteNames,
    .model_types = kGraniteTypes,
    .prefix = "model.",
    .read_config = read_granite,
    .fields = kGraniteFields,
    .tensors = kGraniteTensors,
    .ignored = kRotaryTables,
};

extern const Architecture kGraniteDoclingText;
constexpr Architecture kGraniteDoclingText = {
    .names = kGraniteDoclingTextNames,
    .model_types = kGraniteDoclingTextTypes,
    .prefix = "model.",
    .read_config = read_granite_docling,
    .fields = kGraniteFields,
    .tensors = kGraniteTensors,
    .ignored = kRotaryTables,
};

extern const Architecture kGraniteMoe;
constexpr Architecture kGraniteMoe = {
    .names = kGraniteNamesMoe,
    .model_types = kGraniteTypesMoe,
    .prefix = "model.",
    .read_config = read_granite_moe,
    .fields = kGraniteFieldsMoe,
    .tensors = kGraniteTensorsMoe,
    .ignored = kRotaryTables,
};

extern const Architecture kGraniteMoeShared;
constexpr Architecture kGraniteMoeShared = {
    .names = kNamesShared,
    .model_types = kModelTypesShared,
    .prefix = "model.",
    .read_config = read_config_shared,
    .fields = kFieldsShared,
    .tensors = kTensorsShared,
    .ignored = kRotaryTables,
};

extern const Architecture kGraniteSwa;
constexpr Architecture kGraniteSwa = {
    .names = kGraniteNamesSwa,
    .model_types = kGraniteTypesSwa,
    .prefix = "model.",
    .read_config = read_granite_swa,
    .fields = kGraniteFieldsSwa,
    .tensors = kGraniteTensorsSwa,
    .ignored = kRotaryTables,
};

extern const Architecture kGraniteMoeSwa;
constexpr Architecture kGraniteMoeSwa = {
    .names = kGraniteNamesMoeSwa,
    .model_types = kGraniteTypesMoeSwa,
    .prefix = "model.",
    .read_config = read_granite_moe_swa,
    .fields = kGraniteFieldsMoeSwa,
    .tensors = kGraniteTensorsMoeSwa,
    .ignored = kRotaryTables,
};

}  // namespace tgi
