// Several streams, gates of which few numbers are kept and MLPs of several sizes, as Gemma 3n's
// config.json says them.
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/model/rank_ranges.h"
#include "engine/model/tensor_table.h"
#include "tests/catch.h"
#include "tests/model/config_refusal.h"
#include "tests/model/model_files.h"

namespace tgi::gemma3n_test {
namespace {

// As the one that is published with 2 billion effective parameters, all of its fields.
Json published_text() {
  Json types = Json::array();
  Json sparsity = Json::array();
  for (int i = 0; i < 30; ++i) {
    types.push_back(i % 5 == 4 ? "full_attention" : "sliding_attention");
    sparsity.push_back(i < 10 ? 0.95 : 0.0);
  }
  return {{"activation_sparsity_pattern", sparsity},
          {"altup_active_idx", 0},
          {"altup_coef_clip", 120.0},
          {"altup_correct_scale", true},
          {"altup_lr_multiplier", 1.0},
          {"altup_num_inputs", 4},
          {"attention_bias", false},
          {"attention_dropout", 0.0},
          {"final_logit_softcapping", 30.0},
          {"head_dim", 256},
          {"hidden_activation", "gelu_pytorch_tanh"},
          {"hidden_size", 2048},
          {"hidden_size_per_layer_input", 256},
          {"initializer_range", 0.02},
          {"intermediate_size", Json(30, 8192)},
          {"laurel_rank", 64},
          {"layer_types", types},
          {"max_position_embeddings", 32768},
          {"model_type", "gemma3n_text"},
          {"num_attention_heads", 8},
          {"num_hidden_layers", 30},
          {"num_key_value_heads", 2},
          {"num_kv_shared_layers", 10},
          {"query_pre_attn_scalar", 256},
          {"rms_norm_eps", 1e-06},
          {"rope_local_base_freq", 10000.0},
          {"rope_scaling", nullptr},
          {"rope_theta", 1000000.0},
          {"sliding_window", 512},
          {"torch_dtype", "bfloat16"},
          {"use_cache", true},
          {"vocab_size", 262400},
          {"vocab_size_per_layer_input", 262144}};
}

Json published() {
  return {{"architectures", {"Gemma3nForConditionalGeneration"}},
          {"audio_config", {{"model_type", "gemma3n_audio"}, {"conf_attention_chunk_size", 12}}},
          {"audio_soft_tokens_per_image", 188},
          {"audio_token_id", 262273},
          {"boa_token_id", 256000},
          {"boi_token_id", 255999},
          {"eoa_token_id", 262272},
          {"eoi_token_id", 262144},
          {"eos_token_id", {1, 106}},
          {"image_token_id", 262145},
          {"initializer_range", 0.02},
          {"model_type", "gemma3n"},
          {"text_config", published_text()},
          {"torch_dtype", "bfloat16"},
          {"transformers_version", "4.53.0.dev0"},
          {"vision_config",
           {{"architecture", "mobilenetv5_300m_enc"}, {"model_type", "gemma3n_vision"}}},
          {"vision_soft_tokens_per_image", 256}};
}

Json text_alone() {
  Json out = published_text();
  out["architectures"] = {"Gemma3nForCausalLM"};
  return out;
}

Json with(Json config, const std::string& key, const Json& value) {
  config[key] = value;
  return config;
}

TEST_CASE("the published config of a Gemma 3n is read whole") {
  const ModelConfig config = load_config(published()).config;
  CHECK(config.streams == StreamsConfig{.count = 4, .active = 0, .has_scales = true});
  CHECK(config.laurel_rank == 64);
  CHECK(config.layer_inputs == LayerInputs{.size = 256, .vocab_size = 262144});
  CHECK(config.intermediate_size == 8192);
  CHECK(config.logit_softcap == 30.0F);
  CHECK(config.tied_embeddings);
  for (int32_t i = 0; i < 30; ++i) {
    INFO(i);
    const LayerPlan& layer = config.layers[static_cast<size_t>(i)];
    CHECK(layer.gate_cutoff.has_value() == (i < 10));
    CHECK(layer.sliding_window == (i % 5 == 4 ? 0 : 512));
    CHECK(layer.has_own_kv() == (i < 20));
    CHECK(layer.divides_v == (i < 20));
  }
  // What icdf of torch gives for 0.95.
  CHECK(std::abs(*config.layers[0].gate_cutoff - 1.6448536F) < 1e-6F);
  CHECK(config.layers[20].kv_layer == 18);
  CHECK(config.layers[29].kv_layer == 19);
}

TEST_CASE("sizes of MLPs may be one for all or one for each layer") {
  CHECK(load_config(with(text_alone(), "intermediate_size", 8192)).config.layers ==
        load_config(text_alone()).config.layers);
  Json sizes(30, 8192);
  sizes[7] = 16384;
  const LoadedConfig model = load_config(with(text_alone(), "intermediate_size", sizes));
  CHECK(intermediate_size_of(model.config, 6) == 8192);
  CHECK(intermediate_size_of(model.config, 7) == 16384);
  const TensorTable table(model);
  CHECK(table.find(Role::kDown, 6)->cols == 8192);
  CHECK(table.find(Role::kGate, 7)->rows == 16384);
}

TEST_CASE("each stream but the first has a matrix to it and one back") {
  const LoadedConfig model = load_config(with(text_alone(), "altup_num_inputs", 3));
  const TensorTable table(model);
  CHECK(table.find(Role::kStreamIn, -1, 1)->name == "model.altup_projections.1.weight");
  CHECK(table.find(Role::kStreamOut, -1, 0)->name == "model.altup_unembed_projections.0.weight");
  CHECK(table.find(Role::kStreamPrediction, 4)->vector_shape() == std::vector<int64_t>{9, 3});
  CHECK(table.find(Role::kStreamCorrection, 4)->vector_shape() == std::vector<int64_t>{3, 3});
  const double more = count_parameters(load_config(text_alone())) - count_parameters(model);
  // Two matrices, and in each of 30 layers a row of the router and larger coefficients.
  CHECK(more == 2.0 * 2048 * 2048 + 30.0 * (2048 + 64 - 27 + 16 - 9));
}

TEST_CASE("half of a normal distribution lies below its mean") {
  const Json half = Json(30, 0.5);
  const ModelConfig config =
      load_config(with(text_alone(), "activation_sparsity_pattern", half)).config;
  CHECK(std::abs(config.layers[29].gate_cutoff.value_or(1.0F)) < 1e-6F);
}

TEST_CASE("a Gemma 3n that contradicts itself is refused before weights are read") {
  const auto refused = [](const std::string& key, const Json& value, Code code) {
    return refusal(with(text_alone(), key, value), code);
  };
  CHECK_THAT(refused("intermediate_size", Json(29, 8192), Code::kInvalidArgument),
             Catch::Contains("intermediate_size: expected a list of 30 entries, one per layer") &&
                 Catch::Contains("got 29"));
  CHECK_THAT(refused("intermediate_size", Json(30, 0), Code::kInvalidArgument),
             Catch::Contains("intermediate_size: expected 1 to"));
  CHECK_THAT(refused("intermediate_size", Json(30, "8192"), Code::kInvalidArgument),
             Catch::Contains("intermediate_size[0]"));
  CHECK_THAT(refused("activation_sparsity_pattern", Json(3, 0.5), Code::kInvalidArgument),
             Catch::Contains("got 3"));
  CHECK_THAT(refused("activation_sparsity_pattern", 0.5, Code::kInvalidArgument),
             Catch::Contains("expected a list of 30 entries"));
  CHECK_THAT(
      refused("activation_sparsity_pattern", Json(30, 1.0), Code::kInvalidArgument),
      Catch::Contains("activation_sparsity_pattern[0]: expected 0 or more, and less than 1"));
  CHECK_THAT(refused("altup_num_inputs", 1, Code::kInvalidArgument),
             Catch::Contains("altup_num_inputs: expected 2 to 8, got 1"));
  CHECK_THAT(refused("altup_num_inputs", 9, Code::kInvalidArgument), Catch::Contains("got 9"));
  CHECK_THAT(refused("altup_active_idx", 4, Code::kInvalidArgument),
             Catch::Contains("altup_active_idx: expected 0 to 3, got 4"));
  CHECK_THAT(refused("laurel_rank", 0, Code::kInvalidArgument), Catch::Contains("laurel_rank"));
  CHECK_THAT(refused("hidden_size_per_layer_input", 0, Code::kInvalidArgument),
             Catch::Contains("hidden_size_per_layer_input"));
  CHECK_THAT(refused("num_kv_shared_layers", 29, Code::kInvalidArgument),
             Catch::Contains("there is none"));
}

TEST_CASE("gates that are cut by their whole row are of one rank") {
  const ModelConfig config = load_config(text_alone()).config;
  CHECK_NOTHROW(check_world_size(config, 1));
  CHECK_THROWS_WITH(check_world_size(config, 2), Catch::Contains("of its whole row"));
  const ModelConfig dense =
      load_config(with(text_alone(), "activation_sparsity_pattern", Json(30, 0.0))).config;
  CHECK_NOTHROW(check_world_size(dense, 2));
}

}  // namespace
}  // namespace tgi::gemma3n_test
