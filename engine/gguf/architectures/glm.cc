// GLM 4 of 2024 and of 2025, and the text model of GLM 4.1V, 4.6V Flash and OCR: gate and up are
// one matrix.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "engine/gguf/architectures.h"

namespace tgi::gguf {

namespace {

void name_glm(ModelReader& model) {
  state_rotary_part(model);
  read_attention_bias(model);
  name_outer(model);
  model.name("blk.{layer}.ffn_up", "model.layers.{layer}.mlp.gate_up_proj");
  model.name("blk.{layer}.ffn_down", "model.layers.{layer}.mlp.down_proj");
}

// Heads of whose first `rotated` columns neighbours are rotated, stored so that halves are.
RowOrder paired_heads(int64_t num_heads, int64_t head_dim, int64_t rotated) {
  const int64_t count = num_heads * head_dim;
  return {.name = fmt::format("pairs of {} in {} heads of {}", rotated, num_heads, head_dim),
          .count = count,
          .rows = [count, head_dim, rotated] {
            std::vector<int32_t> out;
            for (int64_t row = 0; row < count; ++row) {
              const int64_t column = row % head_dim;
              const bool moved = column < rotated;
              const int64_t stored = moved ? column % 2 * (rotated / 2) + column / 2 : column;
              out.push_back(static_cast<int32_t>(row - column + stored));
            }
            return out;
          }};
}

// Models of images say how the columns are dealt out to the places in an image, and those of text
// are alike in every section; their heads are stored in another order.
void name_sectioned_attention(ModelReader& model) {
  const Json& config = model.config;
  const auto head_dim = config.at("head_dim").get<int64_t>();
  const auto rotated = model.find_integer("rope.dimension_count").value_or(head_dim);
  if (rotated < 2 || rotated > head_dim || rotated % 2 != 0) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}.rope.dimension_count: expected an even number of 2 to {}, got {}",
                            model.architecture(), head_dim, rotated));
  }
  const std::string attention = "model.layers.{layer}.self_attn.";
  const auto order = [&](const char* heads) {
    return paired_heads(config.at(heads).get<int64_t>(), head_dim, rotated);
  };
  model.name("blk.{layer}.attn_q", attention + "q_proj", order("num_attention_heads"));
  model.name("blk.{layer}.attn_k", attention + "k_proj", order("num_key_value_heads"));
  model.name("blk.{layer}.attn_v", attention + "v_proj");
  model.name("blk.{layer}.attn_output", attention + "o_proj");
}

}  // namespace

void read_chatglm(ModelReader& model) {
  read_decoder(model, "GlmForCausalLM", "glm");
  name_glm(model);
  name_attention(model);
  name_norms(model);
}

void read_glm4(ModelReader& model) {
  read_decoder(model, "Glm4ForCausalLM", "glm4");
  drop_predicting_layers(model);
  name_glm(model);
  if (model.has("rope.dimension_sections")) {
    model.pass_over("rope.dimension_sections");
    name_sectioned_attention(model);
  } else {
    name_attention(model);
  }
  name_norms(model);
  model.name("blk.{layer}.post_attention_norm", "model.layers.{layer}.post_self_attn_layernorm");
  model.name("blk.{layer}.post_ffw_norm", "model.layers.{layer}.post_mlp_layernorm");
}

}  // namespace tgi::gguf
