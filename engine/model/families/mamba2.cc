// Mamba 2. Source: models/mamba2 in `transformers`; https://arxiv.org/abs/2405.21060.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/state_fields.h"
#include "engine/model/state_tensors.h"

namespace tgi {
namespace {

ModelConfig read_mamba2_config(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.num_layers = "num_hidden_layers",
                                                   .num_heads = "",
                                                   .intermediate_size = "",
                                                   .max_positions = "",
                                                   .norm_eps = "layer_norm_epsilon",
                                                   .activation = "",
                                                   .default_vocab_size = 32768,
                                                   .default_num_layers = 64,
                                                   .default_intermediate = -1,
                                                   .default_max_positions = kUnboundedContext,
                                                   .default_norm_eps = 1e-5,
                                                   .default_bos = 0});
  read_mamba2(config,
              {.num_heads = "num_heads",
               .head_dim = "head_dim",
               .state_size = "state_size",
               .num_groups = "n_groups",
               .conv_kernel = "conv_kernel",
               .conv_bias = "use_conv_bias",
               .in_bias = "use_bias",
               .out_bias = "use_bias",
               .expand = "expand",
               .step_limit = "time_step_limit"},
              model);
  use_mixers_alone(model);
  use_state_in_all_layers(model);
  return model;
}

constexpr auto kMamba2Fields = join_fields(
    std::to_array<KnownField>({
        read("vocab_size"),
        read("hidden_size"),
        read("num_hidden_layers"),
        read("layer_norm_epsilon"),
        read_or_null("tie_word_embeddings"),
        read("num_heads"),
        read("head_dim"),
        read("state_size"),
        read("n_groups"),
        read("conv_kernel"),
        read("expand"),
        read("use_bias"),
        read("use_conv_bias"),
        read_or_null("time_step_limit"),
        harmless("time_step_rank", "there is no such matrix"),
        harmless("norm_before_gate", "the gate stands before the norm, whatever it says"),
    }),
    kMambaFields);

constexpr auto kMamba2Names = std::to_array<std::string_view>({"Mamba2ForCausalLM"});
constexpr auto kMamba2Types = std::to_array<std::string_view>({"mamba2"});

constexpr auto kMamba2AllTensors = join_tensors(kBackboneTensors, kMamba2Tensors);

}  // namespace

extern const Architecture kMamba2;
constexpr Architecture kMamba2 = {
    .names = kMamba2Names,
    .model_types = kMamba2Types,
    .prefix = "backbone.",
    .read_config = read_mamba2_config,
    .fields = kMamba2Fields,
    .tensors = kMamba2AllTensors,
    .ignored = {},
};

}  // namespace tgi
