// Mamba, and Falcon-Mamba, which norms what its scan reads. Source: models/mamba and
// models/falcon_mamba in `transformers`; https://arxiv.org/abs/2312.00752.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/state_fields.h"
#include "engine/model/state_tensors.h"

namespace tgi {
namespace {

ModelConfig read_mamba1_config(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.num_heads = "",
                                                   .intermediate_size = "",
                                                   .max_positions = "",
                                                   .norm_eps = "layer_norm_epsilon",
                                                   .activation = "",
                                                   .default_vocab_size = 50280,
                                                   .default_hidden_size = 768,
                                                   .default_intermediate = -1,
                                                   .default_max_positions = kUnboundedContext,
                                                   .default_norm_eps = 1e-5,
                                                   .default_tied = true,
                                                   .default_bos = 0,
                                                   .default_eos = 0});
  read_mamba(config,
             {.num_channels = "intermediate_size",
              .expand = "expand",
              .state_size = "state_size",
              .conv_kernel = "conv_kernel",
              .step_rank = "time_step_rank",
              .conv_bias = "use_conv_bias",
              .bias = "use_bias"},
             model);
  use_mixers_alone(model);
  use_state_in_all_layers(model);
  return model;
}

ModelConfig read_config_falcon(const JsonReader& config) {
  ModelConfig model = read_mamba1_config(config);
  model.state.norms_parts = true;
  model.state.norm_eps = read_positive(config, "mixer_rms_eps", 1e-6);
  return model;
}

constexpr auto kMamba1Fields =
    join_fields(std::to_array<KnownField>({
                    read("vocab_size"),
                    read("hidden_size"),
                    read("num_hidden_layers"),
                    read("layer_norm_epsilon"),
                    read_or_null("tie_word_embeddings"),
                    read("expand"),
                    read("state_size"),
                    read("conv_kernel"),
                    read("time_step_rank"),
                    read("use_bias"),
                    read("use_conv_bias"),
                    read_or_null("intermediate_size"),
                    harmless("d_inner", "intermediate_size says it"),
                    harmless("d_model", "hidden_size says it"),
                    harmless("n_layer", "num_hidden_layers says it"),
                    harmless("time_step_init_scheme", kStartsTraining),
                    harmless("time_step_scale", kStartsTraining),
                    harmless("use_mambapy", kSameSums),
                    harmless("use_falcon_mambapy", kSameSums),
                    harmless("use_associative_scan", kSameSums),
                    harmless_if("ssm_cfg", "[{}]", "the other fields say it"),
                    harmless("pad_vocab_size_multiple", "vocab_size counts the padding"),
                }),
                kMambaFields);

constexpr auto kFieldsFalcon =
    join_fields(std::to_array<KnownField>({read("mixer_rms_eps")}), kMamba1Fields);

constexpr auto kMambaNames = std::to_array<std::string_view>({"MambaForCausalLM"});
constexpr auto kMambaTypes = std::to_array<std::string_view>({"mamba"});
constexpr auto kNamesFalcon = std::to_array<std::string_view>({"FalconMambaForCausalLM"});
constexpr auto kModelTypesFalcon = std::to_array<std::string_view>({"falcon_mamba"});

constexpr auto kMamba1Tensors = join_tensors(kBackboneTensors, kMambaTensors);

}  // namespace

extern const Architecture kMamba;
constexpr Architecture kMamba = {
    .names = kMambaNames,
    .model_types = kMambaTypes,
    .prefix = "backbone.",
    .read_config = read_mamba1_config,
    .fields = kMamba1Fields,
    .tensors = kMamba1Tensors,
    .ignored = {},
};

extern const Architecture kFalconMamba;
constexpr Architecture kFalconMamba = {
    .names = kNamesFalcon,
    .model_types = kModelTypesFalcon,
    .prefix = "backbone.",
    .read_config = read_config_falcon,
    .fields = kFieldsFalcon,
    .tensors = kMamba1Tensors,
    .ignored = {},
};

}  // namespace tgi
