// What the readers of EXAONE 3, IQuest-Coder, A.X K1, Sarvam, OLMo Hybrid, Kimi Linear, Ling 3,
// Flint and Phi-4-multimodal make of their own fields, and what they refuse; and names of fields
// that transformers writes since version 5.24.
#include <algorithm>
#include <string>
#include <vector>

#include "engine/model/tensor_table.h"
#include "tests/catch.h"
#include "tests/model/config_refusal.h"
#include "tests/model/model_files.h"

namespace tgi::latest_families_test {
namespace {

ModelConfig read(const std::string& architecture, Json config) {
  config["architectures"] = {architecture};
  return load_config(config).config;
}

std::string refused(const std::string& architecture, Json config, Code code) {
  config["architectures"] = {architecture};
  return refusal(config, code);
}

TEST_CASE("a class that computes several families is that of the model_type") {
  const Json config = {{"architectures", {"LlamaForCausalLM"}}, {"model_type", "exaone"}};
  CHECK(load_config(config).config.architecture == "ExaoneForCausalLM");
  CHECK(load_config(config).config.vocab_size == 102400);
  const auto family_of = [](const char* name, const char* type) {
    return load_config({{"architectures", {name}}, {"model_type", type}, {"head_dim", 128}})
        .config.architecture;
  };
  CHECK(family_of("LlamaForCausalLM", "iquestcoder") == "IQuestCoderForCausalLM");
  CHECK(family_of("Glm4MoeForCausalLM", "sarvam_moe") == "SarvamMoEForCausalLM");
  CHECK(family_of("DeepseekV3ForCausalLM", "sarvam_mla") == "SarvamMLAForCausalLM");
  CHECK(family_of("Glm4MoeForCausalLM", "glm4_moe") == "Glm4MoeForCausalLM");
  CHECK(family_of("LlamaForCausalLM", "llama") == "LlamaForCausalLM");
  CHECK(family_of("LlamaModel", "exaone") == "ExaoneForCausalLM");  // saved without a head
  CHECK_THAT(refused("", {{"model_type", "sarvam_moe"}}, Code::kUnsupported),
             Catch::Contains("architectures"));
  // What computes another is no name of it.
  CHECK_THAT(refused("LlamaForCausalLM", {{"model_type", "sarvam_moe"}}, Code::kInvalidArgument),
             Catch::Contains("'sarvam_moe' does not go with the architecture LlamaForCausalLM"));
}

// As transformers 5.24 saves models whose published files have other names.
TEST_CASE("new names of fields mean what the old ones did") {
  const Json six = {{"num_local_experts", 6}, {"num_experts_per_tok", 2}};
  for (const char* name : {"Qwen3MoeForCausalLM", "Qwen3VLMoeTextModel"}) {
    INFO(name);
    Json config = six;
    config["head_dim"] = 128;
    CHECK(read(name, config).experts.num_experts == 6);
    config["num_experts"] = 5;
    CHECK_THAT(refused(name, config, Code::kInvalidArgument), Catch::Contains("contradicts"));
  }

  const ModelConfig intern =
      read("InternLM3ForCausalLM", {{"attention_bias", true}, {"mlp_bias", true}});
  CHECK(intern.attention_bias);
  CHECK(intern.attention_output_bias);
  CHECK(intern.mlp_bias);

  CHECK(read("GptOssForCausalLM", {{"swiglu_alpha", 1.5}}).gate_limits.slope == 1.5F);

  const Json kinds = {"linear_attention", "full_attention", "mamba", "attention"};
  const ModelConfig granite =
      read("GraniteMoeHybridForCausalLM", {{"num_hidden_layers", 4}, {"layer_types", kinds}});
  for (size_t i = 0; i < 4; ++i) {
    CHECK(granite.layers[i].has_attention == (i % 2 == 1));
    CHECK(granite.layers[i].has_state == (i % 2 == 0));
  }
}

TEST_CASE("a list of layers that the class passes over is no way to lose its window") {
  const auto with = [](const char* name, Json config) {
    config["num_hidden_layers"] = 2;
    config["layer_types"] = {"full_attention", "full_attention"};
    return refused(name, config, Code::kUnsupported);
  };
  for (const char* name : {"Starcoder2ForCausalLM", "Ministral3ForCausalLM", "Phi3ForCausalLM"}) {
    INFO(name);
    CHECK_THAT(with(name, {{"sliding_window", 8}}), Catch::Contains("layer_types"));
  }
  const Json switched = {{"use_sliding_window", true}};
  CHECK_THAT(with("Qwen3MoeForCausalLM", switched), Catch::Contains("layer_types"));
  CHECK(read("Qwen3MoeForCausalLM", switched).layers.front().sliding_window == 4096);
  // The rope widens the context beyond a window of all that is stated.
  CHECK_THAT(with("Ministral3ForCausalLM",
                  {{"max_position_embeddings", 16384}, {"sliding_window", 16384}}),
             Catch::Contains("layer_types"));
}

TEST_CASE("fields that say nothing, or half of something, are refused before they are used") {
  CHECK_THAT(refused("GPTNeoForCausalLM",
                     {{"attention_types", Json::parse("[[[], 9000000000000000000]]")}},
                     Code::kInvalidArgument),
             Catch::Contains("attention_types"));
  CHECK_THAT(refused("MiniMaxM2ForCausalLM", {{"rotary_dim", 63}}, Code::kInvalidArgument),
             Catch::Contains("rotary_dim") && Catch::Contains("63"));
}

TEST_CASE("EXAONE 3 takes the names of its fields that others have, and no contradiction") {
  const ModelConfig model =
      read("ExaoneForCausalLM",
           {{"num_layers", 3}, {"layer_norm_epsilon", 1e-3}, {"activation_function", "gelu"}});
  CHECK(model.num_layers == 3);
  CHECK(model.norm_eps == 1e-3F);
  CHECK(model.activation == Activation::kGelu);
  CHECK_THAT(refused("ExaoneForCausalLM", {{"num_layers", 3}, {"num_hidden_layers", 4}},
                     Code::kInvalidArgument),
             Catch::Contains("contradicts"));
}

TEST_CASE("IQuest-Coder's heads divide hidden_size where the file says null") {
  const Json config = {{"hidden_size", 2048}, {"num_attention_heads", 32}};
  CHECK(read("IQuestCoderForCausalLM", config).head_dim == 128);
  Json null = config;
  null["head_dim"] = nullptr;
  CHECK(read("IQuestCoderForCausalLM", null).head_dim == 64);
}

TEST_CASE("null for whether pairs of a head are rotated means halves") {
  for (const char* name : {"DeepseekV3ForCausalLM", "AXK1ForCausalLM", "SarvamMLAForCausalLM"}) {
    INFO(name);
    CHECK(read(name, Json::object()).ropes.front().interleaved);
    CHECK_FALSE(read(name, {{"rope_interleave", nullptr}}).ropes.front().interleaved);
  }
}

TEST_CASE("IQuest-Coder refuses what its class refuses") {
  CHECK_THAT(refused("IQuestCoderForCausalLM", {{"clip_qkv", 3.0}}, Code::kUnsupported),
             Catch::Contains("clip_qkv"));
  CHECK_THAT(refused("IQuestCoderForCausalLM", {{"use_sliding_window", true}}, Code::kUnsupported),
             Catch::Contains("use_sliding_window"));
}

TEST_CASE("A.X K1 norms what experts give, in no other layer, and has experts by either spelling") {
  const Json config = {{"num_hidden_layers", 3},
                       {"mlp_layer_types", {"sparse", "dense", "sparse"}}};
  Json named = config;
  named["architectures"] = {"AXK1ForCausalLM"};
  const LoadedConfig loaded = load_config(named);
  const TensorTable table(loaded);
  CHECK(table.find(Role::kMlpPostNorm, 0) != nullptr);
  CHECK(table.find(Role::kMlpPostNorm, 1) == nullptr);
  CHECK(table.find(Role::kChoiceBias, 2) != nullptr);  // nobody knows of a file without it
  const ModelConfig old =
      read("AXK1ForCausalLM", {{"num_hidden_layers", 3}, {"first_k_dense_replace", 2}});
  CHECK(old.layers[1].mlp == MlpKind::kDense);
  CHECK(old.layers[2].mlp == MlpKind::kExperts);
  CHECK_THAT(refused("AXK1ForCausalLM", {{"moe_layer_freq", 2}}, Code::kUnsupported),
             Catch::Contains("moe_layer_freq"));
}

TEST_CASE("Sarvam's older spellings mean what the newer ones do") {
  const Json newer = {{"n_routed_experts", 12}, {"n_shared_experts", 2}, {"attention_bias", true}};
  const Json older = {{"num_experts", 12}, {"num_shared_experts", 2}, {"use_qkv_bias", true}};
  for (const Json& config : {newer, older}) {
    const ModelConfig model = read("SarvamMoEForCausalLM", config);
    CHECK(model.experts.num_experts == 12);
    CHECK(model.experts.shared_intermediate_size == 2 * model.experts.intermediate_size);
    CHECK(model.attention_bias);
  }
  const auto rope = [](const char* type) {
    return read("SarvamMLAForCausalLM",
                {{"rope_theta", 10000.0},
                 {"rope_scaling",
                  {{"type", type}, {"factor", 4.0}, {"original_max_position_embeddings", 4096}}}})
        .ropes.front()
        .inv_freq;
  };
  CHECK(rope("deepseek_yarn") == rope("yarn"));
  CHECK_THAT(refused("SarvamMoEForCausalLM", {{"score_function", "softmax"}}, Code::kUnsupported),
             Catch::Contains("score_function"));
  // Ling 2.0 is the same by its own name, with half of a head rotated.
  const ModelConfig ling = read("BailingMoeV2ForCausalLM", {{"model_type", "bailing_moe"},
                                                            {"head_dim", 128},
                                                            {"partial_rotary_factor", 0.5},
                                                            {"n_group", 8},
                                                            {"topk_group", 4},
                                                            {"use_rmsnorm", true}});
  CHECK(ling.ropes.front().rotary_dim == 64);
  CHECK(ling.experts.route.num_groups == 8);
  CHECK(ling.has_qk_norm);
}

std::vector<bool> states_of(const ModelConfig& model) {
  std::vector<bool> out;
  for (const LayerPlan& layer : model.layers) out.push_back(layer.has_state);
  return out;
}

using States = std::vector<bool>;

TEST_CASE("OLMo Hybrid rotates unless the base is null, and norms by the kind of the layer") {
  const std::string name = "OlmoHybridForCausalLM";
  const Json two = {{"num_hidden_layers", 2}};
  CHECK(states_of(read(name, two)) == States{true, false});
  CHECK(read(name, two).layers[1].rope != kNoRope);
  for (const Json& none :
       {Json{{"rope_theta", nullptr}},
        Json{{"rope_parameters", {{"rope_theta", nullptr}, {"rope_type", "default"}}}},
        Json{{"rope_theta", nullptr}, {"rope_parameters", {{"rope_type", "default"}}}},
        Json{{"rope_theta", nullptr}, {"rope_parameters", Json::object()}},
        Json{{"rope_scaling", {{"rope_theta", nullptr}, {"rope_type", "default"}}}}}) {
    INFO(none.dump());
    CHECK(read(name, none).layers[3].rope == kNoRope);
  }
  const Json scaled = {
      {"rope_theta", nullptr},
      {"rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}, {"rope_theta", 1e4}}}};
  CHECK(read(name, scaled).layers[3].rope != kNoRope);
  CHECK(read(name, two).state.strength == 2.0F);
  CHECK(read(name, {{"linear_allow_neg_eigval", false}}).state.strength == 1.0F);
  CHECK(read(name, {{"hidden_size", 100}, {"num_attention_heads", 5}}).state.head_dim == 30);
  Json named = two;
  named["architectures"] = {name};
  const LoadedConfig loaded = load_config(named);
  const TensorTable table(loaded);
  CHECK(table.find(Role::kAttentionNorm, 0) != nullptr);
  CHECK(table.find(Role::kAttentionPostNorm, 0) == nullptr);
  CHECK(table.find(Role::kAttentionNorm, 1) == nullptr);
  CHECK(table.find(Role::kMlpPostNorm, 1) != nullptr);
  const TensorEntry& conv = *table.find(Role::kConv, 0);
  CHECK(conv.stored_names().at(2) == "model.layers.0.linear_attn.v_conv1d.weight");
  CHECK(conv.vector_shape(0) == std::vector<int64_t>{96 * 30, 1, 4});
  CHECK(conv.vector_shape(2) == std::vector<int64_t>{192 * 30, 1, 4});
  CHECK_THAT(refused(name, {{"linear_num_key_heads", 7}}, Code::kInvalidArgument),
             Catch::Contains("linear_num_value_heads"));
}

TEST_CASE("Kimi Linear's published object names layers from 1 on, all of them") {
  const std::string name = "KimiLinearForCausalLM";
  Json config = {{"num_hidden_layers", 3},
                 {"linear_attn_config",
                  {{"head_dim", 16},
                   {"num_heads", 5},
                   {"short_conv_kernel_size", 3},
                   {"full_attn_layers", {2}},
                   {"kda_layers", {1, 3}}}}};
  const ModelConfig model = read(name, config);
  CHECK(states_of(model) == States{true, false, true});
  CHECK(model.state.num_heads == 5);
  CHECK(model.state.gate_rank == 16);
  CHECK(model.state.conv_kernel == 3);
  CHECK(model.state.num_steps() == 80);
  // Nothing is rotated.
  CHECK(std::ranges::count(model.ropes.front().inv_freq, 0.0F) == 32);
  config["linear_attn_config"]["kda_layers"] = {1};
  CHECK_THAT(refused(name, config, Code::kInvalidArgument),
             Catch::Contains("neither full_attn_layers nor kda_layers names layer 3 of 3"));
  config["linear_attn_config"]["kda_layers"] = {1, 4};
  CHECK_THAT(refused(name, config, Code::kInvalidArgument),
             Catch::Contains("expected numbers of layers from 1 to 3, got 4"));
  config["linear_attn_config"]["twist"] = 1;
  CHECK_THAT(refused(name, config, Code::kUnsupported), Catch::Contains("twist"));
  CHECK_THAT(refused(name, {{"mla_use_nope", false}}, Code::kUnsupported),
             Catch::Contains("mla_use_nope"));
}

TEST_CASE("Ling 3 takes heads of its states by either name, and a bound below 0") {
  const std::string name = "BailingHybridForCausalLM";
  CHECK(states_of(read(name, {{"num_hidden_layers", 4}, {"layer_group_size", 2}})) ==
        States{true, false, true, false});
  CHECK(read(name, {{"head_dim", 96}}).state.head_dim == 96);
  CHECK(read(name, {{"head_dim", 64}, {"linear_head_dim", 96}}).state.head_dim == 96);
  CHECK(read(name, {{"num_attention_heads", 16}}).state.num_heads == 16);
  CHECK(read(name, Json::object()).state.floor == -5.0F);
  CHECK(read(name, {{"kda_safe_gate", false}}).state.floor == 0.0F);
  CHECK_THAT(refused(name, {{"kda_lower_bound", 0.5}}, Code::kInvalidArgument),
             Catch::Contains("kda_lower_bound: expected a logarithm below 0"));
}

TEST_CASE("Flint sees everything in its first two layers, every fourth and the last") {
  const ModelConfig model = read("FlintForCausalLM", {{"num_hidden_layers", 7}});
  std::vector<int32_t> windows;
  for (const LayerPlan& layer : model.layers) {
    windows.push_back(layer.sliding_window);
    CHECK((layer.rope == kNoRope) == (layer.sliding_window == 0));
  }
  CHECK(windows == std::vector<int32_t>{0, 0, 513, 513, 513, 0, 0});
  CHECK(model.layers[1].mlp == MlpKind::kDense);
  CHECK(model.layers[2].mlp == MlpKind::kExperts);
  CHECK(model.experts.route.score == RouterScore::kSigmoid);
  CHECK(read("FlintForCausalLM", {{"num_hidden_layers", 3}, {"mlp_only_layers", Json::array()}})
            .layers[0]
            .mlp == MlpKind::kExperts);
}

TEST_CASE("Phi-4-multimodal's first files say more, and have adapters beside their matrices") {
  const Json config = {{"architectures", {"Phi4MMForCausalLM"}},
                       {"model_type", "phi4mm"},
                       {"num_hidden_layers", 1},
                       {"partial_rotary_factor", 0.75},
                       {"sliding_window", 262144},
                       {"full_attn_mod", 1},
                       {"lm_head_bias", false},
                       {"vision_lora", {{"r", 256}}},
                       {"speech_lora", {{"r", 320}}},
                       {"embd_layer", {{"embedding_cls", "image_audio"}}},
                       {"audio_processor", Json::object()},
                       {"img_processor", nullptr}};
  const LoadedConfig loaded = load_config(config);
  CHECK(loaded.config.eos_token_ids == std::vector<int32_t>{199999, 200020});
  CHECK(loaded.config.ropes.front().rotary_dim == 72);
  const TensorTable table(loaded);
  CHECK(table.find(Role::kQkv, 0)->name == "model.layers.0.self_attn.qkv_proj.base_layer.weight");
  CHECK_THAT(refused("Phi4MultimodalForCausalLM", {{"full_attn_mod", 2}}, Code::kUnsupported),
             Catch::Contains("full_attn_mod"));
}

}  // namespace
}  // namespace tgi::latest_families_test
