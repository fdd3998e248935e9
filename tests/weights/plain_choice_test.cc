// Matrices of quantised checkpoints that are plain: routers that nobody names, modules that are
// named as transformers names them, and of which group of compressed-tensors a module is.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "engine/weights/formats/module_names.h"
#include "engine/weights/weight_format.h"
#include "tests/catch.h"
#include "tests/weights/safetensors_builder.h"

namespace tgi::plain_choice_test {
namespace {

constexpr const char* kGate = "model.layers.1.mlp.gate";
constexpr int64_t kExperts = 8;
constexpr int64_t kHidden = 32;

MatrixSpec gate_matrix(bool is_choice) {
  return {.name = std::string(kGate) + ".weight",
          .prefix = "model.",
          .rows = kExperts,
          .cols = kHidden,
          .is_choice = is_choice};
}

TestTensor array_of_gate(const char* suffix, const char* dtype, int64_t rows, int64_t size) {
  return {fmt::format("{}.{}", kGate, suffix), dtype, fmt::format("[{}, {}]", rows, kHidden),
          std::string(static_cast<size_t>(rows * kHidden * size), '\0')};
}

TestTensor plain_gate() {
  return array_of_gate("weight", "F32", kExperts, 4);
}

WeightProblems problems_of(const Json& quantization,
                           const std::vector<TestTensor>& tensors,
                           bool is_choice = true) {
  const Json config = {{"quantization_config", quantization}};
  const MemorySource files({{"model.safetensors", build_safetensors(tensors)}});
  const auto checkpoint = open_checkpoint(files);
  const WeightFormat& format = find_weight_format(JsonReader(config, ""));
  WeightProblems problems;
  const MatrixSpec spec = gate_matrix(is_choice);
  const auto found = format.collect(config, *checkpoint, spec, problems);
  if (!problems.empty()) return problems;
  const HostWeight got = format.slice(config, *checkpoint, spec, found, {0, kExperts}, {0, kHidden},
                                      MatrixStorage(DType::kF32));
  CHECK(got.format == "dense");
  CHECK(got.rows == kExperts);
  return problems;
}

Json group_of(const std::vector<std::string>& targets, int bits) {
  return {{"targets", targets}, {"weights", {{"num_bits", bits}, {"strategy", "channel"}}}};
}

Json compressed(const Json& groups) {
  return {{"quant_method", "compressed-tensors"},
          {"format", "pack-quantized"},
          {"config_groups", groups}};
}

const std::vector<Json>& quantizations() {
  static const std::vector<Json> kAll = {
      {{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}},
      {{"quant_method", "fp8"}},
      {{"quant_method", "fbgemm_fp8"}},
      {{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}},
      {{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}, {"format", "marlin"}},
      {{"quant_method", "awq"}, {"bits", 4}, {"group_size", 32}},
      compressed({{"group_0", group_of({"Linear"}, 4)}}),
      {{"quant_method", "modelopt"}, {"quant_algo", "FP8"}},
      {{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}},
  };
  return kAll;
}

TEST_CASE("a router that is stored plainly is plain, whatever config.json says of its kind") {
  for (const Json& quantization : quantizations()) {
    INFO(quantization.dump());
    CHECK(problems_of(quantization, {plain_gate()}).empty());
    CHECK_FALSE(problems_of(quantization, {plain_gate()}, false).empty());
    CHECK_FALSE(problems_of(quantization, {}).empty());
  }
}

TEST_CASE("a router that lacks an array of its own, or has one beside numbers, is refused") {
  const Json fp8 = {{"quant_method", "fp8"}};
  const std::string scale = std::string(kGate) + ".weight_scale_inv";
  CHECK(problems_of(fp8, {array_of_gate("weight", "F8_E4M3", kExperts, 1)}).missing ==
        std::vector<std::string>{scale});
  CHECK_THAT(
      problems_of(fp8, {plain_gate(), {scale, "F32", "[1]", f32_bytes({1})}}).unsupported.at(0),
      Catch::Contains("expected F8_E4M3, got F32"));
  const Json gptq = {{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}};
  CHECK(problems_of(gptq, {plain_gate(), array_of_gate("qweight", "I32", 1, 4)}).missing.size() ==
        2);
  CHECK(problems_of(fp8, {array_of_gate("weight", "F32", kExperts - 1, 4)}).misshapen.size() == 1);
}

TEST_CASE("modules are left plain by the names that transformers takes") {
  const auto is_left = [](const std::string& name, std::string_view module) {
    return is_left_plain(std::vector<std::string>{name}, module);
  };
  constexpr std::string_view kDown = "model.layers.1.mlp.down_proj";
  for (const char* name :
       {"down_proj", ".mlp.down_proj", "n_proj", R"(model\.layers\.\d+\.mlp\.down_proj)",
        "model.layers.*.down_proj", ".*down_proj", "model.layers.[01].mlp",
        "model.layers.1.(mlp|self_attn).*", "model.layers.1", "layers.1.mlp", "layers.*.mlp",
        "model.language_model.layers.1.mlp", "a|model.layers.1"}) {
    INFO(name);
    CHECK(is_left(name, kDown));
  }
  for (const char* name : {"", "down", "model.layers.1.mlp.down", "model.layers.[02].mlp", "odel.*",
                           "model.layers.11", "layers.(1|2)"}) {
    INFO(name);
    CHECK_FALSE(is_left(name, kDown));
  }
  CHECK_FALSE(is_left("mlp.gate", "model.layers.1.mlp.gate_proj"));
  CHECK_THROWS_WITH(is_left("(a+)+(a+)+(a+)+$", std::string(60, 'a') + "b"),
                    Catch::Contains("limit"));
}

TEST_CASE("a name that is no pattern is refused before anything is read") {
  for (const char* method : {"fp8", "awq", "bitsandbytes", "mxfp4", "bitnet"}) {
    INFO(method);
    const char* const key =
        method == std::string("bitsandbytes") ? "llm_int8_skip_modules" : "modules_to_not_convert";
    const Json config = {
        {"quantization_config",
         {{"quant_method", method}, {"load_in_8bit", true}, {key, {"mlp.(gate"}}}}};
    CHECK_THROWS_WITH(find_weight_format(JsonReader(config, "")), Catch::Contains("mlp.(gate"));
  }
}

TEST_CASE("a module that two groups name is of the one that compressed-tensors takes") {
  const auto bits_of = [](const std::vector<std::string>& four,
                          const std::vector<std::string>& eight) {
    const Json config = {{"quantization_config", compressed({{"group_0", group_of(four, 4)},
                                                             {"group_1", group_of(eight, 8)}})}};
    const MatrixSpec spec = gate_matrix(false);
    return find_weight_format(JsonReader(config, "")).form_of(config, spec).bits;
  };
  CHECK(bits_of({"re:.*mlp.*"}, {kGate}) == 8);
  CHECK(bits_of({kGate}, {"re:.*mlp.*"}) == 4);
  CHECK(bits_of({"re:.*mlp.*"}, {"re:.*gate$"}) == 8);
  CHECK(bits_of({"re:.*gate$"}, {"re:.*mlp.*"}) == 4);
  CHECK(bits_of({"Linear"}, {"re:.*gate$"}) == 8);
  CHECK(bits_of({"re:.*up_proj"}, {"Linear"}) == 8);
  CHECK(bits_of({"Linear"}, {"Linear"}) == 8);  // the last of a target that is there twice
}

}  // namespace
}  // namespace tgi::plain_choice_test
