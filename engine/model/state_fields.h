// What the readers of families with layers that carry a state share: which layers those are, and
// the sizes of Mamba's.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/model/known_fields.h"
#include "engine/model/model_config.h"

namespace tgi {

constexpr bool has_state_in_bias(const ModelConfig& config, int32_t /*layer*/) {
  return config.state.has_in_bias;
}
constexpr bool has_state_out_bias(const ModelConfig& config, int32_t /*layer*/) {
  return config.state.has_out_bias;
}
constexpr bool has_conv_bias(const ModelConfig& config, int32_t /*layer*/) {
  return config.state.has_conv_bias;
}
constexpr bool has_state_norm(const ModelConfig& config, int32_t /*layer*/) {
  return config.state.has_norm;
}
constexpr bool has_mixer(const ModelConfig& config, int32_t layer) {
  const LayerPlan& plan = config.layers[static_cast<size_t>(layer)];
  return plan.has_attention || plan.has_state;
}

// What a list with an entry for each layer calls them.
struct MixerNames {
  std::string_view attention;
  std::string_view state;
  // (optional) What files before transformers 5.24 call them.
  std::string_view old_attention{};
  std::string_view old_state{};
};

// Throws kInvalidArgument for a list of another length, kUnsupported for another name.
void read_mixer_types(const JsonReader& config,
                      std::string_view key,
                      const MixerNames& names,
                      ModelConfig& model);

// From a list of the numbers of the layers with attention; without the field all have it. Throws
// kInvalidArgument where it is no list of such numbers.
void read_attention_layers(const JsonReader& config, std::string_view key, ModelConfig& model);

// A list of the kinds of layers beside what said them already. Throws kInvalidArgument where it
// says others. REQUIRES: layers are set.
void check_mixer_list(const JsonReader& config, std::string_view key, const ModelConfig& model);

// Attention in layers `offset`, offset + period and so on, a state in the others.
void use_attention_every(int64_t period, int64_t offset, ModelConfig& model);

// A state instead of attention in all layers.
void use_state_in_all_layers(ModelConfig& model);

// A list of `count` numbers; all 1 without the field. Throws kInvalidArgument for anything else.
std::vector<float> read_factors(const JsonReader& config, std::string_view key, size_t count);

// Throws kInvalidArgument where the heads of the state can't be dealt out to its groups evenly.
void check_groups(const JsonReader& config, std::string_view key, const ModelConfig& model);

// Each layer is one branch, without an MLP behind it.
void use_mixers_alone(ModelConfig& model);

inline constexpr std::string_view kStartsTraining =
    "is about the numbers that training starts with";

// Classes with convolutions name one activation for all; theirs is this one here.
inline constexpr KnownField kSiluOfConvolutions =
    harmless_if("hidden_act", R"(["silu", "swish"])", "convolutions and gates have silu");

// Fields that models of Mamba have and nothing here hangs on.
inline constexpr auto kMambaFields = std::to_array<KnownField>({
    harmless("time_step_min", kStartsTraining),
    harmless("time_step_max", kStartsTraining),
    harmless("time_step_floor", kStartsTraining),
    harmless("rescale_prenorm_residual", kStartsTraining),
    harmless("residual_in_fp32", "the stream is f32"),
    harmless("fused_add_norm", kSameSums),
    harmless("chunk_size", kSameSums),
    harmless("use_mamba_kernels", kSameSums),
    harmless("num_logits_to_keep", "requests say which logits are wanted"),
    harmless_if("rms_norm", "[true]", "norms have no mean"),
    kSiluOfConvolutions,
});

// Names of the fields of a Mamba 2, and what an absent one means.
struct Mamba2Fields {
  std::string_view num_heads;
  std::string_view head_dim;
  std::string_view state_size;
  std::string_view num_groups;
  std::string_view conv_kernel;
  std::string_view conv_bias;
  std::string_view in_bias;
  std::string_view out_bias;
  std::string_view num_channels{};  // (optional) of a field that counts what heads make
  std::string_view expand{};        // (optional) ... of a field that is times hidden_size as many
  std::string_view step_limit{};    // (optional) [least, most]
  int64_t default_num_heads = 128;
  int64_t default_head_dim = 64;
  int64_t default_state_size = 128;
  int64_t default_num_groups = 8;
  int64_t default_conv_kernel = 4;
  double default_expand = 2.0;
};

// Of Mamba 2 among layers of attention.
inline constexpr Mamba2Fields kHybridMamba2Names = {.num_heads = "mamba_n_heads",
                                                    .head_dim = "mamba_d_head",
                                                    .state_size = "mamba_d_state",
                                                    .num_groups = "mamba_n_groups",
                                                    .conv_kernel = "mamba_d_conv",
                                                    .conv_bias = "mamba_conv_bias",
                                                    .in_bias = "mamba_proj_bias",
                                                    .out_bias = "mamba_proj_bias",
                                                    .expand = "mamba_expand",
                                                    .step_limit = "time_step_limit",
                                                    .default_state_size = 256,
                                                    .default_num_groups = 1};

inline constexpr auto kHybridMamba2Fields = std::to_array<KnownField>({
    read("mamba_n_heads"),
    read("mamba_d_head"),
    read("mamba_d_state"),
    read("mamba_n_groups"),
    read("mamba_d_conv"),
    read("mamba_expand"),
    read("mamba_conv_bias"),
    read("mamba_proj_bias"),
    read_or_null("time_step_limit"),
    harmless("mamba_chunk_size", kSameSums),
});

// With a norm of what comes out, after the gate. Throws kInvalidArgument for sizes that don't fit
// each other. REQUIRES: hidden_size and norm_eps are set.
void read_mamba2(const JsonReader& config, const Mamba2Fields& fields, ModelConfig& model);

// Names of the fields of a Mamba 1.
struct MambaFields {
  std::string_view num_channels{};  // (optional) where it is not expand * hidden_size
  std::string_view expand;
  std::string_view state_size;
  std::string_view conv_kernel;
  std::string_view step_rank;  // a number, or "auto"
  std::string_view conv_bias;
  std::string_view bias;
  int64_t default_state_size = 16;
  int64_t default_conv_kernel = 4;
};

void read_mamba(const JsonReader& config, const MambaFields& fields, ModelConfig& model);

// Refuses states that no machine holds. REQUIRES: model.state is set.
void check_state_size(const JsonReader& config, std::string_view key, const ModelConfig& model);

// The longest context that is planned for where the config of a model without attention says none:
// its memory does not grow with the context.
inline constexpr int64_t kUnboundedContext = 131072;

}  // namespace tgi
