// OLMo 1 to 3, and with experts.
#include <fmt/format.h>

#include "base/error.h"
#include "engine/gguf/architectures.h"

namespace tgi::gguf {

namespace {

// Newer files say it of layers with a window too, where the class has one base for all.
void refuse_other_base(ModelReader& model) {
  const auto windowed = model.find_number("rope.freq_base_swa");
  const auto base = model.config.at("rope_theta").get<double>();
  if (!windowed || *windowed == base) return;
  throw Error(Code::kUnsupported,
              fmt::format("{}.rope.freq_base_swa: {} in layers with a window and {} in others; "
                          "expected one base for all",
                          model.architecture(), *windowed, base));
}

}  // namespace

void read_olmo(ModelReader& model) {
  read_decoder(model, "OlmoForCausalLM", "olmo");
  model.pass_over("attention.layer_norm_epsilon");  // the class has one
  if (const auto limit = model.find_number("attention.clamp_kqv"))
    model.config["clip_qkv"] = *limit;
  read_attention_bias(model);
  name_outer(model);
  name_rotated_attention(model);
  name_mlp(model);
}

void read_olmo2(ModelReader& model) {
  const auto window = model.find_integer("attention.sliding_window").value_or(0);
  read_decoder(model, window > 0 ? "Olmo3ForCausalLM" : "Olmo2ForCausalLM",
               window > 0 ? "olmo3" : "olmo2");
  (void)read_windows(model, 4);
  refuse_other_base(model);
  read_attention_bias(model);
  name_outer(model);
  name_attention(model);
  name_qk_norms(model);
  name_post_norms(model);
  name_mlp(model);
}

void read_olmoe(ModelReader& model) {
  read_decoder(model, "OlmoeForCausalLM", "olmoe");
  read_experts(model, "num_experts", "intermediate_size");
  read_attention_bias(model);
  name_outer(model);
  name_norms(model);
  name_attention(model);
  name_qk_norms(model);
  model.name("blk.{layer}.ffn_gate_inp", "model.layers.{layer}.mlp.gate");
  name_experts(model, "model.layers.{layer}.mlp.experts");
  drop_fields(model, {"head_dim"});
}

}  // namespace tgi::gguf
