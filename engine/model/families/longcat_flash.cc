// LongCat Flash: layers of two attentions and two dense MLPs each, read here as two layers; beside
// the first MLP experts, some of which give what they read, whose sum is added behind the second.
// Latent attention whose rows are multiplied by what their ranks are short of the stream. Source:
// models/longcat_flash in `transformers`, https://arxiv.org/abs/2509.01322.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/latent_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr std::string_view kLayers = "num_layers";
constexpr std::string_view kHalves = "num_hidden_layers";

// With the number of layers as it is counted here.
Json with_halves(const JsonReader& config) {
  Json out = config.json();
  const int64_t halves = config.integer_or(kHalves, 0);
  const int64_t fallback = halves > 0 && halves % 2 == 0 ? halves / 2 : 28;
  const int64_t count = int64_t{2} * read_size(config, kLayers, fallback, kMaxLayers / 2);
  if (halves != 0 && halves != count) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected twice {} = {}, since a layer has two attentions, got {}",
                            config.path_of(kHalves), kLayers, count / 2, halves));
  }
  out[std::string(kHalves)] = count;
  return out;
}

float scale_of_rank(const ModelConfig& model, int32_t rank) {
  return static_cast<float>(std::sqrt(static_cast<double>(model.hidden_size) / rank));
}

int32_t read_num_identity(const JsonReader& config) {
  constexpr std::string_view kKey = "zero_expert_num";
  if (config.json().contains(kKey) && !config.has(kKey)) return 0;
  const int64_t count = config.integer_or(kKey, 256);
  if (count < 0 || count > kMaxExperts) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: expected 0 to {}, got {}",
                                                    config.path_of(kKey), kMaxExperts, count));
  }
  return static_cast<int32_t>(count);
}

void read_longcat_experts(const JsonReader& config, ModelConfig& model) {
  read_experts(config,
               {.num_experts = "n_routed_experts",
                .top_k = "moe_topk",
                .intermediate_size = "expert_ffn_hidden_size",
                .default_num_experts = 512,
                .default_top_k = 12,
                .default_intermediate = 2048,
                .num_identity = read_num_identity(config)},
               model);
  model.experts.route.scale = read_positive(config, "routed_scaling_factor", 6.0);
  model.experts.has_choice_bias = true;
  for (size_t i = 0; i < model.layers.size(); i += 2) model.layers[i].mlp = MlpKind::kShortcut;
}

ModelConfig read_longcat_flash(const JsonReader& given) {
  const Json json = with_halves(given);
  const JsonReader config = given.in_place(json);
  DecoderFields fields = latent_decoder_fields({.intermediate_size = "ffn_hidden_size",
                                                .default_vocab_size = 131072,
                                                .default_hidden_size = 6144,
                                                .default_num_layers = 56,
                                                .default_num_heads = 64,
                                                .default_intermediate = 12288,
                                                .default_max_positions = 131072,
                                                .default_norm_eps = 1e-5,
                                                .default_bos = 1,
                                                .default_eos = 2});
  ModelConfig model = read_decoder_config(config, fields);
  read_latent_attention(config, {}, {.default_theta = 1e7, .interleaved = true}, model);
  if (model.latent.query_rank == 0) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: null is not supported, expected a number: queries are multiplied "
                            "by what it is short of hidden_size",
                            config.path_of("q_lora_rank")));
  }
  // Scores are as linear in queries.
  model.attention_scale *= scale_of_rank(model, model.latent.query_rank);
  model.latent.multiplier = scale_of_rank(model, model.latent.rank);
  read_longcat_experts(config, model);
  return model;
}

constexpr auto kLongcatFlashFields = join_fields(
    std::to_array<KnownField>({
        read("num_layers"),
        read("ffn_hidden_size"),
        read("expert_ffn_hidden_size"),
        read("moe_topk"),
        read("n_routed_experts"),
        read_or_null("zero_expert_num"),
        read("routed_scaling_factor"),
        harmless_if(
            "zero_expert_type", "[\"identity\"]", "experts without matrices give what they read"),
        harmless_if("attention_method", "[\"MLA\"]", "attention is latent"),
        harmless_if("mla_scale_q_lora", "[true]", "queries are multiplied"),
        harmless_if("mla_scale_kv_lora", "[true]", "latents are multiplied"),
        harmless_if("router_bias", "[false]", "logits of routers have no bias"),
        harmless_if("norm_topk_prob", "[false]", "weights of experts are not normalised"),
        harmless("output_router_logits", kTrainsRouter),
        harmless("router_dtype", kSameSums),
        harmless("num_nextn_predict_layers", kOnlyDrafts),
    }),
    kLatentFields,
    kDecoderFields);

constexpr auto kLongcatFlashAliases =
    std::to_array<FieldAlias>({kDeepSeekExpertAliases[0],
                               {"num_experts_per_tok", "moe_topk"},
                               {"intermediate_size", "ffn_hidden_size"},
                               {"moe_intermediate_size", "expert_ffn_hidden_size"}});

constexpr auto kLongcatFlashNames = std::to_array<std::string_view>({"LongcatFlashForCausalLM"});
constexpr auto kLongcatFlashTypes = std::to_array<std::string_view>({"longcat_flash"});

constexpr auto kLongcatFlashTensors = join_tensors(
    kLlamaOuterTensors,
    std::to_array<TensorSpec>({
        {Role::kAttentionNorm, "model.layers.{pair}.input_layernorm.{half}.weight", Dim::kOne,
         Dim::kHidden},
        {Role::kMlpNorm, "model.layers.{pair}.post_attention_layernorm.{half}.weight", Dim::kOne,
         Dim::kHidden},
        {Role::kQueryDown, "model.layers.{pair}.self_attn.{half}.q_a_proj.weight", Dim::kQueryRank,
         Dim::kHidden},
        {Role::kQueryDownBias, "model.layers.{pair}.self_attn.{half}.q_a_proj.bias", Dim::kOne,
         Dim::kQueryRank, Split::kNone, has_attention_bias},
        {Role::kQueryDownNorm, "model.layers.{pair}.self_attn.{half}.q_a_layernorm.weight",
         Dim::kOne, Dim::kQueryRank},
        {Role::kQ, "model.layers.{pair}.self_attn.{half}.q_b_proj.weight", Dim::kQ, Dim::kQueryRank,
         Split::kRows},
        {Role::kLatentDown, "model.layers.{pair}.self_attn.{half}.kv_a_proj_with_mqa.weight",
         Dim::kLatentKey, Dim::kHidden},
        {Role::kLatentDownBias, "model.layers.{pair}.self_attn.{half}.kv_a_proj_with_mqa.bias",
         Dim::kOne, Dim::kLatentKey, Split::kNone, has_attention_bias},
        {Role::kLatentNorm, "model.layers.{pair}.self_attn.{half}.kv_a_layernorm.weight", Dim::kOne,
         Dim::kLatent},
        {Role::kLatentUp, "model.layers.{pair}.self_attn.{half}.kv_b_proj.weight", Dim::kLatentUp,
         Dim::kLatent, Split::kRows},
        {Role::kO, "model.layers.{pair}.self_attn.{half}.o_proj.weight", Dim::kHidden,
         Dim::kHeadValues, Split::kColumns},
        {Role::kOBias, "model.layers.{pair}.self_attn.{half}.o_proj.bias", Dim::kOne, Dim::kHidden,
         Split::kColumns, has_attention_bias},
        {Role::kGate, "model.layers.{pair}.mlps.{half}.gate_proj.weight", Dim::kIntermediate,
         Dim::kHidden, Split::kRows},
        {Role::kUp, "model.layers.{pair}.mlps.{half}.up_proj.weight", Dim::kIntermediate,
         Dim::kHidden, Split::kRows},
        {Role::kDown, "model.layers.{pair}.mlps.{half}.down_proj.weight", Dim::kHidden,
         Dim::kIntermediate, Split::kColumns},
        {Role::kRouter, "model.layers.{pair}.mlp.router.classifier.weight", Dim::kChoices,
         Dim::kHidden, Split::kNone, has_experts},
        {Role::kChoiceBias, "model.layers.{pair}.mlp.router.e_score_correction_bias", Dim::kOne,
         Dim::kChoices, Split::kNone, has_experts},
        {Role::kExpertGate, "model.layers.{pair}.mlp.experts.{expert}.gate_proj.weight",
         Dim::kExpertIntermediate, Dim::kHidden, Split::kRows, has_experts},
        {Role::kExpertUp, "model.layers.{pair}.mlp.experts.{expert}.up_proj.weight",
         Dim::kExpertIntermediate, Dim::kHidden, Split::kRows, has_experts},
        {Role::kExpertDown, "model.layers.{pair}.mlp.experts.{expert}.down_proj.weight",
         Dim::kHidden, Dim::kExpertIntermediate, Split::kColumns, has_experts},
    }));

constexpr auto kLongcatFlashIgnored =
    std::to_array<std::string_view>({".rotary_emb.inv_freq", "mtp.*"});

}  // namespace

extern const Architecture kLongcatFlash;
constexpr Architecture kLongcatFlash = {
    .names = kLongcatFlashNames,
    .model_types = kLongcatFlashTypes,
    .prefix = "model.",
    .read_config = read_longcat_flash,
    .fields = kLongcatFlashFields,
    .aliases = kLongcatFlashAliases,
    .tensors = kLongcatFlashTensors,
    .ignored = kLongcatFlashIgnored,
};

}  // namespace tgi
