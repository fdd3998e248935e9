#include "engine/runtime/drafters/eagle_layer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/known_fields.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/llama_fields.h"
#include "engine/model/rope.h"
#include "engine/model/tensor_table.h"
#include "engine/runtime/drafters/head_tensors.h"

namespace tgi {
namespace {

constexpr std::string_view kLayerIds = "eagle_aux_hidden_state_layer_ids";
constexpr std::string_view kPrefix = "model.";
constexpr std::string_view kTokenOffsets = "d2t";
constexpr std::string_view kOthersDraft = "says how others draft with it";
constexpr std::string_view kByPython = "is of the class that wrote it";

constexpr auto kEagleFields = std::to_array<KnownField>({
    read_or_null("draft_vocab_size"),
    read_or_null("target_hidden_size"),
    read_or_null("eagle_config"),
    read_or_null(kLayerIds),
    read_or_null("norm_before_residual"),
    read_or_null("norm_before_fc"),
    read_or_null("norm_output"),
    read_or_null("tie_word_embeddings"),
    read_or_null("speculators_model_type"),
    read_or_null("transformer_layer_config"),
    harmless_if("fc_norm", "[false]", "each hidden state would have a norm of its own"),
    harmless_if("quantization_config", "[]", "a drafter's layer is read as f32, bf16 or f16"),
    harmless("speculators_config", kOthersDraft),
    harmless("speculators_version", "says what wrote the file"),
    harmless("embed_requires_grad", kOnlyTraining),
    harmless("has_no_defaults_at_init", kByPython),
    harmless("base_model_ep_plan", kByPython),
    harmless("base_model_tp_plan", kByPython),
    harmless("base_model_pp_plan", kByPython),
});

constexpr auto kLayerFields = join_fields(
    kLlamaBlockFields,
    std::to_array<KnownField>({
        read_or_null("max_window_layers"),
        harmless_if("qkv_bias", "[false]", "attention_bias says which biases there are"),
        harmless_if("bias", "[false]", "attention_bias and mlp_bias say which biases there are"),
        harmless_if("quantization_config", "[]", "a drafter's layer is read as f32, bf16 or f16"),
    }));

constexpr auto kPlainFields = join_fields(kEagleFields, kLayerFields);

constexpr auto kInnerFields = std::to_array<KnownField>({
    read_or_null(kLayerIds),
    harmless_if("use_aux_hidden_state", "[true]", "hidden states of the model are what it reads"),
    harmless_if("use_input_layernorm_in_first_layer", "[true]", "both are normed"),
    harmless_if("use_last_layernorm", "[true]", "what is drawn from is normed"),
    harmless_if("use_mtp_layernorm", "[false]", "hidden states go to fc as they are"),
});

constexpr auto kLayerTensors = join_tensors(kLlamaNormTensors,
                                            kLlamaQkvBiasTensors,
                                            kLlamaOTensors,
                                            kLlamaOBiasTensors,
                                            kOptionalQkNormTensors,
                                            kLlamaMlpTensors,
                                            kLlamaMlpBiasTensors);
constexpr auto kWideTensors = std::to_array<TensorSpec>({
    {Role::kQ, "model.layers.{layer}.self_attn.q_proj.weight", Dim::kQ, Dim::kAttentionInput},
    {Role::kK, "model.layers.{layer}.self_attn.k_proj.weight", Dim::kKv, Dim::kAttentionInput},
    {Role::kV, "model.layers.{layer}.self_attn.v_proj.weight", Dim::kKv, Dim::kAttentionInput},
    {Role::kHiddenNorm, "model.layers.0.hidden_norm.weight", Dim::kOne, Dim::kHidden},
    {Role::kEmbeddingIn, "model.fc.weight", Dim::kHidden, Dim::kEmbedding},
    {Role::kFinalNorm, "model.norm.weight", Dim::kOne, Dim::kHidden},
});
constexpr TensorSpec kFcNorm = {Role::kEmbeddingNorm, "model.input_norm.weight", Dim::kOne,
                                Dim::kEmbedding};
constexpr TensorSpec kOwnEmbedding = {Role::kTokenEmbedding, "model.embed_tokens.weight",
                                      Dim::kVocab, Dim::kHidden};
constexpr TensorSpec kOwnHead = {Role::kLmHead, "lm_head.weight", Dim::kHeadVocab, Dim::kHidden};

// The second says which of the model's tokens d2t has; the third is computed.
constexpr auto kNotWeights =
    std::to_array<std::string_view>({kTokenOffsets, "t2d", ".rotary_emb.inv_freq"});

constexpr auto kRenames =
    std::to_array<TensorRename>({{.stored = "midlayer.", .usual = "layers.0."}});

bool has(const Checkpoint* tensors, const TensorSpec& spec) {
  return tensors != nullptr && find_by_any_name(*tensors, spec.name, kPrefix) != nullptr;
}

// The layers before which hidden states are read; nothing where the field does not say.
std::vector<int32_t> read_layer_ids(const JsonReader& config, int32_t layers_behind) {
  std::vector<int32_t> out;
  if (!config.has(kLayerIds)) return out;
  const auto fail = [&] {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected a list of layers' numbers", config.path_of(kLayerIds)));
  };
  const Json& list = config.json().at(kLayerIds);
  if (!list.is_array()) fail();
  for (const Json& each : list) {
    if (!each.is_number_integer()) fail();
    const auto id = each.get<int64_t>();
    if (id < 0 || id >= kMaxLayers) fail();
    out.push_back(static_cast<int32_t>(id) + layers_behind);
  }
  return out;
}

void check_kind(const JsonReader& config) {
  const std::string kind = config.string_or("speculators_model_type", "eagle3");
  if (kind == "eagle3") return;
  throw Error(Code::kUnsupported,
              fmt::format("{}: '{}' is not supported; of speculators only eagle3 is",
                          config.path_of("speculators_model_type"), kind));
}

ModelConfig read_layer(const JsonReader& config) {
  const std::string type = config.string_or("model_type", "llama");
  const bool is_qwen3 = type == "qwen3";
  if (!is_qwen3 && type != "llama") {
    throw Error(Code::kUnsupported,
                fmt::format("{}: the layer of an EAGLE-3 drafter is known as llama has it and as "
                            "qwen3 has it, not '{}'",
                            config.path_of("model_type"), type));
  }
  ModelConfig out = read_decoder_config(config, {.default_num_layers = 1});
  if (out.num_layers != 1) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: EAGLE-3 drafters with one layer are supported, not with {}",
                            config.path_of("num_hidden_layers"), out.num_layers));
  }
  out.attention_bias = config.boolean_or("attention_bias", false);
  out.mlp_bias = config.boolean_or("mlp_bias", false);
  out.has_qk_norm = is_qwen3;
  read_rope(config, out);
  if (is_qwen3) {
    read_windows(config, {.by_switch = true}, out);
  } else {
    refuse_windows(config, out);
  }
  return out;
}

}  // namespace

EagleLayer::EagleLayer(const Json& config,
                       const std::string& file,
                       const LoadedConfig& model,
                       const Checkpoint* tensors) {
  if (has_streams(model.config)) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: the model has several streams of hidden states, of which none "
                            "are reported to a drafter",
                            model.config.architecture));
  }
  read(config, file, model);
  list_tensors(model, tensors);
}

void EagleLayer::read(const Json& config, const std::string& file, const LoadedConfig& model) {
  const JsonReader outer(config, "");
  const bool is_nested = outer.has("transformer_layer_config");
  const JsonReader inner = is_nested ? outer.object("transformer_layer_config") : outer;
  ModelConfig layer;
  int32_t draft_vocab_size = model.config.vocab_size;
  try {
    constexpr std::string_view kOwner = "an EAGLE-3 drafter";
    constexpr std::string_view kEffect = "what is drafted";
    check_kind(outer);
    if (is_nested) {
      refuse_unknown_fields(outer, kEagleFields, generic_fields(), kOwner, kEffect);
      refuse_unknown_fields(inner, kLayerFields, generic_fields(), kOwner, kEffect);
    } else {
      refuse_unknown_fields(outer, kPlainFields, generic_fields(), kOwner, kEffect);
    }
    layer = read_layer(inner);
    draft_vocab_size = read_size(outer, "draft_vocab_size", draft_vocab_size, kMaxVocabSize);
    begins_normed_ = outer.boolean_or("norm_before_residual", false);
    norms_fc_input_ = outer.boolean_or("norm_before_fc", false);
    hands_on_normed_ = outer.boolean_or("norm_output", false);
    read_layers(outer, model.config.num_layers);
  } catch (const Error& error) {
    throw error.in(file);
  }
  check_drafted_size(inner, file, "vocab_size", model.config.vocab_size);
  const bool has_other_size = outer.has("target_hidden_size");
  check_drafted_size(has_other_size ? outer : inner, file,
                     has_other_size ? "target_hidden_size" : "hidden_size",
                     model.config.hidden_size);
  if (draft_vocab_size > model.config.vocab_size) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: draft_vocab_size is {}, but the model that it is to draft for has "
                            "{} tokens",
                            file, draft_vocab_size, model.config.vocab_size));
  }

  layer.architecture = "EAGLE-3";
  layer.vocab_size = draft_vocab_size;
  layer.tied_embeddings = false;
  // It was trained on texts of max_position_embeddings; longer ones are drafted for all the same.
  layer.max_positions = model.config.max_positions;
  config_ = layer;
  stored_.config = std::move(layer);
  stored_.config.vocab_size = model.config.vocab_size;
  stored_.config.head_vocab_size = draft_vocab_size;
  stored_.config.attention_input_size = 2 * config_.hidden_size;
  stored_.config.embedding_size = reported_.cols(model.config.hidden_size);
  stored_.json = inner.json();
  stored_.weight_format = &find_weight_format(inner);
}

// EAGLE's own names no layers. eagle_config, as SpecForge and sglang read it, names those whose
// output is read; the field beside it, as speculators and vLLM do, those before which it is.
void EagleLayer::read_layers(const JsonReader& config, int32_t num_layers) {
  std::vector<int32_t>& layers = reported_.before_layers;
  int32_t layers_behind = 0;
  layers = read_layer_ids(config, layers_behind);
  if (config.has("eagle_config")) {
    const JsonReader own = config.object("eagle_config");
    refuse_unknown_fields(own, kInnerFields, {}, "an EAGLE-3 drafter", "what is drafted");
    if (layers.empty()) {
      layers_behind = 1;
      layers = read_layer_ids(own, layers_behind);
    }
  }
  const bool is_named = !layers.empty();
  if (!is_named) layers = {2, num_layers / 2, num_layers - 3};
  if (layers.front() >= 0 && layers.back() < num_layers &&
      std::ranges::adjacent_find(layers, std::greater_equal<>()) == layers.end()) {
    return;
  }
  if (is_named) {
    for (int32_t& layer : layers) layer -= layers_behind;
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected rising numbers of the model's layers, 0 to {}, got {}: "
                            "was it made for another model?",
                            kLayerIds, num_layers - 1 - layers_behind, fmt::join(layers, ", ")));
  }
  throw Error(Code::kInvalidArgument,
              fmt::format("the model has {} layers, too few for an EAGLE-3 drafter that does not "
                          "name those that it reads ({}): expected 7 at least",
                          num_layers, kLayerIds));
}

void EagleLayer::list_tensors(const LoadedConfig& model, const Checkpoint* tensors) {
  std::ranges::copy(kLayerTensors, std::back_inserter(specs_));
  std::ranges::copy(kWideTensors, std::back_inserter(specs_));
  if (norms_fc_input_) specs_.push_back(kFcNorm);
  // The model's table serves where it is as wide, its head where it draws the same tokens.
  const bool is_as_wide = config_.hidden_size == embedding_cols(model.config) &&
                          config_.hidden_size == model.config.hidden_size;
  if (!is_as_wide || has(tensors, kOwnEmbedding)) specs_.push_back(kOwnEmbedding);
  const bool draws_same =
      is_as_wide && config_.vocab_size == model.config.vocab_size && !has_matrix_before_head(model);
  if (!draws_same || has(tensors, kOwnHead)) specs_.push_back(kOwnHead);

  architecture_.prefix = kPrefix;
  architecture_.tensors = specs_;
  architecture_.ignored = kNotWeights;
  architecture_.renames = kRenames;
  stored_.architecture = &architecture_;
  stored_.text = &architecture_;
}

std::vector<int32_t> EagleLayer::token_ids(const Checkpoint& tensors, int32_t vocab_size) const {
  const StoredTensor* const offsets = find_by_any_name(tensors, kTokenOffsets, kPrefix);
  const auto fail = [&](const std::string& what) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: {}", kTokenOffsets, what));
  };
  const auto count = static_cast<size_t>(config_.vocab_size);
  if (offsets == nullptr) {
    if (config_.vocab_size == vocab_size) return {};
    fail(
        fmt::format("missing: the drafter draws {} of the model's {} tokens, and does not say "
                    "which",
                    count, vocab_size));
  }
  const bool is_wide = offsets->dtype_name == "I64";
  if (!is_wide && offsets->dtype_name != "I32") {
    fail(fmt::format("expected elements of the type I64 or I32, got {}", offsets->dtype_name));
  }
  if (offsets->shape != std::vector<int64_t>{config_.vocab_size}) {
    fail(fmt::format("expected {} numbers, one for each token that is drawn, got {}", count,
                     shape_text(offsets->shape)));
  }
  const std::byte* const data = tensors.bytes(*offsets).data();
  std::vector<int32_t> out(count);
  for (size_t i = 0; i < count; ++i) {
    int64_t offset = 0;
    int32_t narrow = 0;
    if (is_wide) {
      std::memcpy(&offset, data + i * sizeof offset, sizeof offset);
    } else {
      std::memcpy(&narrow, data + i * sizeof narrow, sizeof narrow);
      offset = narrow;
    }
    const auto drawn = static_cast<int64_t>(i);
    if (offset < -drawn || offset >= vocab_size - drawn) {
      fail(fmt::format("entry {} is {}: there is no such token, as the model has {}", i, offset,
                       vocab_size));
    }
    out[i] = static_cast<int32_t>(drawn + offset);
  }
  tensors.release(*offsets);
  std::vector<int32_t> rising = out;
  std::ranges::sort(rising);
  const auto twice = std::ranges::adjacent_find(rising);
  if (twice != rising.end()) fail(fmt::format("two entries lead to the token {}", *twice));
  return out;
}

}  // namespace tgi
