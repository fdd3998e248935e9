// What the readers of MiMo V2 Flash and LongCat Flash make of their own fields, and what they
// refuse.
#include <cmath>
#include <string>
#include <utility>

#include "engine/model/architecture.h"
#include "engine/model/kv_plan.h"
#include "engine/model/tensor_table.h"
#include "tests/catch.h"
#include "tests/model/config_refusal.h"
#include "tests/model/model_files.h"

namespace tgi::seventh_families_test {
namespace {

const std::string kMiMo = "MiMoV2FlashForCausalLM";
const std::string kLongcat = "LongcatFlashForCausalLM";

LoadedConfig load(const std::string& architecture, Json config = Json::object()) {
  config["architectures"] = {architecture};
  return load_config(config);
}

std::string refused(const std::string& architecture, Json config, Code code) {
  config["architectures"] = {architecture};
  return refusal(config, code);
}

// The fields of XiaomiMiMo/MiMo-V2-Flash, for seven layers.
Json published_mimo() {
  return {{"architectures", {kMiMo}},
          {"model_type", "mimo_v2_flash"},
          {"num_hidden_layers", 7},
          {"layernorm_epsilon", 1e-5},
          {"hybrid_layer_pattern", {0, 1, 1, 1, 1, 0, 1}},
          {"moe_layer_freq", {0, 1, 1, 1, 1, 1, 1}},
          {"sliding_window", 128},
          {"sliding_window_size", 128},
          {"attention_chunk_size", 128},
          {"hybrid_block_size", nullptr},
          {"num_attention_heads", 64},
          {"num_key_value_heads", 4},
          {"head_dim", 192},
          {"v_head_dim", 128},
          {"swa_num_attention_heads", 64},
          {"swa_num_key_value_heads", 8},
          {"swa_head_dim", 192},
          {"swa_v_head_dim", 128},
          {"rope_theta", 5000000},
          {"swa_rope_theta", 10000},
          {"partial_rotary_factor", 0.334},
          {"attention_value_scale", 0.707},
          {"add_full_attention_sink_bias", false},
          {"add_swa_attention_sink_bias", true},
          {"n_shared_experts", nullptr},
          {"routed_scaling_factor", nullptr},
          {"scoring_func", "sigmoid"},
          {"topk_method", "noaux_tc"}};
}

TEST_CASE("MiMo's layers with a window have twice the KV heads, sinks and another rotation") {
  const LoadedConfig loaded = load(kMiMo);
  const ModelConfig& model = loaded.config;
  CHECK(model.value_dim == 128);
  CHECK(model.attention_output_multiplier == 0.707F);
  CHECK(model.experts.shared_intermediate_size == 0);
  for (int32_t i = 0; i < model.num_layers; ++i) {
    const LayerPlan& layer = model.layers[static_cast<size_t>(i)];
    const bool is_full = i == 0 || (i + 1) % 6 == 0;
    CHECK(layer.sliding_window == (is_full ? 0 : 129));
    CHECK(layer.mlp == (i == 0 ? MlpKind::kDense : MlpKind::kExperts));
    CHECK(kv_heads_of(model, i) ==
          KvHeads{.num_kv_heads = is_full ? 4 : 8, .head_dim = 192, .value_dim = 128});
    CHECK(model.ropes[static_cast<size_t>(layer.rope)].base == (is_full ? 5e6F : 1e4F));
    CHECK(model.ropes[static_cast<size_t>(layer.rope)].rotary_dim == 64);
  }
  const TensorTable table(loaded);
  CHECK(table.find(Role::kV, 0)->rows == 4 * 128);
  CHECK(table.find(Role::kV, 1)->rows == 8 * 128);
  CHECK(table.find(Role::kK, 1)->rows == 8 * 192);
  CHECK(table.find(Role::kO, 1)->cols == 64 * 128);
  CHECK(table.find(Role::kSinks, 0) == nullptr);
  CHECK(table.find(Role::kSinks, 1)->cols == 64);
}

TEST_CASE("MiMo's published spelling says what the class in transformers does") {
  const ModelConfig published = load_config(published_mimo()).config;
  const ModelConfig own = load(kMiMo, {{"num_hidden_layers", 7}}).config;
  CHECK(published.layers == own.layers);
  CHECK(published.value_dim == own.value_dim);
  CHECK(published.norm_eps == own.norm_eps);
  CHECK(published.ropes[0].inv_freq == own.ropes[0].inv_freq);
  CHECK(published.ropes[1].inv_freq == own.ropes[1].inv_freq);
  CHECK(published.experts.route == own.experts.route);
}

TEST_CASE("a KV cache of values that are shorter than keys is planned by both") {
  const ModelConfig model = load(kMiMo, {{"num_hidden_layers", 12}}).config;
  const KvPlan plan = one_kv_group(model);
  REQUIRE(plan.heads.size() == 1);
  REQUIRE(plan.heads[0].size() == 12);
  CHECK(plan.heads[0][1].key_numbers() == 8 * 192);
  CHECK(plan.heads[0][1].value_numbers() == 8 * 128);
  // Values that are as long as their keys are nothing to be planned for.
  CHECK(load(kMiMo, {{"v_head_dim", 192}}).config.value_dim == 0);
}

TEST_CASE("what MiMo can't be is refused by name") {
  const auto refused_mimo = [](const char* key, const Json& value, Code code) {
    Json config = published_mimo();
    config[key] = value;
    return refused(kMiMo, std::move(config), code);
  };
  CHECK_THAT(refused_mimo("hybrid_layer_pattern", {0, 1, 2, 1, 1, 0, 1}, Code::kInvalidArgument),
             Catch::Contains("hybrid_layer_pattern: expected a list of 0 and 1"));
  CHECK_THAT(refused_mimo("moe_layer_freq", 1, Code::kInvalidArgument),
             Catch::Contains("moe_layer_freq: expected a list of 0 and 1, got 1"));
  CHECK_THAT(refused_mimo("moe_layer_freq", {0, 1}, Code::kInvalidArgument),
             Catch::Contains("expected 7 entries"));
  CHECK_THAT(refused_mimo("swa_num_key_value_heads", 7, Code::kInvalidArgument),
             Catch::Contains("swa_num_key_value_heads: layers with a window have 7 KV heads, of "
                             "which 64 heads are no multiple"));
  CHECK_THAT(refused_mimo("swa_v_head_dim", 64, Code::kUnsupported),
             Catch::Contains("swa_v_head_dim: 64 is not supported, expected 128"));
  CHECK_THAT(refused_mimo("add_full_attention_sink_bias", true, Code::kUnsupported),
             Catch::Contains("add_full_attention_sink_bias"));
  CHECK_THAT(refused_mimo("attention_projection_layout", "fused_qkv", Code::kUnsupported),
             Catch::Contains("attention_projection_layout"));
  CHECK_THAT(refused_mimo("v_head_dim", 0, Code::kInvalidArgument), Catch::Contains("v_head_dim"));
}

TEST_CASE("a layer of LongCat is two, with experts beside the first MLP") {
  const LoadedConfig loaded = load(kLongcat, {{"num_layers", 3}});
  const ModelConfig& model = loaded.config;
  CHECK(model.num_layers == 6);
  for (int32_t i = 0; i < 6; ++i) {
    CHECK(model.layers[static_cast<size_t>(i)].mlp ==
          (i % 2 == 0 ? MlpKind::kShortcut : MlpKind::kDense));
  }
  CHECK(model.experts.num_experts == 512);
  CHECK(model.experts.num_choices() == 768);
  CHECK(model.experts.route.num_identity == 256);
  CHECK(model.experts.route.scale == 6.0F);
  CHECK(model.latent.multiplier == static_cast<float>(std::sqrt(6144.0 / 512)));
  const TensorTable table(loaded);
  CHECK(table.find(Role::kO, 5)->name == "model.layers.2.self_attn.1.o_proj.weight");
  CHECK(table.find(Role::kRouter, 4)->rows == 768);
  CHECK(table.find(Role::kRouter, 5) == nullptr);
  CHECK(table.find(Role::kExpertUp, 4, 511)->name ==
        "model.layers.2.mlp.experts.511.up_proj.weight");
  CHECK(load(kLongcat, {{"zero_expert_num", nullptr}}).config.experts.num_choices() == 512);
  CHECK(load(kLongcat, {{"num_hidden_layers", 8}}).config.num_layers == 8);
}

TEST_CASE("what LongCat can't be is refused by name") {
  CHECK_THAT(
      refused(kLongcat, {{"num_hidden_layers", 7}, {"num_layers", 4}}, Code::kInvalidArgument),
      Catch::Contains("num_hidden_layers: expected twice num_layers = 4"));
  CHECK_THAT(refused(kLongcat, {{"q_lora_rank", nullptr}}, Code::kUnsupported),
             Catch::Contains("q_lora_rank"));
  CHECK_THAT(refused(kLongcat, {{"zero_expert_num", -1}}, Code::kInvalidArgument),
             Catch::Contains("zero_expert_num: expected 0 to"));
  CHECK_THAT(refused(kLongcat, {{"zero_expert_type", "zero"}}, Code::kUnsupported),
             Catch::Contains("zero_expert_type"));
  CHECK_THAT(refused(kLongcat, {{"moe_topk", 800}}, Code::kInvalidArgument),
             Catch::Contains("moe_topk: 800 experts for a token, but n_routed_experts is 512, "
                             "beside 256 without matrices"));
}

}  // namespace
}  // namespace tgi::seventh_families_test
