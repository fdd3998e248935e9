// DeciLM and Llama Nemotron (51B, Super, Ultra): Llama's block with KV heads and widths layer by
// layer, of which a layer may lack attention or MLP.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/gguf/architectures.h"

namespace tgi::gguf {

namespace {

struct DeciHeads {
  int64_t count = 0;  // of a layer that attends
  std::vector<int64_t> kv;
};

// Neither heads nor KV heads: the layer has no attention.
DeciHeads read_deci_heads(ModelReader& model) {
  DeciHeads out{.count = model.one_of_layers("attention.head_count"),
                .kv = model.integers_of_layers("attention.head_count_kv")};
  const std::vector<int64_t> heads = model.integers_of_layers("attention.head_count");
  if (out.kv.empty()) out.kv = heads;
  for (size_t layer = 0; layer < heads.size(); ++layer) {
    const int64_t kv = out.kv[layer];
    if (heads[layer] > 0 && kv == 0) {
      throw Error(
          Code::kUnsupported,
          fmt::format("deci.attention.head_count_kv: layer {} has {} heads and no KV heads: "
                      "one matrix in place of attention is not supported",
                      layer, heads[layer]));
    }
    if (kv < 0 || (heads[layer] == 0) != (kv == 0) || (kv > 0 && out.count % kv != 0)) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("deci.attention.head_count_kv: layer {} has {} KV heads for {} heads",
                              layer, kv, heads[layer]));
    }
  }
  return out;
}

Json read_blocks(ModelReader& model, const DeciHeads& heads) {
  const std::vector<int64_t> widths = model.integers_of_layers("feed_forward_length");
  Json out = Json::array();
  for (size_t layer = 0; layer < heads.kv.size(); ++layer) {
    const int64_t kv = heads.kv[layer];
    const int64_t width = widths.empty() ? 0 : widths[layer];
    Json attention = {{"no_op", kv == 0}};
    if (kv > 0) attention["n_heads_in_group"] = heads.count / kv;
    Json ffn = {{"no_op", width == 0}};
    if (width > 0) ffn["intermediate_size"] = width;
    out.push_back({{"attention", std::move(attention)}, {"ffn", std::move(ffn)}});
  }
  return out;
}

}  // namespace

void read_deci(ModelReader& model) {
  read_outer_sizes(model, "DeciLMForCausalLM", "nemotron-nas");
  const DeciHeads heads = read_deci_heads(model);
  Json& config = model.config;
  if (heads.count < 1) {
    throw Error(Code::kInvalidArgument, "deci.attention.head_count: no layer has heads");
  }
  const int64_t head_dim = model.find_integer("attention.key_length")
                               .value_or(config.at("hidden_size").get<int64_t>() / heads.count);
  model.pass_over("attention.value_length");  // the tensors are checked by the length of keys
  config["num_attention_heads"] = heads.count;
  config["head_dim"] = head_dim;
  config["block_configs"] = read_blocks(model, heads);
  read_rope(model, head_dim);
  name_outer(model);
  name_norms(model);
  name_mlp(model);
  const std::string attention = "model.layers.{layer}.self_attn.";
  model.name("blk.{layer}.attn_q", attention + "q_proj",
             rotated_heads("heads", heads.count, heads.count * head_dim));
  for (const int64_t kv : std::set<int64_t>(heads.kv.begin(), heads.kv.end())) {
    if (kv == 0) continue;
    const int64_t rows = kv * head_dim;
    model.name("blk.{layer}.attn_k", attention + "k_proj", rotated_heads("KV heads", kv, rows));
    model.rules.back().only_rows = rows;
  }
  model.name("blk.{layer}.attn_v", attention + "v_proj");
  model.name("blk.{layer}.attn_output", attention + "o_proj");
}

}  // namespace tgi::gguf
