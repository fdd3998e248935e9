// What the readers of RecurrentGemma, MiniMax and MiniMax M3 make of their own fields, and what
// they refuse.
#include <string>
#include <utility>

#include "engine/model/architecture.h"
#include "engine/model/rank_ranges.h"
#include "engine/model/state_layout.h"
#include "engine/model/tensor_table.h"
#include "tests/catch.h"
#include "tests/model/config_refusal.h"
#include "tests/model/model_files.h"

namespace tgi::eighth_families_test {
namespace {

LoadedConfig load(const std::string& architecture, Json config = Json::object()) {
  config["architectures"] = {architecture};
  return load_config(config);
}

std::string refused(const std::string& architecture, Json config, Code code) {
  config["architectures"] = {architecture};
  return refusal(config, code);
}

const std::string kRecurrentGemma = "RecurrentGemmaForCausalLM";

// The fields of google/recurrentgemma-2b that say something.
Json published_recurrent_gemma() {
  return {{"attention_bias", false},
          {"attention_window_size", 2048},
          {"block_types", {"recurrent", "recurrent", "attention"}},
          {"conv1d_width", 4},
          {"embeddings_scale_by_sqrt_dim", true},
          {"final_w_init_variance_scale", 0.07692307692307693},
          {"head_dim", 256},
          {"hidden_activation", "gelu_pytorch_tanh"},
          {"hidden_size", 2560},
          {"intermediate_size", 15360},
          {"logits_soft_cap", 30.0},
          {"lru_width", 2560},
          {"model_type", "recurrent_gemma"},
          {"num_attention_heads", 10},
          {"num_hidden_layers", 26},
          {"num_key_value_heads", 1},
          {"partial_rotary_factor", 0.5},
          {"rms_norm_eps", 1e-6},
          {"rope_theta", 10000.0},
          {"vocab_size", 256000},
          {"w_init_variance_scale", 0.01}};
}

TEST_CASE("RecurrentGemma has linear recurrent units in two layers of three, else a window") {
  const LoadedConfig loaded = load(kRecurrentGemma, published_recurrent_gemma());
  const ModelConfig& model = loaded.config;
  CHECK(model.intermediate_size == 7680);
  CHECK(model.embedding_multiplier == 50.5F);  // 50.596 in bf16
  CHECK(model.logit_softcap == 30.0F);
  CHECK(model.tied_embeddings);
  CHECK(model.state.kind == StateKind::kRgLru);
  CHECK(model.ropes[0].rotary_dim == 128);
  for (int32_t i = 0; i < model.num_layers; ++i) {
    const LayerPlan& layer = model.layers[static_cast<size_t>(i)];
    CHECK(layer.has_attention == (i % 3 == 2));
    CHECK(layer.has_state != layer.has_attention);
    CHECK(layer.sliding_window == (layer.has_attention ? 2048 : 0));
  }
  CHECK(recurrent_layout(model) == StateLayout{.num_layers = 18,
                                               .conv_channels = 2560,
                                               .conv_kernel = 4,
                                               .num_heads = 10,
                                               .head_dim = 256,
                                               .state_size = 1});
  const TensorTable table(loaded);
  const TensorEntry* gate = table.find(Role::kInputGate, 0, 9);
  CHECK(gate->name == "model.layers.0.temporal_block.rg_lru.input_gate_weight");
  CHECK(gate->expert == 9);
  CHECK(gate->num_stacked == 10);
  CHECK(gate->rows == 256);
  CHECK(table.find(Role::kDecayGateBias, 1)->vector_shape() == std::vector<int64_t>{10, 256});
  CHECK(table.find(Role::kInputGate, 2) == nullptr);
  CHECK(table.find(Role::kOBias, 2)->cols == 2560);
  CHECK(table.find(Role::kQBias, 2) == nullptr);
}

TEST_CASE("what RecurrentGemma does not say is as its class has it") {
  CHECK(load(kRecurrentGemma, {{"lru_width", nullptr}}).config.state.num_channels() == 2560);
  CHECK(load(kRecurrentGemma, {{"lru_width", 1280}}).config.state.head_dim == 128);
  CHECK(load(kRecurrentGemma, {{"head_dim", 64}}).config.state.head_dim == 256);
  CHECK(load(kRecurrentGemma, {{"sliding_window", 77}}).config.layers[2].sliding_window == 77);
}

TEST_CASE("what RecurrentGemma can't be is refused by name") {
  CHECK_THAT(refused(kRecurrentGemma, {{"lru_width", 2555}}, Code::kInvalidArgument),
             Catch::Contains("lru_width: 2555 channels can't be dealt out to 10 heads evenly"));
  CHECK_THAT(
      refused(kRecurrentGemma, {{"block_types", {"recurrent", "mamba"}}}, Code::kUnsupported),
      Catch::Contains("block_types[1]: 'mamba' is not supported; known are recurrent, attention"));
  CHECK_THAT(refused(kRecurrentGemma, {{"block_types", Json::array()}}, Code::kInvalidArgument),
             Catch::Contains("block_types: expected a list of kinds of layers, got []"));
  CHECK_THAT(refused(kRecurrentGemma, {{"intermediate_size", 1}}, Code::kInvalidArgument),
             Catch::Contains("intermediate_size: expected 1 to"));
  CHECK_THAT(
      refused(kRecurrentGemma, {{"rope_parameters", {{"rope_type", "linear"}, {"factor", 2.0}}}},
              Code::kUnsupported),
      Catch::Contains("rope scaling 'linear' is not supported; known are default"));
  CHECK_THAT(refused(kRecurrentGemma, {{"conv1d_width", 17}}, Code::kInvalidArgument),
             Catch::Contains("conv1d_width: expected 1 to 16, got 17"));
}

const std::string kMinimax = "MiniMaxForCausalLM";

TEST_CASE("MiniMax has lightning attention in every second layer, or where its list says so") {
  const LoadedConfig loaded = load(kMinimax, {{"num_hidden_layers", 4},
                                              {"full_attn_alpha_factor", 3.5},
                                              {"linear_attn_beta_factor", 0.5},
                                              {"mlp_alpha_factor", 2},
                                              {"sliding_window", 512}});
  const ModelConfig& model = loaded.config;
  CHECK(model.residual_after_norm);
  for (int32_t i = 0; i < 4; ++i) {
    const LayerPlan& layer = model.layers[static_cast<size_t>(i)];
    CHECK(layer.has_attention == (i % 2 == 0));
    CHECK(layer.has_state == (i % 2 == 1));
    CHECK(layer.sliding_window == (i % 2 == 0 ? 512 : 0));
    CHECK(layer.mlp == MlpKind::kExperts);
    CHECK(layer.mlp_factors == ResidualFactors{.stream = 2.0F});
    CHECK(layer.mixer_factors ==
          (i % 2 == 0 ? ResidualFactors{.stream = 3.5F} : ResidualFactors{.branch = 0.5F}));
  }
  CHECK(recurrent_layout(model).num_heads == 32);
  CHECK(recurrent_layout(model).state_size == 128);
  CHECK(conv_state_size(recurrent_layout(model)) == 0);
  const TensorTable table(loaded);
  const TensorEntry* rates = table.find(Role::kDecayRate, 1);
  CHECK(rates->vector_shape() == std::vector<int64_t>{32, 1, 1});
  CHECK(table.find(Role::kStateIn, 1)->rows == 3 * 4096);
  // By head: all of q, of k, of v.
  const std::vector<Range> rows = rank_ranges(Dim::kLightningIn, model, 1, 0, 1);
  REQUIRE(rows.size() == 96);
  CHECK(rows[1].begin == 384);
  CHECK(rows[32].begin == 128);
  CHECK(rows[64].begin == 256);
  const Json types = {"linear_attention", "linear_attention", "full_attention", "linear_attention"};
  const ModelConfig listed =
      load(kMinimax, {{"num_hidden_layers", 4}, {"layer_types", types}}).config;
  CHECK(count_layers(listed, &LayerPlan::has_state) == 3);
  CHECK(listed.layers[2].has_attention);
}

TEST_CASE("what MiniMax can't be is refused by name") {
  CHECK_THAT(refused(kMinimax, {{"num_hidden_layers", 1}, {"layer_types", {"sliding_attention"}}},
                     Code::kUnsupported),
             Catch::Contains("layer_types[0]: 'sliding_attention' is not supported"));
  CHECK_THAT(refused(kMinimax, {{"num_experts_per_tok", 9}}, Code::kInvalidArgument),
             Catch::Contains("num_experts_per_tok"));
  CHECK_THAT(refused(kMinimax, {{"mlp_alpha_factor", 1e60}}, Code::kInvalidArgument),
             Catch::Contains("mlp_alpha_factor: expected a number that a float holds"));
  CHECK_THAT(refused(kMinimax, {{"rotary_dim", 64}}, Code::kUnsupported),
             Catch::Contains("rotary_dim"));
}

const std::string kMinimaxM3 = "MiniMaxM3VLForCausalLM";

TEST_CASE("MiniMax M3 chooses among blocks in the layers that say so") {
  const Json layers = {{"num_hidden_layers", 3}};
  CHECK(load(kMinimaxM3, layers).config.max_positions == 524288);
  const Json published = {{"num_hidden_layers", 3},
                          {"hidden_act", "swigluoai"},
                          {"moe_layer_freq", {0, 1, 1}},
                          {"sparse_attention_config",
                           {{"sparse_attention_freq", {0, 0, 1}},
                            {"sparse_block_size", 64},
                            {"sparse_topk_blocks", 8},
                            {"sparse_num_index_heads", 2},
                            {"sparse_index_dim", 160},
                            {"sparse_local_block", 3}}}};
  const ModelConfig model = load(kMinimaxM3, published).config;
  CHECK(model.max_positions == 524288);
  CHECK(model.indexer.rule == ChoiceRule{.top_k = 8, .block_size = 64, .local_blocks = 3});
  CHECK(model.indexer.num_heads == 2);
  CHECK(model.indexer.head_dim == 160);
  CHECK(model.layers[1].seen == SeenTokens::kAll);
  CHECK(model.layers[2].seen == SeenTokens::kOwnChoice);
  CHECK(model.layers[0].mlp == MlpKind::kDense);
  CHECK(model.layers[1].mlp == MlpKind::kExperts);
  CHECK(model.intermediate_size == 12288);
  CHECK(model.experts.intermediate_size == 3072);
  CHECK(model.gate_limits.up_offset == 1.0F);
  const Json own = {{"num_hidden_layers", 2},
                    {"layer_types", {"full_attention", "minimax_m3_sparse"}}};
  CHECK(load(kMinimaxM3, own).config.indexer.rule.sees_all_up_to() == 2048);
  CHECK(one_kv_group(load(kMinimaxM3, own).config).heads[0].size() == 3);
}

TEST_CASE("what MiniMax M3 can't be is refused by name") {
  CHECK_THAT(refused(kMinimaxM3, {{"num_hidden_layers", 1}, {"layer_types", {"sliding_attention"}}},
                     Code::kInvalidArgument),
             Catch::Contains("layer_types: entry 0: expected full_attention or minimax_m3_sparse"));
  CHECK_THAT(refused(kMinimaxM3, {{"moe_layer_freq", {1, 2}}}, Code::kInvalidArgument),
             Catch::Contains("moe_layer_freq: expected a list of 0 and 1"));
  CHECK_THAT(refused(kMinimaxM3, {{"num_hidden_layers", 2}, {"moe_layer_freq", {1}}},
                     Code::kInvalidArgument),
             Catch::Contains("expected 2 entries, one per layer, got 1"));
  CHECK_THAT(refused(kMinimaxM3, {{"sparse_attention_config", {{"sparse_swizzle", 1}}}},
                     Code::kInvalidArgument),
             Catch::Contains("sparse_swizzle"));
  const Json sparse = {{"num_hidden_layers", 1}, {"layer_types", {"minimax_m3_sparse"}}};
  const auto with = [&](const char* key, int value) {
    Json out = sparse;
    out[key] = value;
    return out;
  };
  CHECK_THAT(refused(kMinimaxM3, with("index_n_heads", 3), Code::kInvalidArgument),
             Catch::Contains("index_n_heads: expected a divisor of num_attention_heads = 64"));
  CHECK_THAT(refused(kMinimaxM3, with("index_local_blocks", -1), Code::kInvalidArgument),
             Catch::Contains("index_local_blocks: expected 0 to"));
}

}  // namespace
}  // namespace tgi::eighth_families_test
