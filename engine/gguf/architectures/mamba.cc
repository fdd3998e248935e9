// Mamba, Falcon-Mamba and Mamba 2: layers of a mixer alone.
#include <string>

#include "engine/gguf/architectures.h"
#include "engine/gguf/state_rules.h"

namespace tgi::gguf {

namespace {

void read_backbone(ModelReader& model, const char* class_name, const char* model_type) {
  read_sizes(model, class_name, model_type);
  model.pass_over("attention.head_count");
  model.config["layer_norm_epsilon"] = model.config.at("rms_norm_eps");
  model.config["expand"] = state_expansion(model);
  drop_fields(model, {"rms_norm_eps", "intermediate_size", "max_position_embeddings"});
  name_backbone(model);
}

}  // namespace

void read_mamba(ModelReader& model) {
  const bool norms_parts = model.find_boolean("ssm.dt_b_c_rms").value_or(false);
  read_backbone(model, norms_parts ? "FalconMambaForCausalLM" : "MambaForCausalLM",
                norms_parts ? "falcon_mamba" : "mamba");
  model.config["intermediate_size"] = model.positive("ssm.inner_size");
  read_mamba1_state(model,
                    {.state_size = "state_size",
                     .conv_kernel = "conv_kernel",
                     .conv_bias = "use_conv_bias",
                     .in_bias = "use_bias"},
                    "time_step_rank");
  name_mamba1(model, kBackboneMixer);
}

void read_mamba2(ModelReader& model) {
  read_backbone(model, "Mamba2ForCausalLM", "mamba2");
  read_mamba2_state(model, {.num_heads = "num_heads",
                            .head_dim = "head_dim",
                            .state_size = "state_size",
                            .num_groups = "n_groups",
                            .conv_kernel = "conv_kernel",
                            .conv_bias = "use_conv_bias",
                            .in_bias = "use_bias"});
  name_mamba2(model, kBackboneMixer);
}

}  // namespace tgi::gguf
