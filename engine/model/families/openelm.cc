// OpenELM: Llama's block with norms of the heads of q and k, and in each layer another number of
// heads and another width of the MLP. Source: configuration_openelm.py and modeling_openelm.py of
// the published models, https://arxiv.org/abs/2404.14619.
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

constexpr std::string_view kElmHeads = "num_query_heads";
constexpr std::string_view kElmKvHeads = "num_kv_heads";
constexpr std::string_view kElmWidths = "ffn_multipliers";

[[noreturn]] void refuse_elm(const JsonReader& config,
                             std::string_view key,
                             const std::string& what) {
  throw Error(Code::kInvalidArgument, fmt::format("{}: {}", config.path_of(key), what));
}

// One number for each layer, each above 0 and below `limit`.
std::vector<double> read_elm_list(const JsonReader& config, std::string_view key, double limit) {
  const int32_t num_layers = read_size(config, "num_transformer_layers", 12, kMaxLayers);
  if (!config.has(key)) refuse_elm(config, key, "missing; expected a list of one number per layer");
  const Json& list = config.json().at(std::string(key));
  if (!list.is_array() || list.size() != static_cast<size_t>(num_layers)) {
    refuse_elm(config, key,
               fmt::format("expected {} entries, one per layer, got {}", num_layers,
                           list.is_array() ? fmt::format("{}", list.size()) : list.dump()));
  }
  std::vector<double> out;
  for (const Json& entry : list) {
    const double value = entry.is_number() ? entry.get<double>() : 0.0;
    if (!(value > 0.0 && value <= limit)) {
      refuse_elm(config, key,
                 fmt::format("entry {}: expected a number above 0, at most {}, got {}", out.size(),
                             limit, entry.dump()));
    }
    out.push_back(value);
  }
  return out;
}

std::vector<int32_t> read_elm_heads(const JsonReader& config, std::string_view key) {
  std::vector<int32_t> out;
  for (const double value : read_elm_list(config, key, static_cast<double>(kMaxHeads))) {
    const auto count = static_cast<int32_t>(value);
    if (static_cast<double>(count) != value) {
      refuse_elm(config, key,
                 fmt::format("entry {}: expected a whole number, got {}", out.size(), value));
    }
    out.push_back(count);
  }
  return out;
}

// The multiple of `step` that is nearest to so many times the stream, unless it is less than nine
// tenths of that.
std::vector<int32_t> read_elm_widths(const JsonReader& config) {
  const int32_t hidden_size = read_size(config, "model_dim", 2048, kMaxHiddenSize);
  const int64_t step = read_size(config, "ffn_dim_divisor", 256, kMaxIntermediateSize);
  std::vector<int32_t> out;
  for (const double times : read_elm_list(config, kElmWidths, 1024.0)) {
    const double wanted = times * hidden_size;
    int64_t width = static_cast<int64_t>(wanted + static_cast<double>(step) / 2.0) / step * step;
    width = std::max(width, step);
    if (static_cast<double>(width) < 0.9 * wanted) width += step;
    out.push_back(check_size(config, kElmWidths, width, kMaxIntermediateSize));
  }
  return out;
}

ModelConfig read_openelm(const JsonReader& given) {
  const std::vector<int32_t> heads = read_elm_heads(given, kElmHeads);
  const std::vector<int32_t> kv_heads = read_elm_heads(given, kElmKvHeads);
  const std::vector<int32_t> widths = read_elm_widths(given);
  Json json = given.json();
  json[std::string(kElmHeads)] = std::ranges::max(heads);
  json[std::string(kElmKvHeads)] = std::ranges::max(kv_heads);
  json["intermediate_size"] = std::ranges::max(widths);
  const JsonReader config = given.in_place(json);
  ModelConfig model = read_decoder_config(config, {.hidden_size = "model_dim",
                                                   .num_layers = "num_transformer_layers",
                                                   .num_heads = kElmHeads,
                                                   .num_kv_heads = kElmKvHeads,
                                                   .max_positions = "max_context_length",
                                                   .norm_eps = "",
                                                   .activation = "activation_fn_name",
                                                   .default_hidden_size = 2048,
                                                   .default_num_layers = 12,
                                                   .default_head_dim = 128});
  for (size_t i = 0; i < model.layers.size(); ++i) {
    if (heads[i] % kv_heads[i] != 0) {
      refuse_elm(given, kElmKvHeads,
                 fmt::format("entry {}: {} heads can't be shared among {} KV heads evenly", i,
                             heads[i], kv_heads[i]));
    }
    LayerPlan& layer = model.layers[i];
    if (heads[i] != model.num_heads) layer.num_heads = heads[i];
    if (kv_heads[i] != model.num_kv_heads) layer.num_kv_heads = kv_heads[i];
    if (widths[i] != model.intermediate_size) layer.intermediate_size = widths[i];
  }
  model.tied_embeddings = given.boolean_or("share_input_output_layers", true);
  model.has_qk_norm = given.boolean_or("normalize_qk_projections", true);
  read_rope(given, model, {.theta_name = "rope_freq_constant"});
  return model;
}

constexpr auto kElmFields = std::to_array<KnownField>({
    read("vocab_size"),
    read("model_dim"),
    read("num_transformer_layers"),
    read("num_query_heads"),
    read("num_kv_heads"),
    read("head_dim"),
    read("ffn_multipliers"),
    read("ffn_dim_divisor"),
    read("max_context_length"),
    read("activation_fn_name"),
    read("normalize_qk_projections"),
    read("share_input_output_layers"),
    read("rope_freq_constant"),
    harmless_if("ffn_with_glu", "[true]", "MLPs have a gate"),
    harmless_if("normalization_layer_name", R"(["rms_norm"])", "norms are RMSNorm"),
    harmless("num_gqa_groups", "num_kv_heads says what it makes"),
    harmless("qkv_multipliers", "num_query_heads says what it makes"),
    harmless("rope_max_length", "positions are turned as far as the context goes"),
});

constexpr auto kElmNames = std::to_array<std::string_view>({"OpenELMForCausalLM"});
constexpr auto kElmTypes = std::to_array<std::string_view>({"openelm"});

constexpr auto kElmTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "transformer.token_embeddings.weight", Dim::kVocab, Dim::kHidden},
    {Role::kFinalNorm, "transformer.norm.weight", Dim::kOne, Dim::kHidden},
    {Role::kLmHead, "lm_head.weight", Dim::kVocab, Dim::kHidden, Split::kNone, has_own_head},
    {Role::kAttentionNorm, "transformer.layers.{layer}.attn_norm.weight", Dim::kOne, Dim::kHidden},
    {Role::kMlpNorm, "transformer.layers.{layer}.ffn_norm.weight", Dim::kOne, Dim::kHidden},
    {Role::kQkv, "transformer.layers.{layer}.attn.qkv_proj.weight", Dim::kQkv, Dim::kHidden,
     Split::kRows},
    {Role::kQNorm, "transformer.layers.{layer}.attn.q_norm.weight", Dim::kOne, Dim::kHeadDim,
     Split::kNone, has_qk_norm},
    {Role::kKNorm, "transformer.layers.{layer}.attn.k_norm.weight", Dim::kOne, Dim::kHeadDim,
     Split::kNone, has_qk_norm},
    {Role::kO, "transformer.layers.{layer}.attn.out_proj.weight", Dim::kHidden, Dim::kQ,
     Split::kColumns},
    {Role::kGateUp, "transformer.layers.{layer}.ffn.proj_1.weight", Dim::kGateUp, Dim::kHidden,
     Split::kRows},
    {Role::kDown, "transformer.layers.{layer}.ffn.proj_2.weight", Dim::kHidden, Dim::kIntermediate,
     Split::kColumns},
});

}  // namespace

extern const Architecture kOpenElm;
constexpr Architecture kOpenElm = {
    .names = kElmNames,
    .model_types = kElmTypes,
    .prefix = "transformer.",
    .read_config = read_openelm,
    .fields = kElmFields,
    .tensors = kElmTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
