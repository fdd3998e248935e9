// GPT-Neo: GPT-2's outer names, scores that are not scaled, windows in the layers that the config
// names, and no biases of q, k and v. Source: models/gpt_neo in `transformers`.
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/gpt2_names.h"
#include "engine/model/known_fields.h"

namespace tgi {
namespace {

constexpr DecoderFields kGptNeoDecoder = {
    .num_layers = "num_layers",
    .num_heads = "num_heads",
    .num_kv_heads = "",
    .head_dim = "",
    .norm_eps = "layer_norm_epsilon",
    .activation = "activation_function",
    .default_vocab_size = 50257,
    .default_hidden_size = 2048,
    .default_num_layers = 24,
    .default_num_heads = 16,
    .default_intermediate = 0,
    .default_norm_eps = 1e-5,
    .default_activation = "gelu_new",
    .default_tied = true,
    .default_bos = 50256,
    .default_eos = 50256,
};

// attention_types: runs of kinds of layers, [[["global", "local"], 12]]: both by turns, 12 times.
std::vector<std::string> read_layer_kinds(const JsonReader& config, const ModelConfig& model) {
  const Json runs = config.has("attention_types") ? config.json().at("attention_types")
                                                  : Json::parse(R"([[["global", "local"], 12]])");
  const auto refuse = [&](const std::string& problem) {
    throw Error(Code::kInvalidArgument, config.path_of("attention_types") + ": " + problem);
  };
  std::vector<std::string> kinds;
  if (!runs.is_array()) refuse(fmt::format("expected a list, got {}", runs.type_name()));
  for (const Json& run : runs) {
    if (!run.is_array() || run.size() != 2 || !run[0].is_array() || run[0].empty() ||
        !run[1].is_number_integer()) {
      refuse(R"(expected runs like [["global", "local"], 12], got )" + run.dump());
    }
    const auto times = run[1].get<int64_t>();
    for (int64_t i = 0; i < times && std::ssize(kinds) <= model.num_layers; ++i) {
      for (const Json& kind : run[0]) {
        if (kind != "global" && kind != "local")
          refuse("expected global or local, got " + kind.dump());
        kinds.push_back(kind.get<std::string>());
      }
    }
  }
  if (std::ssize(kinds) != model.num_layers) {
    refuse(fmt::format("expected as many as the {} layers, got {}{}", model.num_layers,
                       kinds.size(), std::ssize(kinds) > model.num_layers ? " or more" : ""));
  }
  // The same once more; a file where they differ says two things.
  if (config.has("attention_layers") && config.strings_or_empty("attention_layers") != kinds) {
    refuse("says other layers than attention_layers; leave one of them");
  }
  return kinds;
}

ModelConfig read_gpt_neo(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, kGptNeoDecoder);
  model.norm_kind = NormKind::kLayer;
  model.gated_mlp = false;
  model.learned_positions = true;
  model.attention_scale = 1.0F;
  const int32_t window = read_size(config, "window_size", 256, kMaxPositions);
  const std::vector<std::string> kinds = read_layer_kinds(config, model);
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] == "local") model.layers[i].sliding_window = window;
  }
  return model;
}

constexpr auto kGptNeoFields = std::to_array<KnownField>({
    read("vocab_size"),
    read("hidden_size"),
    read("num_layers"),
    read("num_heads"),
    read_or_null("intermediate_size"),
    read("max_position_embeddings"),
    read("window_size"),
    read_or_null("attention_types"),
    read("layer_norm_epsilon"),
    read("activation_function"),
    read("tie_word_embeddings"),
    harmless("attention_layers", "attention_types says it, and both have to agree"),
    harmless("embed_dropout", "is used while a model is trained"),
    harmless("summary_type", kSummaryFields),
    harmless("summary_use_proj", kSummaryFields),
    harmless("summary_activation", kSummaryFields),
    harmless("summary_proj_to_labels", kSummaryFields),
    harmless("summary_first_dropout", kSummaryFields),
});

constexpr auto kGptNeoAliases = std::to_array<FieldAlias>({
    {"num_attention_heads", "num_heads"},
    {"num_hidden_layers", "num_layers"},
});

constexpr auto kGptNeoNames = std::to_array<std::string_view>({"GPTNeoForCausalLM"});
constexpr auto kGptNeoTypes = std::to_array<std::string_view>({"gpt_neo"});

constexpr auto kGptNeoTensors = join_tensors(
    kGpt2OuterTensors,
    std::to_array<TensorSpec>({
        {Role::kPositionEmbedding, "transformer.wpe.weight", Dim::kPositions, Dim::kHidden},
        {Role::kQ, "transformer.h.{layer}.attn.attention.q_proj.weight", Dim::kQ, Dim::kHidden,
         Split::kRows},
        {Role::kK, "transformer.h.{layer}.attn.attention.k_proj.weight", Dim::kKv, Dim::kHidden,
         Split::kRows},
        {Role::kV, "transformer.h.{layer}.attn.attention.v_proj.weight", Dim::kKv, Dim::kHidden,
         Split::kRows},
        {Role::kO, "transformer.h.{layer}.attn.attention.out_proj.weight", Dim::kHidden, Dim::kQ,
         Split::kColumns},
        {Role::kOBias, "transformer.h.{layer}.attn.attention.out_proj.bias", Dim::kOne,
         Dim::kHidden, Split::kColumns},
        {Role::kMlpNorm, "transformer.h.{layer}.ln_2.weight", Dim::kOne, Dim::kHidden},
        {Role::kMlpNormBias, "transformer.h.{layer}.ln_2.bias", Dim::kOne, Dim::kHidden},
        {Role::kUp, "transformer.h.{layer}.mlp.c_fc.weight", Dim::kIntermediate, Dim::kHidden,
         Split::kRows},
        {Role::kUpBias, "transformer.h.{layer}.mlp.c_fc.bias", Dim::kOne, Dim::kIntermediate,
         Split::kRows},
        {Role::kDown, "transformer.h.{layer}.mlp.c_proj.weight", Dim::kHidden, Dim::kIntermediate,
         Split::kColumns},
        {Role::kDownBias, "transformer.h.{layer}.mlp.c_proj.bias", Dim::kOne, Dim::kHidden,
         Split::kColumns},
    }));

// Causal masks that old checkpoints carry as buffers.
constexpr auto kGptNeoIgnored =
    std::to_array<std::string_view>({".attn.attention.bias", ".attn.attention.masked_bias"});

}  // namespace

extern const Architecture kGptNeo;
constexpr Architecture kGptNeo = {
    .names = kGptNeoNames,
    .model_types = kGptNeoTypes,
    .prefix = "transformer.",
    .read_config = read_gpt_neo,
    .fields = kGptNeoFields,
    .aliases = kGptNeoAliases,
    .tensors = kGptNeoTensors,
    .ignored = kGptNeoIgnored,
};

}  // namespace tgi
