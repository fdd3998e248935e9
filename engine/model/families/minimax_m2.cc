// MiniMax M2: experts chosen by sigmoids with a bias, a norm over all heads of q and of k, a part
// of the head rotated. Source: models/minimax_m2 in `transformers`.
#include <fmt/format.h>

#include <array>
#include <optional>
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

// The same in columns and as a part of a head: both may be said, and then have to agree.
void check_rotary_part(const JsonReader& config, int32_t columns, int32_t head_dim) {
  static constexpr std::string_view kPart = "partial_rotary_factor";
  const auto check = [&](const JsonReader& object) {
    const std::optional<double> part = object.optional_number(kPart);
    if (!part || static_cast<int32_t>(*part * head_dim) == columns) return;
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: {} of a head of {} are {} columns, but rotary_dim is {}",
                            object.path_of(kPart), *part, head_dim,
                            static_cast<int32_t>(*part * head_dim), columns));
  };
  check(config);
  for (const std::string_view key : {"rope_scaling", "rope_parameters"}) {
    if (config.has(key)) check(config.object(key));
  }
}

ModelConfig read_minimax_m2(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 200064,
                                                   .default_hidden_size = 3072,
                                                   .default_num_layers = 62,
                                                   .default_num_heads = 48,
                                                   .default_num_kv_heads = 8,
                                                   .default_head_dim = 128,
                                                   .default_intermediate = 1536,
                                                   .default_max_positions = 196608,
                                                   .default_norm_eps = 1e-6,
                                                   .default_bos = 200034,
                                                   .default_eos = 200020});
  model.qk_norm = QkNorm::kRow;
  RopeTraits rope{.default_theta = 5e6, .takes_partial = true};
  if (config.has("rotary_dim")) {
    rope.columns = read_size(config, "rotary_dim", model.head_dim, model.head_dim);
    if (rope.columns % 2 != 0) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: expected an even number, columns are rotated in pairs; got {}",
                              config.path_of("rotary_dim"), rope.columns));
    }
    check_rotary_part(config, rope.columns, model.head_dim);
  }
  read_rope(config, model, rope);
  read_experts(config,
               {.num_experts = "num_local_experts",
                .default_num_experts = 256,
                .default_top_k = 8,
                .score = RouterScore::kSigmoid,
                .normalises = true},
               model);
  model.experts.has_choice_bias = true;
  use_experts_in_all_layers(model);
  refuse_windows(config, model);
  return model;
}

constexpr std::string_view kMinimaxM2OneBlock = "there is one kind of block";
constexpr std::string_view kNextTokens = "tokens are predicted one by one";

constexpr auto kMinimaxM2Fields =
    join_fields(kDecoderFields,
                std::to_array<KnownField>({
                    read("rotary_dim"),
                    read("num_local_experts"),
                    read("num_experts_per_tok"),
                    read_or_null("layer_types"),
                    read_or_null("sliding_window"),
                    read_or_null("use_sliding_window"),
                    harmless_if("scoring_func", R"(["sigmoid"])", "scores are sigmoids"),
                    harmless_if("use_routing_bias", "[true]", "experts are chosen with a bias"),
                    harmless_if("use_qk_norm", "[true]", kMinimaxM2OneBlock),
                    harmless_if("qk_norm_type", R"(["per_layer"])", "the norm is over all heads"),
                    harmless_if("shared_intermediate_size", "[0]", "there is no shared expert"),
                    harmless("shared_moe_mode", "there is no shared expert"),
                    harmless("attn_type_list", "all layers attend to all of the context"),
                    harmless("mlp_intermediate_size", "there is no dense MLP"),
                    harmless_if("layernorm_full_attention_beta", "[1.0]", kMinimaxM2OneBlock),
                    harmless_if("layernorm_linear_attention_beta", "[1.0]", kMinimaxM2OneBlock),
                    harmless_if("layernorm_mlp_beta", "[1.0]", kMinimaxM2OneBlock),
                    harmless_if("attention_bias", "[false]", "there are no biases"),
                    harmless_if("mlp_bias", "[false]", "there are no biases"),
                    harmless("use_mtp", kNextTokens),
                    harmless("num_mtp_modules", kNextTokens),
                    harmless("mtp_transformer_layers", kNextTokens),
                    harmless("router_jitter_noise", kTrainsRouter),
                    harmless("router_aux_loss_coef", kTrainsRouter),
                    harmless("output_router_logits", kTrainsRouter),
                }));

constexpr auto kMinimaxM2Names = std::to_array<std::string_view>({"MiniMaxM2ForCausalLM"});
constexpr auto kMinimaxM2Types = std::to_array<std::string_view>({"minimax_m2"});

constexpr auto kMinimaxM2Tensors = join_tensors(
    kLlamaOuterTensors,
    kLlamaNormTensors,
    kLlamaAttentionTensors,
    kQkRowNormTensors,
    kMixtralExpertTensors,
    std::to_array<TensorSpec>({
        {Role::kChoiceBias, "model.layers.{layer}.block_sparse_moe.e_score_correction_bias",
         Dim::kOne, Dim::kExperts, Split::kNone, has_choice_bias},
    }));

}  // namespace

extern const Architecture kMinimaxM2;
constexpr Architecture kMinimaxM2 = {
    .names = kMinimaxM2Names,
    .model_types = kMinimaxM2Types,
    .prefix = "model.",
    .read_config = read_minimax_m2,
    .fields = kMinimaxM2Fields,
    .tensors = kMinimaxM2Tensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
