// Llama Nemotron (Super, Ultra, 51B), found by a search: Llama's block, of which a layer may lack
// attention or MLP, with KV heads and widths of its own.
// Source: configuration_decilm.py and modeling_decilm.py of the published models.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr std::string_view kBlocks = "block_configs";

// Of one block: 0 where it has none.
struct NasBlock {
  int32_t num_kv_heads = 0;
  int32_t intermediate_size = 0;
};

constexpr auto kNasAttentionFields = std::to_array<KnownField>({
    read_or_null("n_heads_in_group"),
    read("no_op"),
    harmless_if("replace_with_linear", "[false]", "attention is no matrix"),
    harmless_if("sparsify", "[]", "weights are whole"),
    harmless_if("num_sink_tokens", "[]", "there are no windows"),
    harmless_if("window_length", "[]", "there are no windows"),
    harmless_if("unshifted_sink", "[false]", "there are no windows"),
    harmless_if("use_prefill_window_in_sink_attention", "[false]", "there are no windows"),
    harmless_if("mamba", "[]", "layers carry no state"),
    harmless_if("llama4", "[]", "all tokens are seen"),
});

constexpr auto kNasFfnFields = std::to_array<KnownField>({
    read_or_null("ffn_mult"),
    read_or_null("intermediate_size"),
    read("no_op"),
    harmless_if("replace_with_linear", "[false]", "the MLP is not one matrix"),
    harmless_if("sparsify", "[]", "weights are whole"),
    harmless_if("gated", "[true]", "MLPs have a gate"),
    harmless_if("hidden_act", "[\"silu\"]", "gates are silu"),
    harmless_if("moe", "[]", "there are no experts"),
});

// Two thirds of so many times the stream, in steps of 256.
int64_t nas_intermediate(double ffn_mult, int64_t hidden_size) {
  constexpr int64_t kStep = 256;
  const auto size = static_cast<int64_t>(2.0 * ffn_mult * static_cast<double>(hidden_size) / 3.0);
  return (size + kStep - 1) / kStep * kStep;
}

NasBlock read_nas_block(const JsonReader& block, int64_t num_heads, int64_t hidden_size) {
  NasBlock out;
  const JsonReader attention = block.object("attention");
  refuse_unknown_fields(attention, kNasAttentionFields, {}, "DeciLMForCausalLM's attention");
  if (!attention.boolean_or("no_op", false)) {
    const int32_t in_group = read_size(attention, "n_heads_in_group", 1, kMaxHeads);
    if (num_heads % in_group != 0) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: {} heads can't be cut into groups of {} evenly",
                              attention.path_of("n_heads_in_group"), num_heads, in_group));
    }
    out.num_kv_heads = static_cast<int32_t>(num_heads / in_group);
  }
  const JsonReader ffn = block.object("ffn");
  refuse_unknown_fields(ffn, kNasFfnFields, {}, "DeciLMForCausalLM's ffn");
  if (!ffn.boolean_or("no_op", false)) {
    const int64_t size = ffn.has("intermediate_size")
                             ? ffn.integer("intermediate_size")
                             : nas_intermediate(read_positive(ffn, "ffn_mult", 1.0), hidden_size);
    out.intermediate_size = check_size(ffn, "intermediate_size", size, kMaxIntermediateSize);
  }
  return out;
}

std::vector<NasBlock> read_nas_blocks(const JsonReader& config) {
  const Json& list = config.json().at(std::string(kBlocks));
  if (!list.is_array() || list.empty()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected a list of layers", config.path_of(kBlocks)));
  }
  const int32_t num_heads = read_size(config, "num_attention_heads", 32, kMaxHeads);
  const int32_t hidden_size = read_size(config, "hidden_size", 4096, kMaxHiddenSize);
  std::vector<NasBlock> out;
  for (const Json& block : list) {
    const JsonReader reader(block, fmt::format("{}[{}]", config.path_of(kBlocks), out.size()));
    out.push_back(read_nas_block(reader, num_heads, hidden_size));
  }
  return out;
}

ModelConfig read_nemotron_nas(const JsonReader& given) {
  if (!given.has(kBlocks)) {
    throw Error(Code::kUnsupported, fmt::format("{}: missing; a DeciLM without it is another model",
                                                given.path_of(kBlocks)));
  }
  const std::vector<NasBlock> blocks = read_nas_blocks(given);
  NasBlock largest;
  for (const NasBlock& block : blocks) {
    largest.num_kv_heads = std::max(largest.num_kv_heads, block.num_kv_heads);
    largest.intermediate_size = std::max(largest.intermediate_size, block.intermediate_size);
  }
  Json json = given.json();
  json["num_key_value_heads"] = largest.num_kv_heads;
  json["intermediate_size"] = largest.intermediate_size;
  const JsonReader config(json, "");
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 128256});
  if (blocks.size() != model.layers.size()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected {} layers, as num_hidden_layers says, got {}",
                            config.path_of(kBlocks), model.num_layers, blocks.size()));
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto [num_kv_heads, intermediate_size] = blocks[i];
    LayerPlan& layer = model.layers[i];
    layer.has_attention = num_kv_heads > 0;
    layer.mlp = intermediate_size > 0 ? MlpKind::kDense : MlpKind::kNone;
    if (num_kv_heads != largest.num_kv_heads) layer.num_kv_heads = num_kv_heads;
    if (intermediate_size != largest.intermediate_size) layer.intermediate_size = intermediate_size;
  }
  read_rope(config, model);
  refuse_windows(config, model);
  return model;
}

constexpr auto kNasFields =
    join_fields(std::to_array<KnownField>({
                    read("block_configs"),
                    read_or_null("sliding_window"),
                    read_or_null("use_sliding_window"),
                    read_or_null("layer_types"),
                    harmless("intermediate_size", "block_configs says it"),
                    harmless("num_key_value_heads", "block_configs says it"),
                    harmless_if("attention_bias", "[false]", "attention has no biases"),
                    harmless_if("mlp_bias", "[false]", "MLPs have no biases"),
                }),
                kDecoderFields);

constexpr auto kNasNames = std::to_array<std::string_view>({"DeciLMForCausalLM"});
constexpr auto kNasTypes = std::to_array<std::string_view>({"nemotron-nas", "deci"});

constexpr bool attends(const ModelConfig& config, int32_t layer) {
  return config.layers[static_cast<size_t>(layer)].has_attention;
}

constexpr auto kNasTensors =
    join_tensors(kLlamaOuterTensors,
                 std::to_array<TensorSpec>({
                     {Role::kAttentionNorm, "model.layers.{layer}.input_layernorm.weight",
                      Dim::kOne, Dim::kHidden, Split::kNone, attends},
                     {Role::kQ, "model.layers.{layer}.self_attn.q_proj.weight", Dim::kQ,
                      Dim::kHidden, Split::kRows, attends},
                     {Role::kK, "model.layers.{layer}.self_attn.k_proj.weight", Dim::kKv,
                      Dim::kHidden, Split::kRows, attends},
                     {Role::kV, "model.layers.{layer}.self_attn.v_proj.weight", Dim::kKv,
                      Dim::kHidden, Split::kRows, attends},
                     {Role::kO, "model.layers.{layer}.self_attn.o_proj.weight", Dim::kHidden,
                      Dim::kQ, Split::kColumns, attends},
                     {Role::kMlpNorm, "model.layers.{layer}.post_attention_layernorm.weight",
                      Dim::kOne, Dim::kHidden, Split::kNone, has_dense_mlp},
                 }),
                 kLlamaMlpTensors);

}  // namespace

extern const Architecture kNemotronNas;
constexpr Architecture kNemotronNas = {
    .names = kNasNames,
    .model_types = kNasTypes,
    .prefix = "model.",
    .read_config = read_nemotron_nas,
    .fields = kNasFields,
    .tensors = kNasTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
