#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "engine/gguf/architectures.h"

namespace tgi::gguf {
namespace {

// Numbers of the activation, one for each layer.
void state_xielu(ModelReader& model) {
  struct Row {
    const char* key;
    const char* name;
    std::vector<int64_t> shape;
  };
  const Row rows[] = {{kXieluFields[0], "alpha_p", {1}},
                      {kXieluFields[1], "alpha_n", {1}},
                      {kXieluFields[2], "beta", {}},
                      {kXieluFields[3], "eps", {}}};
  for (const Row& row : rows) {
    const std::vector<double> values = model.metadata().numbers(row.key);
    if (values.size() != static_cast<size_t>(model.num_layers())) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: expected {} values, one for each layer, got {}", row.key,
                              model.num_layers(), values.size()));
    }
    for (size_t layer = 0; layer < values.size(); ++layer) {
      model.state_number(fmt::format("model.layers.{}.mlp.act_fn.{}", layer, row.name),
                         values[layer], row.shape);
    }
  }
}

}  // namespace

void read_apertus(ModelReader& model) {
  read_decoder(model, "ApertusForCausalLM", "apertus");
  // The class would take a scaled one for granted.
  if (!model.config.contains("rope_scaling"))
    model.config["rope_scaling"] = {{"rope_type", "default"}};
  read_attention_bias(model);
  name_outer(model);
  model.name("blk.{layer}.attn_norm", "model.layers.{layer}.attention_layernorm");
  model.name("blk.{layer}.ffn_norm", "model.layers.{layer}.feedforward_layernorm");
  name_attention(model);
  name_qk_norms(model);
  name_mlp(model);
  state_xielu(model);
}

}  // namespace tgi::gguf
