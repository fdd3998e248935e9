// DBRX: LayerNorms without biases, q, k and v in one matrix and held within limits, and experts in
// every layer, whose matrices lie one below the other.
// Source: models/dbrx in `transformers`.
#include <fmt/format.h>

#include <array>
#include <span>
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

constexpr std::string_view kDbrxTraining = kOnlyTraining;

constexpr auto kDbrxFields = std::to_array<KnownField>({
    read("vocab_size"),
    read("d_model"),
    read("n_layers"),
    read("n_heads"),
    read("max_seq_len"),
    read_or_null("attn_config"),
    read_or_null("ffn_config"),
    read_or_null("rope_parameters"),
    read_or_null("tie_word_embeddings"),
    harmless("num_key_value_heads", "attn_config says it"),
    harmless("emb_pdrop", kDbrxTraining),
    harmless("resid_pdrop", kDbrxTraining),
    harmless("output_router_logits", kTrainsRouter),
    harmless("router_aux_loss_coef", kTrainsRouter),
});

constexpr auto kDbrxAttentionFields = std::to_array<KnownField>({
    read_or_null("clip_qkv"),
    read("kv_n_heads"),
    read("rope_theta"),
    harmless("attn_pdrop", kDbrxTraining),
    harmless("tie_word_embeddings", "it is said outside"),
});

constexpr auto kFfnFields = std::to_array<KnownField>({
    read_or_null("ffn_act_fn"),
    read("ffn_hidden_size"),
    read("moe_num_experts"),
    read("moe_top_k"),
    read_or_null("moe_normalize_expert_weights"),
    harmless("hidden_size", "d_model says it"),
    harmless("tie_word_embeddings", "it is said outside"),
    harmless("moe_jitter_eps", kDbrxTraining),
    harmless("moe_loss_weight", kTrainsRouter),
    harmless_if("moe_uniform_expert_assignment", "[false]", "a router chooses"),
});

constexpr auto kGateFields = std::to_array<KnownField>({read("name")});

// Members of the objects within, as fields by their paths.
void take_members(const JsonReader& config,
                  const char* object,
                  std::span<const KnownField> fields,
                  Json& out) {
  if (!config.has(object)) return;
  const JsonReader inner = config.object(object);
  refuse_unknown_fields(inner, fields, generic_fields(), "DBRX");
  for (const auto& [key, value] : inner.json().items()) {
    out[fmt::format("{}.{}", object, key)] = value;
  }
}

// Weights are divided by their sum, or not at all.
bool read_normalises(const JsonReader& config) {
  constexpr const char* kKey = "ffn_config.moe_normalize_expert_weights";
  if (config.json().contains(kKey) && !config.has(kKey)) return false;
  const double power = config.number_or(kKey, 1.0);
  if (power == 1.0) return true;
  throw Error(Code::kUnsupported,
              fmt::format("{}: weights are divided by their sum (1), or not at all (null), got {}",
                          config.path_of(kKey), power));
}

Activation read_gate(const JsonReader& config) {
  constexpr const char* kKey = "ffn_config.ffn_act_fn";
  if (!config.has(kKey)) return Activation::kSilu;
  const JsonReader gate = config.object(kKey);
  refuse_unknown_fields(gate, kGateFields, {}, "DBRX's ffn_act_fn");
  return parse_activation(gate.string_or("name", "silu"), gate.path_of("name"));
}

ModelConfig read_dbrx(const JsonReader& given) {
  Json json = given.json();
  take_members(given, "attn_config", kDbrxAttentionFields, json);
  take_members(given, "ffn_config", kFfnFields, json);
  if (!json.contains("attn_config.kv_n_heads")) json["attn_config.kv_n_heads"] = 1;
  const JsonReader config(json, "");
  ModelConfig model =
      read_decoder_config(config, {.hidden_size = "d_model",
                                   .num_layers = "n_layers",
                                   .num_heads = "n_heads",
                                   .num_kv_heads = "attn_config.kv_n_heads",
                                   .head_dim = "",
                                   .intermediate_size = "ffn_config.ffn_hidden_size",
                                   .max_positions = "max_seq_len",
                                   .norm_eps = "",
                                   .activation = "",
                                   .default_hidden_size = 2048,
                                   .default_num_layers = 24,
                                   .default_num_heads = 16,
                                   .default_intermediate = 3584,
                                   .default_norm_eps = 1e-5,
                                   .default_bos = -1,
                                   .default_eos = -1});
  model.norm_kind = NormKind::kLayer;
  model.activation = read_gate(config);
  model.qkv_clip = read_optional_positive(config, "attn_config.clip_qkv", {}).value_or(0.0F);
  read_rope(config, model, {.theta_name = "attn_config.rope_theta"});
  read_experts(config,
               {.num_experts = "ffn_config.moe_num_experts",
                .top_k = "ffn_config.moe_top_k",
                .default_num_experts = 4,
                .default_top_k = 1,
                .normalises = read_normalises(config)},
               model);
  use_experts_in_all_layers(model);
  return model;
}

constexpr auto kDbrxNames = std::to_array<std::string_view>({"DbrxForCausalLM"});
constexpr auto kDbrxTypes = std::to_array<std::string_view>({"dbrx"});

constexpr auto kDbrxAliases = std::to_array<FieldAlias>({
    {"hidden_size", "d_model"},
    {"num_hidden_layers", "n_layers"},
    {"num_attention_heads", "n_heads"},
    {"max_position_embeddings", "max_seq_len"},
});

constexpr TensorSpec dbrx_gate_or_up(Role role, std::string_view name) {
  return {.role = role,
          .name = name,
          .rows = Dim::kExpertIntermediate,
          .cols = Dim::kHidden,
          .split = Split::kRows,
          .stacked = true,
          .flat = true};
}

constexpr auto kDbrxTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "transformer.wte.weight", Dim::kVocab, Dim::kHidden},
    {Role::kFinalNorm, "transformer.norm_f.weight", Dim::kOne, Dim::kHidden},
    {Role::kLmHead, "lm_head.weight", Dim::kVocab, Dim::kHidden, Split::kNone, has_own_head},
    {Role::kAttentionNorm, "transformer.blocks.{layer}.norm_attn_norm.norm_1.weight", Dim::kOne,
     Dim::kHidden},
    {Role::kMlpNorm, "transformer.blocks.{layer}.norm_attn_norm.norm_2.weight", Dim::kOne,
     Dim::kHidden},
    {Role::kQkv, "transformer.blocks.{layer}.norm_attn_norm.attn.Wqkv.weight", Dim::kQkv,
     Dim::kHidden, Split::kRows},
    {Role::kO, "transformer.blocks.{layer}.norm_attn_norm.attn.out_proj.weight", Dim::kHidden,
     Dim::kQ, Split::kColumns},
    {Role::kRouter, "transformer.blocks.{layer}.ffn.router.layer.weight", Dim::kExperts,
     Dim::kHidden},
    dbrx_gate_or_up(Role::kExpertGate, "transformer.blocks.{layer}.ffn.experts.mlp.w1"),
    dbrx_gate_or_up(Role::kExpertUp, "transformer.blocks.{layer}.ffn.experts.mlp.v1"),
    {.role = Role::kExpertDown,
     .name = "transformer.blocks.{layer}.ffn.experts.mlp.w2",
     .rows = Dim::kHidden,
     .cols = Dim::kExpertIntermediate,
     .split = Split::kColumns,
     .transposed = true,
     .stacked = true,
     .flat = true},
});

}  // namespace

extern const Architecture kDbrx;
constexpr Architecture kDbrx = {
    .names = kDbrxNames,
    .model_types = kDbrxTypes,
    .prefix = "transformer.",
    .read_config = read_dbrx,
    .fields = kDbrxFields,
    .aliases = kDbrxAliases,
    .tensors = kDbrxTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
