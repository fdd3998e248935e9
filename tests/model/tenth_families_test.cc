// What the readers of Beam, Mistral Large 4, Zamba 2 and DiffLlama make of their own fields, where
// their layers keep what others read, and what they refuse.
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/architecture.h"
#include "engine/model/kv_plan.h"
#include "engine/model/rank_ranges.h"
#include "engine/model/tensor_table.h"
#include "tests/catch.h"
#include "tests/model/config_refusal.h"
#include "tests/model/model_files.h"

namespace tgi::tenth_families_test {
namespace {

using Catch::Contains;

LoadedConfig load(const std::string& architecture, Json config) {
  config["architectures"] = {architecture};
  return load_config(config);
}

std::string refused(const std::string& architecture, Json config, Code code) {
  config["architectures"] = {architecture};
  return refusal(config, code);
}

const std::string kBeam = "BeamForCausalLM";
const std::string kLarge4 = "MistralLarge4TextModel";
const std::string kZamba2 = "Zamba2ForCausalLM";
const std::string kDiffLlama = "DiffLlamaForCausalLM";

TEST_CASE("Beam rotates where there is a window, else scales queries, and weighs deep sums less") {
  const ModelConfig model = load(kBeam, {{"num_hidden_layers", 8}}).config;
  std::string windows;
  for (const LayerPlan& layer : model.layers) {
    const bool has_window = layer.sliding_window == 512;
    windows += has_window ? 'w' : 'f';
    CHECK((layer.rope == kNoRope) == !has_window);
    CHECK(layer.query_scale.is_on() == !has_window);
  }
  CHECK(windows == "wwwwwfwf");
  CHECK(model.layers[5].query_scale ==
        PositionScale{.positions = 2048, .offset = 1, .power = 0.1F});
  CHECK(model.layers[2].mlp == MlpKind::kDense);
  CHECK(model.layers[3].mlp == MlpKind::kExperts);
  CHECK(model.layers[0].mixer_factors.stream == Approx(std::sqrt(1.0 / 2)));
  CHECK(model.layers[0].mlp_factors.branch == Approx(std::sqrt(1.0 / 3)));
  CHECK(model.layers[7].mlp_factors.stream == Approx(std::sqrt(16.0 / 17)));
}

TEST_CASE("Beam's gates have a bias for each head, of which one number is stored") {
  const LoadedConfig loaded = load(kBeam, {{"num_hidden_layers", 1},
                                           {"num_attention_heads", 4},
                                           {"num_key_value_heads", 2},
                                           {"head_dim", 6}});
  const TensorTable table(loaded);
  const TensorEntry* bias = table.find(Role::kOutputGateBias, 0);
  REQUIRE(bias != nullptr);
  CHECK(bias->cols == 24);
  CHECK(bias->vector_shape() == std::vector<int64_t>{4});
}

TEST_CASE("Beam without a rope for one of its kinds of layers is refused") {
  const std::string text =
      refused(kBeam, {{"num_hidden_layers", 6}, {"rope_parameters", {{"full_attention", nullptr}}}},
              Code::kInvalidArgument);
  CHECK_THAT(text, Contains("rope_parameters: expected an object for each of layer_types"));
  CHECK_THAT(text, Contains("sliding_attention"));
}

Json large4(Json rotated, Json sources) {
  const size_t num_layers = rotated.size();
  return {{"num_hidden_layers", num_layers},
          {"no_rope_layers", std::move(rotated)},
          {"kv_source_layers", std::move(sources)},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 4},
          {"kv_lora_rank", 20},
          {"qk_nope_head_dim", 10},
          {"qk_rope_head_dim", 6},
          {"v_head_dim", 8}};
}

TEST_CASE("Mistral Large 4 keeps of a layer without a rope the latent alone, and all columns") {
  const LoadedConfig loaded = load(kLarge4, large4({1, 0}, {0, 1}));
  const TensorTable table(loaded);
  CHECK(table.find(Role::kLatentDown, 0)->rows == 26);
  CHECK(table.find(Role::kLatentDown, 1)->rows == 20);
  CHECK(table.find(Role::kLatentUp, 0)->rows == 4 * (10 + 8));
  CHECK(table.find(Role::kLatentUp, 1)->rows == 4 * (16 + 8));
  CHECK(table.find(Role::kRopeScales)->cols == 3);
  CHECK(table.find(Role::kQueryScale, 1)->cols == 4);
  const KvPlan plan = one_kv_group(loaded.config);
  REQUIRE(plan.heads.size() == 1);
  CHECK(plan.heads[0][0].head_dim == 26);
  CHECK(plan.heads[0][1].head_dim == 20);
}

TEST_CASE("layers over the latents of another have none, but keys of an indexer of their own") {
  const LoadedConfig loaded = load(kLarge4, large4({1, 0, 1, 0}, {0, 1, 0, 1}));
  const TensorTable table(loaded);
  CHECK(table.find(Role::kLatentDown, 1) != nullptr);
  CHECK(table.find(Role::kLatentDown, 2) == nullptr);
  CHECK(table.find(Role::kLatentNorm, 3) == nullptr);
  CHECK(table.find(Role::kIndexerKey, 3) != nullptr);
  const KvPlan plan = one_kv_group(loaded.config);
  CHECK(plan.places[2] == plan.places[0]);
  CHECK(plan.places[3] == plan.places[1]);
  REQUIRE(plan.heads.size() == 1);
  CHECK(plan.heads[0].size() == 2 + 4);  // latents, keys of indexers
  CHECK(plan.indexer_places[3] != plan.indexer_places[1]);
}

TEST_CASE("Mistral Large 4's lists of layers are refused where they can't be followed") {
  CHECK_THAT(refused(kLarge4, large4({1, 1}, {0, 2}), Code::kInvalidArgument),
             Contains("kv_source_layers: entry 1 is 2, expected the layer itself or one before"));
  CHECK_THAT(refused(kLarge4, large4({1, 1, 1}, {0, 0, 1}), Code::kInvalidArgument),
             Contains("entry 2 is 1"));
  CHECK_THAT(refused(kLarge4, large4({1, 1}, {0, "a"}), Code::kInvalidArgument),
             Contains("entry 1 is \"a\""));
  CHECK_THAT(refused(kLarge4, large4({1, 0, 1}, {0, 1, 1}), Code::kUnsupported),
             Contains("layer 2 reads the latents of layer 1"));
  CHECK_THAT(refused(kLarge4, large4({1, 1, 1, 1}, {0, 1, 1, 0}), Code::kUnsupported),
             Contains("layer 3 reads the latents of layer 0"));
  CHECK_THAT(refused(kLarge4, large4({1, 1}, {0}), Code::kInvalidArgument),
             Contains("kv_source_layers"));
}

Json zamba2(std::vector<std::string> layers) {
  return {{"num_hidden_layers", layers.size()},
          {"layers_block_type", std::move(layers)},
          {"hidden_size", 20},
          {"num_attention_heads", 4},
          {"n_mamba_heads", 5},
          {"intermediate_size", 30},
          {"adapter_rank", 3},
          {"num_mem_blocks", 2},
          {"use_shared_attention_adapter", true}};
}

TEST_CASE("Zamba 2 uses its blocks in turn, the first layers' again") {
  Json config = zamba2({"mamba", "hybrid", "hybrid", "linear_attention", "hybrid", "hybrid"});
  const LoadedConfig loaded = load(kZamba2, config);
  const ModelConfig& model = loaded.config;
  std::vector<int32_t> blocks;
  for (const LayerPlan& layer : model.layers) {
    CHECK(layer.has_state);
    CHECK(layer.has_attention == layer.has_block());
    CHECK((layer.mlp == MlpKind::kDense) == layer.has_block());
    blocks.push_back(layer.block_layer);
  }
  CHECK(blocks == std::vector<int32_t>{kNoSharedBlock, 1, 2, kNoSharedBlock, 1, 2});
  CHECK(model.head_dim == 10);
  CHECK(model.attention_scale == Approx(1.0 / std::sqrt(5.0)));
  CHECK(stream_cols(model) == 40);
  CHECK(num_further_streams(model) == 0);

  const TensorTable table(loaded);
  const std::string block = "model.layers.2.shared_transformer.";
  CHECK(table.find(Role::kQ, 5)->name == block + "self_attn.q_proj.weight");
  CHECK(table.find(Role::kQ, 5)->cols == 40);
  CHECK(table.find(Role::kKLowIn, 5)->name == block + "self_attn.linear_k_adapter_list.3.0.weight");
  CHECK(table.find(Role::kGateUpLowOut, 4)->name ==
        "model.layers.1.shared_transformer.feed_forward.gate_up_proj_adapter_list.2.1.weight");
  CHECK(table.find(Role::kBlockNorm, 2)->cols == 40);
  CHECK(table.find(Role::kBlockOut, 5)->name == "model.layers.5.linear.weight");
  CHECK(table.find(Role::kQ, 0) == nullptr);
  CHECK(table.find(Role::kDown, 3) == nullptr);
  CHECK(one_kv_group(model).num_layers == 4);

  config["use_shared_attention_adapter"] = false;
  CHECK(TensorTable(load(kZamba2, config)).find(Role::kKLowIn, 5) == nullptr);
}

TEST_CASE("Zamba 2 without a list of layers has nine blocks, and all convolutions have a bias") {
  const ModelConfig model = load(kZamba2, {{"use_conv_bias", false}}).config;
  std::vector<int32_t> with_block;
  for (int32_t i = 0; i < model.num_layers; ++i) {
    if (model.layers[static_cast<size_t>(i)].has_block()) with_block.push_back(i);
  }
  CHECK(with_block == std::vector<int32_t>{6, 12, 18, 24, 30, 36, 42, 47, 51});
  CHECK(model.state.has_conv_bias);
  CHECK(model.ropes.empty());
  CHECK(load(kZamba2, {{"use_long_context", true}}).config.max_positions == 16384);
}

TEST_CASE("Zamba 2's fields that can't be followed are refused") {
  CHECK_THAT(refused(kZamba2, zamba2({"mamba", "attention"}), Code::kUnsupported),
             Contains("layers_block_type[1]: 'attention' is not supported; known are hybrid"));
  CHECK_THAT(refused(kZamba2, {{"num_hidden_layers", 3}}, Code::kInvalidArgument),
             Contains("layers_block_type: expected 3 entries, one per layer, got 54"));
  Json grouped = zamba2({"mamba", "hybrid"});
  grouped["num_key_value_heads"] = 2;
  CHECK_THAT(refused(kZamba2, grouped, Code::kInvalidArgument),
             Contains("use_shared_attention_adapter: needs as many numbers of keys as q, k and v "
                      "read, 40, but there are 2 KV heads of 10"));
  grouped["use_shared_attention_adapter"] = false;
  CHECK(load(kZamba2, grouped).config.num_kv_heads == 2);
  grouped["head_dim"] = 6;
  CHECK(load(kZamba2, grouped).config.head_dim == 6);
  grouped["hybrid_layer_ids"] = {0};
  CHECK_THAT(refused(kZamba2, grouped, Code::kInvalidArgument),
             Contains("hybrid_layer_ids: expected [1], as other fields say, got [0]"));
  grouped["hybrid_layer_ids"] = {1};
  grouped["attention_hidden_size"] = 20;
  CHECK_THAT(refused(kZamba2, grouped, Code::kInvalidArgument),
             Contains("attention_hidden_size: expected 40, as other fields say, got 20"));
  grouped["attention_hidden_size"] = 40;
  grouped["tie_word_embeddings"] = false;
  CHECK_THAT(refused(kZamba2, grouped, Code::kUnsupported),
             Contains("tie_word_embeddings: ") && Contains("blocks are shared only where"));
}

TEST_CASE("DiffLlama's heads have the values of a pair, each half of them all") {
  const LoadedConfig loaded = load(kDiffLlama, {{"num_hidden_layers", 2},
                                                {"hidden_size", 24},
                                                {"num_attention_heads", 8},
                                                {"num_key_value_heads", 4},
                                                {"head_dim", 6}});
  const ModelConfig& model = loaded.config;
  CHECK(model.value_dim == 12);
  CHECK(model.layers[0].first_difference == Approx(0.2));
  CHECK(model.layers[1].first_difference == Approx(0.8 - 0.6 * std::exp(-0.3)));
  const TensorTable table(loaded);
  CHECK(table.find(Role::kV, 1)->rows == 24);
  CHECK(table.find(Role::kO, 1)->cols == 48);
  std::vector<int64_t> rows;
  for (const Range& range : rank_ranges(Dim::kPairedValues, model, 0, 0, 1)) {
    CHECK(range.count == 6);
    rows.push_back(range.begin);
  }
  CHECK(rows == std::vector<int64_t>{0, 12, 6, 18, 0, 12, 6, 18});
  CHECK_THROWS_WITH(check_world_size(model, 2), Contains("takes heads of one half from those of"));
}

TEST_CASE("DiffLlama with KV heads that are not in pairs is refused") {
  const Json config = {{"num_attention_heads", 9}, {"num_key_value_heads", 3}, {"head_dim", 4}};
  CHECK_THAT(refused(kDiffLlama, config, Code::kInvalidArgument),
             Contains("num_key_value_heads: 3 KV heads are not in pairs, expected an even number"));
}

}  // namespace
}  // namespace tgi::tenth_families_test
