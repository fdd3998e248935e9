// What the readers of families make of a config.json, layer by layer, and which values they refuse.
// What the models compute is judged in tests/promises.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/model/rank_ranges.h"
#include "engine/model/weight_check.h"
#include "tests/catch.h"
#include "tests/model/model_files.h"

namespace tgi::families_test {
namespace {

Json of(const std::string& name, const Json& fields) {
  Json out = {{"architectures", {name}}};
  out.update(fields);
  return out;
}

// A letter per layer: its window (w) or none (-), then its rope's index, or n.
std::string plan(const Json& config) {
  std::string out;
  for (const LayerPlan& layer : load_config(config).config.layers) {
    out += layer.sliding_window > 0 ? 'w' : '-';
    out += layer.rope == kNoRope ? "n " : std::to_string(layer.rope) + " ";
  }
  return out;
}

std::string refusal_of(const Json& config) {
  try {
    load_config(config);
  } catch (const Error& error) {
    return error.what();
  }
  FAIL("was accepted: " << config.dump());
  return "";
}

TEST_CASE("which layers have windows, and which rotate by what") {
  const Json four = {{"num_hidden_layers", 4}};
  const Json types = {"full_attention", "sliding_attention", "sliding_attention", "full_attention"};
  const auto with_types = [&](const std::string& name) {
    return of(name, {{"num_hidden_layers", 4}, {"layer_types", types}});
  };
  CHECK(plan(of("Gemma2ForCausalLM", four)) == "w0 -0 w0 -0 ");
  CHECK(plan(with_types("Gemma2ForCausalLM")) == "-0 w0 w0 -0 ");
  CHECK(plan(of("Gemma3ForCausalLM", four)) == "w0 w0 w0 w0 ");
  CHECK(plan(of("Gemma3ForCausalLM", {{"num_hidden_layers", 4}, {"sliding_window_pattern", 2}})) ==
        "w0 -1 w0 -1 ");
  CHECK(plan(with_types("Gemma3ForCausalLM")) == "-1 w0 w0 -1 ");
  CHECK(plan(of("Cohere2ForCausalLM", four)) == "w0 w0 w0 -n ");
  CHECK(plan(with_types("Cohere2ForCausalLM")) == "-n w0 w0 -n ");
  CHECK(plan(of("Olmo3ForCausalLM", four)) == "w0 w0 w0 -1 ");
  CHECK(plan(of("Exaone4ForCausalLM", four)) == "w0 w0 w0 -n ");
  CHECK(plan(of("Exaone4ForCausalLM", {{"num_hidden_layers", 4}, {"sliding_window", nullptr}})) ==
        "-0 -0 -0 -0 ");
  CHECK(plan(of("SmolLM3ForCausalLM", four)) == "-0 -0 -0 -n ");
  CHECK(plan(of("SmolLM3ForCausalLM", {{"num_hidden_layers", 4},
                                       {"no_rope_layers", {0, 1, 0, true}}})) == "-n -0 -n -0 ");
  CHECK(plan(of("SmolLM3ForCausalLM",
                {{"num_hidden_layers", 4}, {"use_sliding_window", true}, {"sliding_window", 8}})) ==
        "-0 -0 -0 wn ");
}

TEST_CASE("gemma 3 rotates by one base in windows and by another, scaled, elsewhere") {
  const Json scaling = {{"rope_type", "linear"}, {"factor", 8.0}};
  const ModelConfig old = load_config(of("Gemma3ForCausalLM", {{"rope_theta", 2e6},
                                                               {"rope_local_base_freq", 500.0},
                                                               {"rope_scaling", scaling}}))
                              .config;
  REQUIRE(old.ropes.size() == 2);
  CHECK(old.ropes[0].base == 500.0F);
  CHECK(old.ropes[0].inv_freq[0] == 1.0F);
  CHECK(old.ropes[1].base == 2e6F);
  CHECK(old.ropes[1].inv_freq[0] == 0.125F);
  // Its context counts the scaling.
  CHECK(old.max_positions == 131072);
  const Json full = {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 2e6}};
  const ModelConfig young =
      load_config(of("Gemma3ForCausalLM", {{"rope_local_base_freq", 500.0},
                                           {"rope_parameters", {{"full_attention", full}}}}))
          .config;
  for (const size_t i : {0, 1}) {
    CHECK(young.ropes[i].base == old.ropes[i].base);
    CHECK(young.ropes[i].inv_freq == old.ropes[i].inv_freq);
  }
}

TEST_CASE("values that a family can't have are refused with what was expected") {
  struct Bad {
    const char* name;
    Json fields;
    const char* message;
  };
  const Json alpha = {{"rope_type", "dynamic"}, {"factor", 1.0}, {"alpha", 50.0}};
  const std::vector<Bad> all = {
      {"Gemma2ForCausalLM", {{"attn_logit_softcapping", -1.0}}, "expected a number above 0"},
      {"Gemma2ForCausalLM", {{"query_pre_attn_scalar", 0}}, "expected a number above 0, got 0"},
      {"Gemma2ForCausalLM", {{"sliding_window", nullptr}}, "sliding_window is null"},
      {"Gemma2ForCausalLM", {{"use_bidirectional_attention", true}}, "use_bidirectional_attention"},
      {"Gemma3ForCausalLM", {{"sliding_window_pattern", 0}}, "sliding_window_pattern: expected 1"},
      {"Gemma3ForCausalLM",
       {{"num_hidden_layers", 3}, {"layer_types", {"full_attention"}}},
       "layer_types: expected 3 entries, one per layer, got 1"},
      {"Gemma3ForCausalLM",
       {{"num_hidden_layers", 1}, {"layer_types", {"linear_attention"}}},
       "layer_types[0]: 'linear_attention' is not supported"},
      {"Gemma3ForConditionalGeneration",
       {{"text_config", {{"head_swizzle", 1}}}},
       "text_config.head_swizzle = 1: not a known field of the text model of "
       "Gemma3ForConditionalGeneration"},
      {"CohereForCausalLM", {{"logit_scale", 0.0}}, "logit_scale: expected a number above 0"},
      {"Cohere2ForCausalLM", {{"use_parallel_block", false}}, "use_parallel_block: false"},
      {"OlmoForCausalLM", {{"clip_qkv", -2.0}}, "clip_qkv: expected a number above 0, got -2"},
      {"GraniteForCausalLM", {{"logits_scaling", 0}}, "logits_scaling: expected a number above 0"},
      {"GlmForCausalLM", {{"partial_rotary_factor", 1.5}}, "partial_rotary_factor: 1.5 of a head"},
      {"SmolLM3ForCausalLM", {{"no_rope_layers", {1, 0}}}, "expected 36 entries, one per layer"},
      {"SmolLM3ForCausalLM",
       {{"num_hidden_layers", 2}, {"no_rope_layers", {1, 2}}},
       "no_rope_layers[1]: expected 0 or 1, got 2"},
      {"SmolLM3ForCausalLM", {{"no_rope_layers", 3}}, "no_rope_layers: expected a list"},
      {"SmolLM3ForCausalLM", {{"no_rope_layer_interval", 0}}, "no_rope_layer_interval: expected 1"},
      {"Exaone4ForCausalLM", {{"sliding_window_pattern", "LLLG"}}, "sliding_window_pattern"},
      {"Exaone4ForCausalLM", {{"attention_bias", true}}, "attention_bias: true is not supported"},
      {"LlamaForCausalLM", {{"rope_scaling", alpha}}, "alpha = 50.0: not a known field"},
      {"Ministral3ForCausalLM",
       {{"rope_parameters", {{"rope_type", "default"}, {"llama_4_scaling_beta", -0.1}}}},
       "llama_4_scaling_beta: expected 0 or more"},
      {"HunYuanDenseV1ForCausalLM",
       {{"rope_scaling", {{"type", "dynamic"}, {"alpha", -1.0}}}},
       "alpha: expected a number above 0"},
      {"HunYuanMoEV1ForCausalLM",
       {{"num_experts", 4}, {"moe_topk", {1, 2}}},
       "moe_topk: expected a number, or the same for every layer, got [1,2]"},
      {"HunYuanMoEV1ForCausalLM",
       {{"intermediate_size", 8}, {"moe_intermediate_size", {6, 6}}},
       "moe_intermediate_size: experts are of intermediate_size, 8, got 6"},
      {"HunYuanMoEV1ForCausalLM", {{"num_shared_expert", 2}}, "num_shared_expert: expected 1"},
      {"ExaoneMoeForCausalLM",
       {{"num_hidden_layers", 2}, {"mlp_layer_types", {"dense"}}},
       "mlp_layer_types: expected 2 entries, one per layer, got 1"},
      {"ExaoneMoeForCausalLM",
       {{"num_hidden_layers", 1}, {"mlp_layer_types", {"thick"}}},
       "mlp_layer_types: expected dense or sparse, got \"thick\""},
      {"DbrxForCausalLM",
       {{"ffn_config", {{"moe_normalize_expert_weights", 2.0}}}},
       "ffn_config.moe_normalize_expert_weights: weights are divided by their sum (1)"},
      {"DbrxForCausalLM",
       {{"ffn_config", {{"moe_top_k", 5}}}},
       "ffn_config.moe_top_k: 5 experts for a token, but ffn_config.moe_num_experts is 4"},
      {"DbrxForCausalLM",
       {{"attn_config", {{"clip_qkv", -1.0}}}},
       "attn_config.clip_qkv: expected a number above 0, got -1"},
      {"DbrxForCausalLM",
       {{"attn_config", {{"qk_ln", true}}}},
       "attn_config.qk_ln = true: not a known field of DBRX"},
      {"Lfm2ForCausalLM",
       {{"num_hidden_layers", 3}, {"layer_types", {"conv", "conv"}}},
       "layer_types: expected 3 entries, one per layer, got 2"},
      {"Lfm2ForCausalLM",
       {{"num_hidden_layers", 2}, {"layer_types", {"conv", "mamba"}}},
       "layer_types[1]: 'mamba' is not supported; known are full_attention, conv"},
      {"Lfm2ForCausalLM",
       {{"num_hidden_layers", 2}, {"full_attn_idxs", {0, 2}}},
       "full_attn_idxs: expected numbers of layers from 0 to 1, got 2"},
      {"Lfm2ForCausalLM", {{"conv_L_cache", 17}}, "conv_L_cache: expected 1 to 16, got 17"},
      {"Lfm2MoeForCausalLM", {{"num_dense_layers", -1}}, "num_dense_layers: expected 0 or more"},
      {"MambaForCausalLM", {{"time_step_rank", 0}}, "time_step_rank: expected 1 to"},
      {"MambaForCausalLM", {{"expand", -1}}, "is not between 1 and"},
      {"MambaForCausalLM", {{"hidden_act", "gelu"}}, "hidden_act"},
      {"Qwen3NextForCausalLM", {{"hidden_act", "gelu"}}, "hidden_act"},
      {"OlmoHybridForCausalLM", {{"hidden_act", "gelu"}}, "hidden_act"},
      {"KimiLinearForCausalLM", {{"hidden_act", "gelu"}}, "hidden_act"},
      {"BailingHybridForCausalLM", {{"hidden_act", "gelu"}}, "hidden_act"},
      {"Mamba2ForCausalLM",
       {{"num_heads", 100}},
       "expand: makes 8192 channels, but 100 heads of 64 make 6400"},
      {"Mamba2ForCausalLM",
       {{"n_groups", 3}},
       "n_groups: 128 heads can't be dealt out to 3 groups evenly"},
      {"Mamba2ForCausalLM",
       {{"time_step_limit", {0.5, 0.1}}},
       "time_step_limit: expected two rising numbers from 0 on"},
      {"Mamba2ForCausalLM",
       {{"time_step_limit", {0.5}}},
       "time_step_limit: expected the least and the most of a step"},
      {"Mamba2ForCausalLM", {{"state_size", 1 << 20}}, "are too many"},
      {"GraniteMoeHybridForCausalLM",
       {{"layer_types", {"mamba"}}},
       "layer_types: expected 32 entries, one per layer, got 1"},
      {"Qwen3NextForCausalLM",
       {{"linear_num_value_heads", 24}},
       "linear_num_value_heads: 24 heads can't be dealt out to 16 groups evenly"},
      {"Qwen3NextForCausalLM", {{"attention_bias", true}}, "attention_bias: true is not supported"},
      {"JambaForCausalLM",
       {{"attn_layer_period", 3}},
       "attn_layer_offset: expected 0 to 2, as attn_layer_period is 3, got 4"},
      {"NemotronHForCausalLM",
       {{"hybrid_override_pattern", "MX"}},
       "hybrid_override_pattern: 'X' is no kind of layer"},
      {"NemotronHForCausalLM",
       {{"hybrid_override_pattern", "M*"}, {"num_hidden_layers", 3}},
       "hybrid_override_pattern: expected 3 layers, as num_hidden_layers says, got 2"},
      {"NemotronHForCausalLM", {{"moe_latent_size", 0}}, "moe_latent_size: expected 1 to"},
      {"FalconH1ForCausalLM",
       {{"ssm_multipliers", {1.0, 2.0}}},
       "ssm_multipliers: expected 5 numbers, got [1.0,2.0]"},
  };
  for (const Bad& bad : all) {
    INFO(bad.name << " " << bad.fields.dump());
    CHECK_THAT(refusal_of(of(bad.name, bad.fields)), Catch::Contains(bad.message));
  }
}

// Sizes that no two dimensions share.
Json tiny(const std::string& name) {
  return of(name, {{"vocab_size", 11},
                   {"hidden_size", 10},
                   {"intermediate_size", 14},
                   {"num_hidden_layers", 2},
                   {"num_attention_heads", 6},
                   {"num_key_value_heads", 2},
                   {"head_dim", 4}});
}

void check_names(const LoadedConfig& model, const std::vector<TestTensor>& tensors) {
  check_weights(model, *open_checkpoint(weight_files(tensors)));
}

TEST_CASE("the text of a multimodal model is found under each of its prefixes, images are not") {
  const LoadedConfig model =
      load_config(of("Gemma3ForConditionalGeneration", {{"text_config", tiny("Gemma3ForCausalLM")},
                                                        {"vision_config", {{"hidden_size", 8}}}}));
  for (const char* prefix : {"", "language_model.", "model.language_model."}) {
    std::vector<TestTensor> tensors = small_tensors(model);
    for (TestTensor& tensor : tensors) {
      // "model.language_model." takes the place of "model.".
      if (std::string(prefix).starts_with("model.")) tensor.name = tensor.name.substr(6);
      tensor.name = prefix + tensor.name;
    }
    for (const char* name : {"vision_tower.post_layernorm.weight",
                             "model.vision_tower.encoder.layers.0.layer_norm1.bias",
                             "multi_modal_projector.mm_soft_emb_norm.weight"}) {
      tensors.push_back({name, "F32", "[1]", f32_bytes({1.0F})});
    }
    INFO(prefix);
    CHECK_NOTHROW(check_names(model, tensors));
  }
  std::vector<TestTensor> tensors = small_tensors(model);
  tensors.push_back({"audio_tower.norm.weight", "F32", "[1]", f32_bytes({1.0F})});
  CHECK_THROWS_WITH(check_names(model, tensors), Catch::Contains("audio_tower.norm.weight"));
}

TEST_CASE("norms of heads with weights of their own are stored as a matrix") {
  Json json = tiny("CohereForCausalLM");
  json["use_qk_norm"] = true;
  const LoadedConfig model = load_config(json);
  const TensorTable table(model);
  REQUIRE(table.find(Role::kQNorm, 0) != nullptr);
  CHECK(table.find(Role::kQNorm, 0)->vector_shape() == std::vector<int64_t>{6, 4});
  CHECK(table.find(Role::kKNorm, 1)->vector_shape() == std::vector<int64_t>{2, 4});
  json["use_qk_norm"] = false;
  CHECK(TensorTable(load_config(json)).find(Role::kQNorm, 0) == nullptr);
  // Flat ones are of another shape.
  CHECK_THROWS_WITH(check_names(model, small_tensors(model)), Catch::Contains("q_norm.weight"));
}

TEST_CASE("infinity of python stands in configs, where it is a word and not in a text") {
  for (const char* most : {"Infinity", R"({"__float__": "Infinity"})", R"("Infinity")"}) {
    const std::string text = fmt::format(
        R"({{"architectures": ["Mamba2ForCausalLM"], "time_step_limit": [0.25, {}],
             "_name_or_path": "a \"Infinity\" b"}})",
        most);
    const LoadedConfig model = load_model_config(config_files(text));
    CHECK(model.config.state.min_step == 0.25F);
    CHECK(std::isinf(model.config.state.max_step));
    CHECK(model.json.at("_name_or_path") == "a \"Infinity\" b");
  }
}

TEST_CASE("layers have the tensors of what they are, and no others") {
  Json json = tiny("GraniteMoeHybridForCausalLM");
  json["layer_types"] = {"mamba", "attention"};
  json["num_local_experts"] = 0;
  json["mamba_n_heads"] = 5;
  json["mamba_d_head"] = 4;
  json["mamba_d_state"] = 3;
  const LoadedConfig model = load_config(json);
  const TensorTable table(model);
  CHECK(table.find(Role::kStateIn, 0) != nullptr);
  CHECK(table.find(Role::kQ, 0) == nullptr);
  CHECK(table.find(Role::kStateIn, 1) == nullptr);
  CHECK(table.find(Role::kQ, 1) != nullptr);
  // 2 * 20 channels, 2 * 3 of b and c, 5 heads; a convolution over 26 of them.
  CHECK(table.find(Role::kStateIn, 0)->rows == 51);
  CHECK(table.find(Role::kConv, 0)->vector_shape() == std::vector<int64_t>{26, 1, 4});
  CHECK_NOTHROW(check_names(model, small_tensors(model)));
  // A matrix of attention where there is a state.
  std::vector<TestTensor> tensors = small_tensors(model);
  tensors.push_back({"model.layers.0.self_attn.q_proj.weight", "F32", "[1]", f32_bytes({1.0F})});
  CHECK_THROWS_WITH(check_names(model, tensors),
                    Catch::Contains("model.layers.0.self_attn.q_proj"));
  // Sizes that don't fit the tensors.
  json["mamba_d_state"] = 4;
  CHECK_THROWS_WITH(check_names(load_config(json), small_tensors(model)),
                    Catch::Contains("mamba.in_proj.weight"));
}

TEST_CASE("norms over all heads stay on one rank") {
  const LoadedConfig model = load_config(tiny("Olmo2ForCausalLM"));
  CHECK_NOTHROW(check_world_size(model.config, 1));
  CHECK_THROWS_WITH(check_world_size(model.config, 2), Catch::Contains("over all heads"));
  const LoadedConfig bitnet = load_config(tiny("BitNetForCausalLM"));
  CHECK_NOTHROW(check_world_size(bitnet.config, 1));
  CHECK_THROWS_WITH(check_world_size(bitnet.config, 2), Catch::Contains("over whole rows"));
}

}  // namespace
}  // namespace tgi::families_test
