// Model Optimizer (engine/weights/formats/modelopt.cc): which modules are stored how, what its
// settings may say, and its floats of 8 bits.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/weights/fp4_file.h"

namespace tgi::modelopt_test {

TEST_CASE("modules that Model Optimizer leaves alone are named with wildcards") {
  Json quantization = modelopt("NVFP4");
  quantization["ignore"] = {
      "lm_head",        "model.layers.0.self_attn*",          "*.mlp.gate",
      "model.layers.3", "language_model.model.layers.4.mlp*", "model.layers.5*"};
  const char* kNvfp4 = "modelopt, nvfp4";
  CHECK(form_in(quantization, kUp) == kNvfp4);
  CHECK(form_in(quantization, "model.layers.0.self_attn.q_proj") == "");
  CHECK(form_in(quantization, "model.layers.1.self_attn.q_proj") == kNvfp4);
  CHECK(form_in(quantization, "model.layers.1.mlp.gate") == "");
  CHECK(form_in(quantization, "model.layers.1.mlp.gate_proj") == kNvfp4);
  CHECK(form_in(quantization, "model.layers.3.mlp.gate_proj") == "");
  CHECK(form_in(quantization, "model.layers.4.mlp.gate_proj") == "");
  CHECK(form_in(quantization, "model.layers.50.mlp.gate_proj") == "");
  CHECK(form_in(quantization, "lm_head", MatrixKind::kHead) == "");
  CHECK(form_in(quantization, "model.embed_tokens", MatrixKind::kEmbedding) == "");
  quantization["ignore"] = {"model.layers.*.self_attn.qkv_proj", "lm_head"};
  CHECK(form_in(quantization, "model.layers.1.self_attn.k_proj") == "");
  CHECK(form_in(quantization, "model.layers.1.self_attn.o_proj") == kNvfp4);
  quantization["ignore"] = Json::array();
  CHECK(form_in(quantization, "lm_head", MatrixKind::kHead) == kNvfp4);
  quantization.erase("ignore");  // as the first exports
  CHECK(form_in(quantization, "lm_head", MatrixKind::kHead) == "");
}

TEST_CASE("Model Optimizer's settings are read from its own file's layout, and layer by layer") {
  const Json own = {{"quant_method", "modelopt"},
                    {"producer", {{"name", "modelopt"}, {"version", "0.33.0"}}},
                    {"quantization",
                     {{"quant_algo", "FP8"},
                      {"kv_cache_quant_algo", "FP8"},
                      {"exclude_modules", {"lm_head", "*.down_proj"}}}}};
  CHECK(form_in(own, kUp) == "modelopt, fp8");
  CHECK(form_in(own, "model.layers.0.mlp.down_proj") == "");
  Json cache_alone = own;
  cache_alone["quantization"]["quant_algo"] = nullptr;
  CHECK(form_in(cache_alone, kUp) == "");

  Json mixed = modelopt("MIXED_PRECISION");
  mixed["quantized_layers"] = {
      {kUp, {{"quant_algo", "NVFP4"}, {"group_size", 16}}},
      {"model.layers.0.mlp.experts", {{"quant_algo", "FP8"}}},
      {"model.layers.0.mlp.experts.1", {{"quant_algo", "W4A8_MXFP4_FP8"}}}};
  CHECK(form_in(mixed, kUp) == "modelopt, nvfp4");
  CHECK(form_in(mixed, "model.layers.0.mlp.up_proj_2") == "");
  CHECK(form_in(mixed, "model.layers.0.mlp.experts.11.up_proj") == "modelopt, fp8");
  CHECK(form_in(mixed, "model.layers.0.mlp.experts.1.up_proj") == "modelopt, mxfp4");
  CHECK(form_in(mixed, "model.layers.0.self_attn.q_proj") == "");
  mixed["quantized_layers"]["model.language_model.layers.2.mlp.gate_up_proj"] = {
      {"quant_algo", "fp8"}};
  CHECK(form_in(mixed, "model.layers.2.mlp.gate_proj") == "modelopt, fp8");
  CHECK(form_in(mixed, "model.layers.2.mlp.down_proj") == "");
  mixed["quantized_layers"][kUp]["quant_algo"] = "W4A16_AWQ";
  CHECK_THAT(claim_error(mixed), Catch::Contains("up_proj.quant_algo: modelopt's 'W4A16_AWQ'"));
}

TEST_CASE("settings of Model Optimizer that can't be loaded are refused by name") {
  const auto failure = [](const char* algo, const Json& changes) {
    Json quantization = modelopt(algo);
    quantization.update(changes);
    return claim_error(quantization);
  };
  const Json weights = {{"num_bits", 8}, {"type", "float"}, {"dynamic", false}};
  const auto groups = [](const Json& of_weights) {
    return Json{{"config_groups", {{"group_0", {{"weights", of_weights}}}}}};
  };
  CHECK(failure("FP8", groups(weights)) == "");
  CHECK(failure("fp8", {{"weights", weights}, {"input_activations", weights}}) == "");
  CHECK_THAT(failure("NVFP4", {{"weights", weights}}),
             Catch::StartsWith("quantization_config.weights.num_bits: 8 contradicts"));
  CHECK(failure("FP8", {{"kv_cache_scheme", "NVFP4"}}) == "");
  CHECK_THAT(failure("NVFP4", groups(weights)),
             Catch::StartsWith("quantization_config.config_groups.group_0.weights.num_bits: 8 "
                               "contradicts quant_algo 'NVFP4', expected 4"));
  CHECK_THAT(failure("INT4_AWQ", Json::object()),
             Catch::StartsWith("quantization_config.quant_algo: modelopt's 'INT4_AWQ' can't be "
                               "loaded; supported: FP8, ") &&
                 Catch::Contains("MIXED_PRECISION"));
  CHECK_THAT(failure("NVFP4", {{"group_size", 32}}),
             Catch::StartsWith("quantization_config.group_size: NVFP4 in groups of 32"));
  CHECK_THAT(failure("NVFP4", {{"pre_quant_scale", true}}), Catch::Contains("pre_quant_scale"));
  CHECK_THAT(failure("NVFP4", {{"lora_rank", 32}}), Catch::Contains("lora_rank"));
  CHECK_THAT(failure("FP8", {{"quantized_layers", {{kUp, {{"quant_algo", "FP8"}}}}}}),
             Catch::Contains("MIXED_PRECISION"));
  CHECK_THAT(failure("MIXED_PRECISION", Json::object()), Catch::Contains("quantized_layers"));
  CHECK_THAT(failure("FP8", {{"twist", 1}}),
             Catch::Contains("quantization_config.twist = 1: not a known field of modelopt"));
  CHECK_THAT(failure("FP8", {{"ignore", "lm_head"}}),
             Catch::Contains("quantization_config.ignore"));
  Json without = modelopt("FP8");
  without.erase("quant_algo");
  without.update(groups(weights));
  CHECK_THAT(claim_error(without), Catch::Contains("quant_algo: missing"));
}

TEST_CASE("Model Optimizer's floats of 8 bits have one scale, or one for each row") {
  const auto file_of = [](const char* algo, const char* shape, const std::vector<float>& scales) {
    Fp4File out{.quantization = modelopt(algo), .scale_of_all_name = {}, .tensors = {}};
    std::string values;
    for (int64_t i = 0; i < kUpRows * kUpCols; ++i)
      values.push_back(static_cast<char>(i * 5 % 127));
    out.tensors.push_back({fmt::format("{}.weight", kUp), "F8_E4M3", "[6,96]", values});
    out.tensors.push_back({fmt::format("{}.weight_scale", kUp), "F32", shape, f32_bytes(scales)});
    return out;
  };
  const auto check = [&](const Fp4File& file, const std::vector<float>& scales) {
    const HostWeight got = fp4_block(file, {0, kUpRows}, {0, kUpCols});
    const auto* values = reinterpret_cast<const float*>(got.parts.at(0).data);
    for (int64_t i = 0; i < kUpRows * kUpCols; ++i) {
      const float scale = scales[static_cast<size_t>(i / kUpCols) % scales.size()];
      CHECK(values[i] == e4m3_to_f32(file.byte("weight", i)) * scale);
    }
  };
  check(file_of("FP8", "[]", {0.25F}), {0.25F});
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6};
  for (const char* shape : {"[6]", "[6,1]"}) {
    check(file_of("FP8_PER_CHANNEL_PER_TOKEN", shape, rows), rows);
  }
  CHECK_THAT(fp4_problems(file_of("FP8", "[6]", rows)).misshapen.at(0),
             Catch::Contains("weight_scale: expected () or (1) or (1, 1), got (6)"));
  Fp4File file = file_of("FP8", "[1]", {std::nanf("")});
  CHECK_THAT(fp4_failure(file), Catch::Contains("weight_scale") && Catch::Contains("finite"));
}

}  // namespace tgi::modelopt_test
