// Latent attention as the readers of its families make it, how its matrices are cut by head, and
// what is refused. What the models compute is judged in tests/promises.
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/model/model_weights.h"
#include "engine/model/state_layout.h"
#include "engine/model/weight_check.h"
#include "tests/catch.h"
#include "tests/model/config_refusal.h"
#include "tests/model/fake_device.h"
#include "tests/model/model_files.h"

namespace tgi {
namespace {

// Sizes that no two dimensions share.
Json small_deepseek(const Json& changes = Json::object()) {
  Json out = {{"architectures", {"DeepseekV3ForCausalLM"}},
              {"vocab_size", 11},
              {"hidden_size", 10},
              {"intermediate_size", 16},
              {"moe_intermediate_size", 6},
              {"num_hidden_layers", 2},
              {"first_k_dense_replace", 1},
              {"num_attention_heads", 4},
              {"kv_lora_rank", 7},
              {"q_lora_rank", 9},
              {"qk_nope_head_dim", 3},
              {"qk_rope_head_dim", 2},
              {"v_head_dim", 5},
              {"n_routed_experts", 4},
              {"num_experts_per_tok", 2},
              {"n_group", 2},
              {"topk_group", 1},
              {"torch_dtype", "float32"}};
  out.update(changes);
  return out;
}

std::string refusal_of_config(const Json& config) {
  try {
    load_config(config);
  } catch (const Error& error) {
    return error.what();
  }
  FAIL("was accepted: " << config.dump());
  return "";
}

std::string refusal_of_weights(const LoadedConfig& model, const std::vector<TestTensor>& tensors) {
  try {
    check_weights(model, *open_checkpoint(weight_files(tensors)));
  } catch (const Error& error) {
    CHECK(error.code() == Code::kInvalidArgument);
    return error.what();
  }
  FAIL("was accepted");
  return "";
}

TEST_CASE("latent attention caches one row for all heads, whole on every rank") {
  const ModelConfig config = load_config(small_deepseek()).config;
  CHECK(config.head_dim == 5);
  CHECK(config.latent.key_dim() == 9);
  for (const int num_ranks : {1, 2}) {
    const KvLayout layout =
        kv_layout(config, one_kv_group(config), {.num_ranks = num_ranks, .num_blocks = 3});
    CHECK(layout.num_kv_heads == 1);
    CHECK(layout.head_dim == 9);
    CHECK(layout.latent_dim == 7);
    const SlotLayout slots = slot_layout(config, one_kv_group(config), {.num_ranks = num_ranks});
    CHECK(slots.num_heads == 4 / num_ranks);
    CHECK(slots.num_kv_heads == 1);
    CHECK(slots.latent_dim == 7);
  }
  CHECK(kv_layout(load_config(small_llama()).config, {}, {}).latent_dim == 0);
}

TEST_CASE("kimi k2 is DeepSeek V3 under a type of its own") {
  CHECK(load_config(small_deepseek({{"model_type", "kimi_k2"}})).config.latent.rank == 7);
  const Json by_type = {{"model_type", "kimi_k2"}, {"num_hidden_layers", 1}};
  CHECK(load_config(by_type).config.architecture == "DeepseekV3ForCausalLM");
}

// As published, with fp8 and the layer that predicts a second token.
TEST_CASE("the config of DeepSeek V3 is taken as it is published") {
  const Json config = parse_json(R"({
    "architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "auto_map": {"AutoConfig": "configuration_deepseek.DeepseekV3Config"},
    "aux_loss_alpha": 0.001, "bos_token_id": 0, "eos_token_id": 1, "ep_size": 1,
    "first_k_dense_replace": 3, "hidden_act": "silu", "hidden_size": 7168,
    "initializer_range": 0.02, "intermediate_size": 18432, "kv_lora_rank": 512,
    "max_position_embeddings": 163840, "model_type": "deepseek_v3", "moe_intermediate_size": 2048,
    "moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1,
    "norm_topk_prob": true, "num_attention_heads": 128, "num_experts_per_tok": 8,
    "num_hidden_layers": 61, "num_key_value_heads": 128, "num_nextn_predict_layers": 1,
    "pretraining_tp": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8",
                            "weight_block_size": [128, 128]},
    "rms_norm_eps": 1e-06,
    "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0,
                     "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096,
                     "type": "yarn"},
    "rope_theta": 10000, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "seq_aux": true,
    "tie_word_embeddings": false, "topk_group": 4, "topk_method": "noaux_tc",
    "torch_dtype": "bfloat16", "transformers_version": "4.33.1", "use_cache": true,
    "v_head_dim": 128, "vocab_size": 129280})");
  const LoadedConfig model = load_config(config);
  CHECK(model.config.max_positions == 163840);
  CHECK(model.config.layers[2].mlp == MlpKind::kDense);
  CHECK(model.config.layers[3].mlp == MlpKind::kExperts);
  int64_t num_params = 0;
  const TensorTable table(model);
  for (const TensorEntry& entry : table.entries()) num_params += entry.rows * entry.cols;
  CHECK(num_params == 671026419200);  // "671B"
  CHECK(kv_layout(model.config, {}, {.num_ranks = 8}).head_dim == 576);
}

TEST_CASE("where later tokens see a choice of those before them, what is left without it ends") {
  Json config = {{"architectures", {"DeepseekV32ForCausalLM"}},
                 {"num_hidden_layers", 2},
                 {"max_position_embeddings", 163840},
                 {"index_topk", 1000}};
  ModelConfig model = load_config(config).config;
  CHECK(model.max_positions == 163840);
  CHECK(model.indexer.num_heads == 64);
  CHECK(model.indexer.rule.top_k == 1000);
  CHECK_FALSE(model.ropes[static_cast<size_t>(model.indexer.rope)].interleaved);
  const KvPlan plan = one_kv_group(model);
  REQUIRE(plan.heads.size() == 1);
  const KvHeads latent = {.num_kv_heads = 1, .head_dim = 576, .keys_only = true};
  const KvHeads key = {.num_kv_heads = 1, .head_dim = 128, .keys_only = true};
  CHECK(plan.heads[0] == std::vector<KvHeads>{latent, latent, key, key});
  CHECK(plan.indexer_places[1] == KvPlace{.group = 0, .layer = 3});
  CHECK(kv_layout(model, plan, {.num_ranks = 8}).groups == plan.heads);
  leave_out_indexer(model);
  CHECK(model.max_positions == 1000);
  CHECK(model.stated_positions == 163840);
  CHECK(one_kv_group(model).heads.empty());
  config["max_position_embeddings"] = 1000;
  model = load_config(config).config;
  leave_out_indexer(model);
  CHECK(model.max_positions == 1000);
  CHECK(model.stated_positions == 0);
  config["index_topk"] = 0;
  CHECK_THAT(refusal(config, Code::kInvalidArgument), Catch::Contains("index_topk: expected 1 to"));
  config["index_topk"] = 8;
  config["index_head_dim"] = 63;
  CHECK_THAT(refusal(config, Code::kInvalidArgument),
             Catch::Contains("index_head_dim: expected at least the 64 columns that are rotated"));
  config["index_head_dim"] = 64;
  config["index_n_heads"] = 129;
  CHECK_THAT(refusal(config, Code::kInvalidArgument), Catch::Contains("index_n_heads"));
  config["index_n_heads"] = 128;
  config["q_lora_rank"] = nullptr;
  CHECK_THAT(refusal(config, Code::kInvalidArgument), Catch::Contains("q_lora_rank"));
  config = {{"architectures", {"GlmMoeDsaForCausalLM"}},
            {"num_hidden_layers", 5},
            {"index_topk_freq", 2},
            {"index_skip_topk_offset", 1}};
  const auto seen = [&] {
    std::string out;
    for (const LayerPlan& layer : load_config(config).config.layers) {
      out += layer.seen == SeenTokens::kOwnChoice ? 'F' : 'S';
    }
    return out;
  };
  CHECK(seen() == "FSFSF");
  config["index_topk_pattern"] = "FSSFS";
  CHECK(seen() == "FSSFS");
  config["indexer_types"] = {"full", "full", "shared", "shared", "full"};
  CHECK(seen() == "FFSSF");
  config["indexer_types"] = {"shared", "full", "shared", "shared", "full"};
  CHECK_THAT(refusal(config, Code::kInvalidArgument),
             Catch::Contains("indexer_types: entry 0: expected full, as no layer before it"));
  config = {{"architectures", {"GlmMoeDsaForCausalLM"}}, {"index_windows", 2}};
  CHECK_THAT(refusal(config, Code::kUnsupported), Catch::Contains("index_windows = 2"));
}

TEST_CASE("yarn's mscale_all_dim multiplies the scores of latent attention") {
  const Json yarn = {{"type", "yarn"},
                     {"factor", 40},
                     {"mscale", 0.707},
                     {"mscale_all_dim", 0.707},
                     {"original_max_position_embeddings", 4096}};
  const float plain = load_config(small_deepseek()).config.attention_scale;
  const double mscale = 0.1 * 0.707 * std::log(40.0) + 1.0;
  for (const char* name :
       {"DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "Glm4MoeLiteForCausalLM"}) {
    Json config = small_deepseek({{"architectures", {name}}, {"rope_scaling", yarn}});
    const ModelConfig scaled = load_config(config).config;
    CHECK(scaled.attention_scale == Approx(static_cast<double>(plain) * mscale * mscale));
    CHECK(scaled.ropes.at(0).attention_factor == 1.0F);
    config["rope_scaling"].erase("mscale_all_dim");
    CHECK(load_config(config).config.attention_scale == plain);
  }
}

TEST_CASE("DeepSeek V2's groups count only where topk_method says so") {
  Json config = small_deepseek({{"architectures", {"DeepseekV2ForCausalLM"}},
                                {"topk_method", "group_limited_greedy"},
                                {"routed_scaling_factor", 16.0}});
  const RouteRule grouped = load_config(config).config.experts.route;
  CHECK(grouped.score == RouterScore::kSoftmax);
  CHECK(grouped.num_groups == 2);
  CHECK(grouped.group_best == 1);
  CHECK_FALSE(grouped.normalises);
  CHECK(grouped.scale == 16.0F);
  config["topk_method"] = "greedy";
  CHECK(load_config(config).config.experts.route.num_groups == 1);
  config["topk_method"] = "noaux_tc";
  CHECK_THAT(refusal_of_config(config), Catch::Contains("topk_method: 'noaux_tc'"));
}

TEST_CASE("each head's keys and values are made by a matrix of its own, keys by the transpose") {
  for (const bool has_short_queries : {true, false}) {
    const LoadedConfig model =
        load_config(small_deepseek({{"q_lora_rank", has_short_queries ? Json(9) : Json(nullptr)}}));
    const auto tensors = small_tensors(model);
    const MemorySource files = weight_files(tensors);
    float first = 0;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].name == "model.layers.1.self_attn.kv_b_proj.weight") {
        first = static_cast<float>(i);
      }
    }
    // Rows of kv_b_proj, by head: 3 of the key, 5 of the value; 7 columns.
    const auto stored = [&](int64_t head, int64_t row, int64_t col) {
      return first + static_cast<float>(((head * 8 + row) * 7 + col)) / 1000.0F;
    };
    for (const int num_ranks : {1, 2}) {
      for (int rank = 0; rank < num_ranks; ++rank) {
        FakeDevice device;
        const LoadWeightsOptions options{
            .dtype = DType::kF32, .rank = rank, .world_size = num_ranks};
        const ModelWeights weights = load_weights(model, *open_checkpoint(files), device, options);
        CHECK(weights.size_bytes == plan_weight_bytes(model, device, options));
        CHECK(weights.size_bytes == device.allocated_bytes);
        const LayerWeights& layer = weights.layers[1];
        REQUIRE(static_cast<int>(layer.key_up.views.size()) == 4 / num_ranks);
        for (int64_t h = 0; h < 4 / num_ranks; ++h) {
          const int64_t head = rank * (4 / num_ranks) + h;
          const FakeMatrix& key = fake(*layer.key_up.views[static_cast<size_t>(h)]);
          const FakeMatrix& value = fake(*layer.value_up.views[static_cast<size_t>(h)]);
          REQUIRE(key.rows == 7);
          REQUIRE(key.cols == 3);
          CHECK(key.at(6, 1) == stored(head, 1, 6));
          CHECK(key.at(0, 2) == stored(head, 2, 0));
          REQUIRE(value.rows == 5);
          REQUIRE(value.cols == 7);
          CHECK(value.at(4, 6) == stored(head, 3 + 4, 6));
        }
        // The short rows are whole on each rank; q, which is made of them, is cut by heads.
        CHECK(layer.latent_down.weight->rows == (has_short_queries ? 9 : 0) + 9);
        CHECK(layer.qkv.weight->rows == 4 * 5 / num_ranks);
        CHECK(layer.qkv.weight->cols == (has_short_queries ? 9 : 10));
        CHECK(layer.o.weight->cols == 4 * 5 / num_ranks);
      }
    }
  }
}

TEST_CASE("matrices of heads are int8 at least where the layers are quantised") {
  const LoadedConfig model = load_config(small_deepseek());
  const MemorySource files = weight_files(small_tensors(model));
  for (const Quantization kind : {Quantization::kInt8, Quantization::kInt4}) {
    FakeDevice device;
    const LoadWeightsOptions options{.quantization = kind};
    const ModelWeights weights = load_weights(model, *open_checkpoint(files), device, options);
    CHECK(weights.size_bytes == plan_weight_bytes(model, device, options));
    CHECK(fake(*weights.layers[0].latent_down.weight).storage.quantization == kind);
    for (const Matrix* one :
         {weights.layers[0].key_up.views[3], weights.layers[0].value_up.views[0]}) {
      CHECK(fake(*one).storage == MatrixStorage(Quantization::kInt8, kInt8GroupSize));
    }
  }
}

TEST_CASE("a stored layer after the last predicts a second token: it is left alone, others not") {
  const LoadedConfig model = load_config(small_deepseek());
  std::vector<TestTensor> tensors = small_tensors(model);
  tensors.push_back({"model.layers.2.eh_proj.weight", "F32", "[1]", f32_bytes({1.0F})});
  CHECK_NOTHROW(check_weights(model, *open_checkpoint(weight_files(tensors))));
  tensors.back().name = "model.layers.20.eh_proj.weight";
  CHECK_THAT(refusal_of_weights(model, tensors), Catch::Contains("not of this model"));
}

TEST_CASE("ranks that don't fit the weights, and missing shared experts, are listed") {
  const LoadedConfig model = load_config(small_deepseek());
  const std::vector<TestTensor> tensors = small_tensors(model);
  const LoadedConfig wider = load_config(small_deepseek({{"kv_lora_rank", 8}}));
  CHECK_THAT(refusal_of_weights(wider, tensors),
             Catch::Contains("model.layers.0.self_attn.kv_a_proj_with_mqa.weight: expected (10, 10)"
                             ", got (9, 10)") &&
                 Catch::Contains("kv_b_proj.weight: expected (32, 8), got (32, 7)"));
  const LoadedConfig shorter = load_config(small_deepseek({{"q_lora_rank", nullptr}}));
  CHECK_THAT(refusal_of_weights(shorter, tensors),
             Catch::Contains("self_attn.q_proj.weight") && Catch::Contains("q_a_proj.weight"));
  std::vector<TestTensor> without = tensors;
  std::erase_if(without, [](const TestTensor& each) {
    return each.name.find("shared") != std::string::npos;
  });
  CHECK_THAT(refusal_of_weights(model, without),
             Catch::Contains("3 tensors missing") && Catch::Contains("shared_experts.up_proj"));
}

TEST_CASE("sizes of latent attention that can't be are refused with what was expected") {
  struct Bad {
    Json fields;
    const char* message;
  };
  const std::vector<Bad> all = {
      {{{"kv_lora_rank", 0}}, "kv_lora_rank: expected 1 to 65536, got 0"},
      {{{"kv_lora_rank", 1 << 20}}, "kv_lora_rank: expected 1 to 65536, got 1048576"},
      {{{"q_lora_rank", -3}}, "q_lora_rank: expected 1 to 65536, got -3"},
      {{{"q_lora_rank", "9"}}, "q_lora_rank"},
      {{{"qk_nope_head_dim", 0}}, "qk_nope_head_dim: expected 1 to 4096, got 0"},
      {{{"qk_rope_head_dim", 3}}, "qk_rope_head_dim: rotary embeddings need an even number, got 3"},
      {{{"qk_rope_head_dim", 0}}, "qk_rope_head_dim: expected 1 to 4096, got 0"},
      {{{"v_head_dim", -1}}, "v_head_dim: expected 1 to 4096, got -1"},
      {{{"num_key_value_heads", 2}}, "num_key_value_heads: expected as many as"},
      {{{"num_attention_heads", 60000}, {"kv_lora_rank", 100}},
       "kv_lora_rank: 60000 heads of 102 columns"},
      {{{"num_experts_per_tok", 5}}, "num_experts_per_tok: 5 experts for a token"},
      {{{"num_experts_per_tok", 3}}, "topk_group: the 1 best groups have 2 experts"},
      {{{"n_group", 3}}, "n_group: 4 experts can't be cut into 3 groups evenly"},
      {{{"topk_group", 3}}, "topk_group: 3 groups of 2"},
      {{{"scoring_func", "softmax"}}, "scoring_func"},
      {{{"num_local_experts", 5}}, "num_local_experts: 5 contradicts n_routed_experts = 4"},
      {{{"architectures", {"Glm4MoeLiteForCausalLM"}}, {"mlp_layer_types", {"sparse"}}},
       "mlp_layer_types: expected 2 entries, one per layer, got 1"},
      {{{"architectures", {"Glm4MoeLiteForCausalLM"}}, {"mlp_layer_types", {"dense", "wide"}}},
       "mlp_layer_types: entry 1: expected dense or sparse, got 'wide'"},
  };
  for (const Bad& bad : all) {
    INFO(bad.fields.dump());
    CHECK_THAT(refusal_of_config(small_deepseek(bad.fields)), Catch::Contains(bad.message));
  }
}

TEST_CASE("deepseek v2 norms the weights of experts instead of scaling them") {
  const auto rule = [](bool norms, int32_t top_k) {
    Json config = small_deepseek({{"norm_topk_prob", norms},
                                  {"num_experts_per_tok", top_k},
                                  {"scoring_func", "softmax"},
                                  {"topk_method", "greedy"},
                                  {"routed_scaling_factor", 16.0}});
    config["architectures"] = {"DeepseekV2ForCausalLM"};
    return load_config(config).config.experts.route;
  };
  CHECK(rule(false, 2).scale == 16.0F);
  CHECK_FALSE(rule(false, 2).normalises);
  CHECK(rule(true, 2).scale == 1.0F);
  CHECK(rule(true, 2).normalises);
  CHECK(rule(true, 1).scale == 16.0F);
  CHECK_FALSE(rule(true, 1).normalises);
}

TEST_CASE("a model with latent attention can't be dealt out to ranks that don't divide its heads") {
  const LoadedConfig model = load_config(small_deepseek());
  const MemorySource files = weight_files(small_tensors(model));
  FakeDevice device;
  CHECK_THROWS_WITH(load_weights(model, *open_checkpoint(files), device, {.world_size = 3}),
                    Catch::Contains("num_heads of the model is 4"));
}

}  // namespace
}  // namespace tgi
