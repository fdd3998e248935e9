// What the readers of A.X K2, Hunyuan 4, ERNIE 4.5 VL and Cosmos 3 Edge make of their own fields,
// what ranks hold of their tensors, and what they refuse.
#include <string>
#include <utility>

#include "engine/model/architecture.h"
#include "engine/model/rank_ranges.h"
#include "engine/model/tensor_table.h"
#include "tests/catch.h"
#include "tests/model/config_refusal.h"
#include "tests/model/model_files.h"

namespace tgi::ninth_families_test {
namespace {

LoadedConfig load(const std::string& architecture, Json config = Json::object()) {
  config["architectures"] = {architecture};
  return load_config(config);
}

std::string refused(const std::string& architecture, Json config, Code code) {
  config["architectures"] = {architecture};
  return refusal(config, code);
}

const std::string kAxK2 = "AXK2ForCausalLM";

TEST_CASE("A.X K2 makes q and the gates of values of one matrix, which ranks cut by head") {
  const LoadedConfig loaded = load(kAxK2, {{"num_hidden_layers", 2},
                                           {"num_attention_heads", 4},
                                           {"num_key_value_heads", 4},
                                           {"qk_nope_head_dim", 6},
                                           {"qk_rope_head_dim", 4},
                                           {"v_head_dim", 8},
                                           {"q_lora_rank", 10}});
  const TensorTable table(loaded);
  const TensorEntry* q = table.find(Role::kQ, 0);
  const TensorEntry* gates = table.find(Role::kValueGate, 0);
  REQUIRE(q != nullptr);
  REQUIRE(gates != nullptr);
  CHECK(q->name == gates->name);
  CHECK(q->rows == 4 * (10 + 8));
  CHECK(q->cols == 20);
  const auto of_q = rank_ranges(Dim::kLatentQGates, loaded.config, 0, 1, 2);
  REQUIRE(of_q.size() == 2);
  CHECK(of_q[0].begin == 2 * 18);
  CHECK(of_q[0].count == 10);
  const auto of_gates = rank_ranges(Dim::kLatentGatesOfQ, loaded.config, 0, 1, 2);
  REQUIRE(of_gates.size() == 2);
  CHECK(of_gates[1].begin == 3 * 18 + 10);
  CHECK(of_gates[1].count == 8);
  // Norms before experts are gated, those before a dense MLP are not.
  CHECK(table.find(Role::kMlpNormGateIn, 0) == nullptr);
  CHECK(table.find(Role::kMlpNormGateIn, 1)->rows == 16);
  CHECK(table.find(Role::kAttentionNormGateOut, 0)->cols == 16);
  CHECK(loaded.config.experts.route.num_groups == 1);
}

const std::string kHyV4 = "HYV4ForCausalLM";

TEST_CASE("Hunyuan 4 connects its streams to every branch, and some layers choose for others") {
  const LoadedConfig loaded = load(kHyV4, {{"num_hidden_layers", 7}});
  const ModelConfig& model = loaded.config;
  std::string seen;
  for (const LayerPlan& layer : model.layers) {
    seen += layer.seen == SeenTokens::kOwnChoice ? 'F' : 'S';
    CHECK(layer.expert_limits == GateLimits{.limit = 10.0F, .up_limit = 10.0F});
  }
  CHECK(seen == "FFSSSFS");
  CHECK(model.layers[0].mlp == MlpKind::kDense);
  CHECK(model.layers[1].mlp == MlpKind::kExperts);
  CHECK(model.indexer.first_rotated == 64);
  CHECK(model.indexer.norm_eps == 1e-5F);
  CHECK(model.streams.connects);
  CHECK(model.streams.num_connections() == 8);
  CHECK(num_further_streams(model) == 0);
  const TensorTable table(loaded);
  CHECK(table.find(Role::kAttentionConnection, 3)->cols == 4 * 2816);
  CHECK(table.find(Role::kMlpConnectionScale, 3)->cols == 2);
  CHECK(table.find(Role::kHeadConnection)->rows == 4);
  CHECK(table.find(Role::kIndexerKey, 2) == nullptr);
}

TEST_CASE("what Hunyuan 4 can't be is refused by name") {
  CHECK_THAT(refused(kHyV4, {{"hc_mult", 9}}, Code::kInvalidArgument),
             Catch::Contains("hc_mult: expected 1 to 8, got 9"));
  CHECK_THAT(refused(kHyV4, {{"swiglu_limit", 0}}, Code::kInvalidArgument),
             Catch::Contains("swiglu_limit"));
  CHECK_THAT(refused(kHyV4, {{"hc_eps", -1.0}}, Code::kInvalidArgument), Catch::Contains("hc_eps"));
  CHECK_THAT(refused(kHyV4, {{"num_hidden_layers", 2}, {"indexer_types", {"full", "half"}}},
                     Code::kInvalidArgument),
             Catch::Contains("indexer_types: entry 1: expected full or shared, got 'half'"));
  CHECK_THAT(refused(kHyV4, {{"hc_sinkhorn_iters", 20}}, Code::kUnsupported),
             Catch::Contains("hc_sinkhorn_iters"));
}

const std::string kErnieVl = "Ernie4_5_VLMoeForConditionalGeneration";

TEST_CASE("ERNIE 4.5 VL reads the experts for text, and refuses sizes that say something else") {
  const Json text = {{"model_type", "ernie4_5_vl_moe_text"},
                     {"num_hidden_layers", 3},
                     {"moe_num_experts", 5},
                     {"moe_k", 2},
                     {"moe_intermediate_size", {48, 16}}};
  const LoadedConfig loaded = load(kErnieVl, {{"text_config", text}});
  const ExpertsConfig& experts = loaded.config.experts;
  CHECK(experts.num_experts == 5);
  CHECK(experts.num_unread == 5);
  CHECK(experts.intermediate_size == 48);
  CHECK(experts.shared_intermediate_size == 96);
  CHECK(loaded.config.layers[0].mlp == MlpKind::kDense);
  CHECK(loaded.config.layers[2].mlp == MlpKind::kExperts);
  const TensorTable table(loaded);
  const TensorEntry* bias = table.find(Role::kChoiceBias, 1);
  REQUIRE(bias != nullptr);
  CHECK(bias->vector_shape() == std::vector<int64_t>{2, 5});
  Json other = text;
  other["moe_intermediate_size"] = {48, 16, 8};
  CHECK_THAT(refused(kErnieVl, {{"text_config", other}}, Code::kInvalidArgument),
             Catch::Contains("text_config.moe_intermediate_size: expected the sizes of an expert "
                             "for text and of one for images, got [48,16,8]"));
}

TEST_CASE("Cosmos 3 Edge has an MLP without a gate") {
  const Json text = {{"model_type", "cosmos3_edge_text"}};
  const ModelConfig model =
      load("Cosmos3EdgeForConditionalGeneration", {{"text_config", text}}).config;
  CHECK_FALSE(model.gated_mlp);
  CHECK(model.activation == Activation::kReluSquared);
  CHECK(model.ropes.at(0).base == 1e8F);
}

}  // namespace
}  // namespace tgi::ninth_families_test
