// Muse Glimmer. What heads of q and k are scaled by is stored as weights of norms that the model
// does not have; layers with a window are rotated, and no others.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/gguf/architectures.h"

namespace tgi::gguf {

namespace {

// The one number that is repeated in these weights of every layer.
double read_repeated(const ModelReader& model, const char* norm) {
  const auto of_layer = [&](int64_t layer) { return fmt::format("blk.{}.{}.weight", layer, norm); };
  const float first = model.values(of_layer(0)).front();
  for (int64_t layer = 0; layer < model.num_layers(); ++layer) {
    const std::vector<float> all = model.values(of_layer(layer));
    if (std::ranges::count(all, first) == std::ssize(all)) continue;
    throw Error(Code::kUnsupported,
                fmt::format("tensor {}: expected {} everywhere, as in the first layer: heads of "
                            "this architecture are scaled by one number",
                            of_layer(layer), first));
  }
  return first;
}

}  // namespace

void read_muse_glimmer(ModelReader& model) {
  read_decoder(model, "MuseGlimmerTextModel", "muse_glimmer_text");
  Json& config = model.config;
  config["qk_scale_factor"] =
      read_repeated(model, "attn_q_norm") * read_repeated(model, "attn_k_norm");
  model.ignore_tensor("blk.{layer}.attn_q_norm");
  model.ignore_tensor("blk.{layer}.attn_k_norm");
  config["output_multiplier"] = model.find_number("logit_scale").value_or(1.0);
  if (const auto cap = model.find_number("final_logit_softcapping")) {
    config["final_logit_softcapping"] = *cap;
  }
  config["sliding_window"] = model.positive("attention.sliding_window");
  config["layer_types"] = read_layer_types(model, 4);
  for (const Json& type : config["layer_types"]) {
    config["layer_rope_theta"].push_back(type == "sliding_attention" ? config["rope_theta"]
                                                                     : Json(0));
  }
  read_attention_bias(model);
  name_outer(model);
  name_rotated_attention(model);
  model.name("blk.{layer}.attn_gate", "model.layers.{layer}.self_attn.gate_proj");
  name_mlp(model);
  name_four_norms(model, Change::kPlusOne);
}

}  // namespace tgi::gguf
