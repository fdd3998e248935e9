// Beam: gated attention, each head's gate with a bias of its own; layers with a window are rotated,
// the others scale their queries by a power of the position; norms before and after the branches,
// whose sums with the stream weigh less the deeper they stand; experts chosen by sigmoids with a
// bias, in groups. Source: models/beam in `transformers`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
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

constexpr std::string_view kBeamRopes = "rope_parameters";
constexpr PositionScale kBeamQueryScale = {.positions = 2048, .offset = 1, .power = 0.1F};

// What a config leaves out: every sixth layer has no window, nor has the last, and only layers with
// one are rotated; the first three are dense.
Json with_beam_defaults(const JsonReader& config, int32_t num_layers) {
  Json out = config.json();
  const auto fill = [&](std::string_view key, auto value_of_layer) {
    if (config.has(key)) return;
    Json list = Json::array();
    for (int32_t i = 0; i < num_layers; ++i) list.push_back(value_of_layer(i));
    out[std::string(key)] = std::move(list);
  };
  fill("layer_types", [&](int32_t i) {
    return ends_pattern(i, 6) || i + 1 == num_layers ? "full_attention" : "sliding_attention";
  });
  fill("mlp_layer_types", [](int32_t i) { return i < 3 ? "dense" : "sparse"; });
  if (!config.has(kBeamRopes)) {
    out[std::string(kBeamRopes)] = {
        {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 10000.0}}},
        {"full_attention", nullptr}};
  }
  return out;
}

// By the kind of a layer: an object, or null, where queries are scaled instead.
void read_beam_rope(const JsonReader& config,
                    std::string_view kind,
                    bool has_window,
                    ModelConfig& model) {
  const auto is_of_kind = [&](const LayerPlan& layer) {
    return (layer.sliding_window > 0) == has_window;
  };
  if (std::ranges::none_of(model.layers, is_of_kind)) return;
  const Json& all = config.json().at(std::string(kBeamRopes));
  const auto own = all.find(std::string(kind));
  if (own == all.end()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected an object for each of layer_types, or null where nothing "
                            "is rotated, got none for {}",
                            config.path_of(kBeamRopes), kind));
  }
  const bool rotates = !own->is_null();
  const int32_t rope =
      rotates ? add_rope(config, {.layer_type = kind, .widens_context = false}, model) : kNoRope;
  for (LayerPlan& layer : model.layers) {
    if (!is_of_kind(layer)) continue;
    layer.rope = rope;
    if (!rotates) layer.query_scale = kBeamQueryScale;
  }
}

// The n-th sum with the stream, from the embedding on, divides both so that n parts of one size
// would keep that size.
ResidualFactors factors_of_sum(int32_t n) {
  const double count = n;
  return {.stream = static_cast<float>(std::sqrt((count - 1) / count)),
          .branch = static_cast<float>(1.0 / std::sqrt(count))};
}

ModelConfig read_beam(const JsonReader& given) {
  ModelConfig model = read_decoder_config(given, {.default_vocab_size = 151936,
                                                  .default_hidden_size = 5120,
                                                  .default_num_layers = 52,
                                                  .default_num_heads = 48,
                                                  .default_num_kv_heads = 8,
                                                  .default_head_dim = 128,
                                                  .default_intermediate = 20480,
                                                  .default_max_positions = 8192,
                                                  .default_bos = -1,
                                                  .default_eos = -1});
  const Json json = with_beam_defaults(given, model.num_layers);
  const JsonReader config = given.in_place(json);
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.has_output_gate = true;
  model.logit_softcap =
      read_optional_positive(config, "final_logit_softcapping", 30.0).value_or(0.0F);
  read_windows(config, {.default_window = 512}, model);
  read_beam_rope(config, "sliding_attention", true, model);
  read_beam_rope(config, "full_attention", false, model);
  read_deepseek_experts(config,
                        {.default_num_experts = 256,
                         .default_top_k = 8,
                         .default_intermediate = 2560,
                         .default_num_shared = 0,
                         .default_num_groups = 8,
                         .default_top_groups = 4,
                         .default_scale = 2.5},
                        model);
  (void)read_mlp_layer_types(config, model);
  for (int32_t i = 0; i < model.num_layers; ++i) {
    LayerPlan& layer = model.layers[static_cast<size_t>(i)];
    layer.mixer_factors = factors_of_sum(2 * (i + 1));
    layer.mlp_factors = factors_of_sum(2 * (i + 1) + 1);
  }
  return model;
}

constexpr std::string_view kOfEachKind = "each kind of layer has its own in rope_parameters";
constexpr auto kBeamFields =
    join_fields(std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    read_or_null("sliding_window"),
                    read_or_null("layer_types"),
                    read_or_null("mlp_layer_types"),
                    read_or_null("final_logit_softcapping"),
                    read("n_routed_experts"),
                    read("num_experts_per_tok"),
                    read("norm_topk_prob"),
                    read("moe_intermediate_size"),
                    read("n_group"),
                    read("topk_group"),
                    read("routed_scaling_factor"),
                    harmless("rope_theta", kOfEachKind),
                    harmless("original_max_position_embeddings", kOfEachKind),
                    harmless("router_aux_loss_coef", kTrainsRouter),
                    harmless("output_router_logits", kTrainsRouter),
                }),
                kDecoderFields);

constexpr auto kBeamNames = std::to_array<std::string_view>({"BeamForCausalLM"});
constexpr auto kBeamTypes = std::to_array<std::string_view>({"beam"});
constexpr auto kBeamAliases = std::to_array<FieldAlias>({{"num_experts", "n_routed_experts"}});

constexpr auto kBeamOwnTensors = std::to_array<TensorSpec>({
    {Role::kOutputGate, "model.layers.{layer}.self_attn.gate_proj.weight", Dim::kQ, Dim::kHidden,
     Split::kRows},
    {.role = Role::kOutputGateBias,
     .name = "model.layers.{layer}.self_attn.gate_bias",
     .rows = Dim::kOne,
     .cols = Dim::kQ,
     .split = Split::kRows,
     .for_heads = true},
    {Role::kChoiceBias, "model.layers.{layer}.mlp.gate.e_score_correction_bias", Dim::kOne,
     Dim::kExperts, Split::kNone, has_choice_bias},
});

constexpr auto kBeamTensors = join_tensors(kLlamaOuterTensors,
                                           kFourNormTensors,
                                           kLlamaAttentionTensors,
                                           kLlamaQkvBiasTensors,
                                           kLlamaOBiasTensors,
                                           kQkNormTensors,
                                           kLlamaMlpTensors,
                                           kExpertTensors,
                                           kBeamOwnTensors);

}  // namespace

extern const Architecture kBeam;
constexpr Architecture kBeam = {
    .names = kBeamNames,
    .model_types = kBeamTypes,
    .prefix = "model.",
    .read_config = read_beam,
    .fields = kBeamFields,
    .aliases = kBeamAliases,
    .tensors = kBeamTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
