// Ling and Ring 1 and 1.5: Llama's attention with q, k and v in one matrix, and behind the first
// layers experts chosen by a softmax beside shared ones. Some divide each column of their head by
// its length. Source: configuration_bailing_moe.py and modeling_bailing_moe.py of the published
// models.
#include <fmt/format.h>

#include <array>
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

constexpr std::string_view kLingNormHead = "norm_head";

ModelConfig read_ling(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 30592,
                                                   .default_hidden_size = 1024,
                                                   .default_num_layers = 24,
                                                   .default_num_heads = 16,
                                                   .default_intermediate = 0,
                                                   .default_max_positions = 16384,
                                                   .default_norm_eps = 1e-5,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.attention_bias = config.boolean_or("use_qkv_bias", false);
  read_rope(config, model);
  read_experts(config,
               {.intermediate_size = "moe_intermediate_size",
                .normalises_name = "norm_topk_prob",
                .default_num_experts = 16,
                .default_top_k = 2,
                .default_intermediate = model.intermediate_size,
                .normalises = true},
               model);
  if (model.experts.route.top_k == 1) model.experts.route.normalises = false;
  read_shared_experts(config, 0, model);
  read_first_sparse_layer(config, 0, model);
  if (config.boolean_or(kLingNormHead, false)) model.head_division = HeadDivision::kColumns;
  if (model.head_division != HeadDivision::kNone && model.tied_embeddings) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: a head whose columns are divided by their lengths can't be tied "
                            "to the embedding",
                            config.path_of(kLingNormHead)));
  }
  return model;
}

constexpr auto kLing1Fields =
    join_fields(std::to_array<KnownField>({
                    read("use_qkv_bias"),
                    read("norm_head"),
                    read("num_experts"),
                    read("n_shared_experts"),
                    read("num_experts_per_tok"),
                    read("moe_intermediate_size"),
                    read("norm_topk_prob"),
                    read("first_k_dense_replace"),
                    harmless_if("use_bias", "[false]", "there are no biases of o and the MLP"),
                    harmless_if("use_sliding_window", "[false]", "every layer sees all tokens"),
                    harmless("sliding_window", "is read with use_sliding_window only"),
                    harmless("max_window_layers", "is read with use_sliding_window only"),
                    harmless("norm_softmax", kOnlyTraining),
                    harmless("output_dropout", kOnlyTraining),
                    harmless("output_router_logits", kTrainsRouter),
                }),
                kDecoderFields);

constexpr auto kLing1Aliases =
    std::to_array<FieldAlias>({{"num_shared_experts", "n_shared_experts"}});

constexpr auto kLing1Names = std::to_array<std::string_view>({"BailingMoeForCausalLM"});

constexpr auto kLing1Tensors = join_tensors(
    std::to_array<TensorSpec>({
        {Role::kTokenEmbedding, "model.word_embeddings.weight", Dim::kVocab, Dim::kHidden},
        {Role::kFinalNorm, "model.norm.weight", Dim::kOne, Dim::kHidden},
        {Role::kLmHead, "lm_head.weight", Dim::kVocab, Dim::kHidden, Split::kNone, has_own_head},
        {Role::kQkv, "model.layers.{layer}.attention.query_key_value.weight", Dim::kQkv,
         Dim::kHidden, Split::kRows},
        {Role::kQkvBias, "model.layers.{layer}.attention.query_key_value.bias", Dim::kOne,
         Dim::kQkv, Split::kRows, has_attention_bias},
        {Role::kO, "model.layers.{layer}.attention.dense.weight", Dim::kHidden, Dim::kQ,
         Split::kColumns},
    }),
    kLlamaNormTensors,
    kLlamaMlpTensors,
    kExpertTensors,
    kSharedExpertsTensors);

}  // namespace

extern const Architecture kLing1;
constexpr Architecture kLing1 = {
    .names = kLing1Names,
    .model_types = {},
    .borrowed_type = "bailing_moe",
    .prefix = "model.",
    .read_config = read_ling,
    .fields = kLing1Fields,
    .aliases = kLing1Aliases,
    .tensors = kLing1Tensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
