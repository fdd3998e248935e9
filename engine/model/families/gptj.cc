// GPT-J: GPT-2's names, pairs of neighbours rotated in a part of the head, branches in parallel
// behind one norm, a bias of the head. CodeGen is the same with q, v and k in one matrix, as four
// devices had it that it was trained on. Source: models/gptj and codegen in `transformers`.
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/gpt2_names.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr auto kGptjFields =
    join_fields(kGpt2Fields,
                std::to_array<KnownField>({
                    read("rotary_dim"),
                    harmless_if("rotary", "[true]", "positions are rotary embeddings"),
                    harmless_if("scale_attn_weights", "[true]", "scores are always scaled"),
                    harmless_if("rope_parameters", "[]", "rotary_dim is all that can be said"),
                }));

ModelConfig read_gptj(const JsonReader& config) {
  DecoderFields fields = kGpt2Decoder;
  fields.default_vocab_size = 50400;
  fields.default_hidden_size = 4096;
  fields.default_num_layers = 28;
  fields.default_num_heads = 16;
  fields.default_max_positions = 2048;
  fields.default_tied = false;
  ModelConfig model = read_decoder_config(config, fields);
  model.norm_kind = NormKind::kLayer;
  model.gated_mlp = false;
  model.parallel_branches = true;
  model.shares_branch_norm = true;
  const int32_t columns = read_size(config, "rotary_dim", 64, model.head_dim);
  if (columns % 2 != 0) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: expected an even number, got {}",
                                                    config.path_of("rotary_dim"), columns));
  }
  read_rope(config, model,
            {.theta_name = "", .interleaved = true, .takes_partial = true, .columns = columns});
  return model;
}

ModelConfig read_codegen(const JsonReader& config) {
  ModelConfig model = read_gptj(config);
  if (model.num_heads * model.head_dim % 4 != 0) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected a multiple of 4, got {}", config.path_of("n_embd"),
                            model.num_heads * model.head_dim));
  }
  return model;
}

constexpr auto kGptjNames = std::to_array<std::string_view>({"GPTJForCausalLM"});
constexpr auto kGptjTypes = std::to_array<std::string_view>({"gptj"});

constexpr auto kCodeGenNames = std::to_array<std::string_view>({"CodeGenForCausalLM"});
constexpr auto kCodeGenTypes = std::to_array<std::string_view>({"codegen"});

constexpr auto kSharedTensors =
    join_tensors(kGpt2OuterTensors,
                 std::to_array<TensorSpec>({
                     {Role::kLmHeadBias, "lm_head.bias", Dim::kOne, Dim::kVocab},
                     {Role::kO, "transformer.h.{layer}.attn.out_proj.weight", Dim::kHidden, Dim::kQ,
                      Split::kColumns},
                     {Role::kUp, "transformer.h.{layer}.mlp.fc_in.weight", Dim::kIntermediate,
                      Dim::kHidden, Split::kRows},
                     {Role::kUpBias, "transformer.h.{layer}.mlp.fc_in.bias", Dim::kOne,
                      Dim::kIntermediate, Split::kRows},
                     {Role::kDown, "transformer.h.{layer}.mlp.fc_out.weight", Dim::kHidden,
                      Dim::kIntermediate, Split::kColumns},
                     {Role::kDownBias, "transformer.h.{layer}.mlp.fc_out.bias", Dim::kOne,
                      Dim::kHidden, Split::kColumns},
                 }));

constexpr auto kGptjTensors = join_tensors(
    kSharedTensors,
    std::to_array<TensorSpec>({
        {Role::kQ, "transformer.h.{layer}.attn.q_proj.weight", Dim::kQ, Dim::kHidden, Split::kRows},
        {Role::kK, "transformer.h.{layer}.attn.k_proj.weight", Dim::kKv, Dim::kHidden,
         Split::kRows},
        {Role::kV, "transformer.h.{layer}.attn.v_proj.weight", Dim::kKv, Dim::kHidden,
         Split::kRows},
    }));

constexpr auto kCodeGenTensors = join_tensors(
    kSharedTensors,
    std::to_array<TensorSpec>({{Role::kQkv, "transformer.h.{layer}.attn.qkv_proj.weight",
                                Dim::kQvkByQuarter, Dim::kHidden, Split::kRows}}));
constexpr auto kCodeGenIgnored =
    std::to_array<std::string_view>({".attn.bias", ".attn.masked_bias", ".attn.causal_mask"});

}  // namespace

extern const Architecture kGptJ, kCodeGen;
constexpr Architecture kGptJ = {
    .names = kGptjNames,
    .model_types = kGptjTypes,
    .prefix = "transformer.",
    .read_config = read_gptj,
    .fields = kGptjFields,
    .aliases = kGpt2Aliases,
    .tensors = kGptjTensors,
    .ignored = kGpt2Ignored,
};

constexpr Architecture kCodeGen = {
    .names = kCodeGenNames,
    .model_types = kCodeGenTypes,
    .prefix = "transformer.",
    .read_config = read_codegen,
    .fields = kGptjFields,
    .aliases = kGpt2Aliases,
    .tensors = kCodeGenTensors,
    .ignored = kCodeGenIgnored,
};

}  // namespace tgi
