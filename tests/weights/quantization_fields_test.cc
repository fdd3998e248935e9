// What is known of the fields of quantization_config: configs of published checkpoints load, every
// field of the classes behind them is known (scripts/golden/make_quantization_classes), and
// whatever else is there is refused by its path.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/weights/weight_format.h"
#include "tests/catch.h"
#include "tests/weights/safetensors_builder.h"

namespace tgi::quantization_fields_test {
namespace {

const WeightFormat& claimed(const Json& quantization) {
  const Json config = {{"quantization_config", quantization}};
  return find_weight_format(JsonReader(config, ""));
}

// Empty when it loads.
std::string refusal(const Json& quantization) {
  try {
    (void)claimed(quantization);
  } catch (const Error& error) {
    CHECK((error.code() == Code::kUnsupported || error.code() == Code::kInvalidArgument));
    return error.what();
  }
  return "";
}

Json golden(const char* name) {
  std::ifstream file(fmt::format("{}/tests/golden/{}", TGI_SOURCE_DIR, name));
  std::ostringstream text;
  text << file.rdbuf();
  return parse_json(text.str());
}

TEST_CASE("configs of published quantised checkpoints load") {
  // As they stand in config.json, or in the older file beside it.
  const Json published = golden("published_quantization.json");
  REQUIRE(published.size() > 20);
  for (const Json& each : published) {
    INFO(each.at("repository"));
    const Json& quantization = each.at("quantization_config");
    CHECK(refusal(quantization) == "");
    CHECK(claimed(quantization).name == each.at("format").get<std::string>());
  }
}

Json base_of(std::string_view method) {
  if (method == "gptq" || method == "awq") return {{"quant_method", method}, {"bits", 4}};
  if (method == "bitsandbytes") return {{"quant_method", method}, {"load_in_4bit", true}};
  if (method != "compressed-tensors") return {{"quant_method", method}};
  const Json activations = {
      {"num_bits", 8}, {"type", "float"}, {"strategy", "token"}, {"dynamic", true}};
  const Json weights = {{"num_bits", 8},     {"type", "float"},       {"strategy", "channel"},
                        {"symmetric", true}, {"group_size", nullptr}, {"dynamic", false}};
  const Json group = {
      {"targets", {"Linear"}}, {"weights", weights}, {"input_activations", activations}};
  return {{"quant_method", method},
          {"format", "float-quantized"},
          {"quantization_status", "compressed"},
          {"sparsity_config", {{"format", "dense"}}},
          {"config_groups", {{"group_0", group}}}};
}

// Where the fields of a class lie: "compressed-tensors weights".
Json::json_pointer place_of(std::string_view part) {
  if (part.ends_with(" group")) return Json::json_pointer("/config_groups/group_0");
  if (part.ends_with(" weights")) return Json::json_pointer("/config_groups/group_0/weights");
  if (part.ends_with(" sparsity")) return Json::json_pointer("/sparsity_config");
  return Json::json_pointer();
}

TEST_CASE("every field of the classes behind quantization_config is known, with its default") {
  // Read by the reader, which has an opinion of its own on these defaults.
  const std::vector<std::string> unlike = {"format", "quantization_status",
                                           "weight_scale_semantics", "weight_scale_method",
                                           "load_in_4bit"};
  const Json classes = golden("quantization_classes.json");
  REQUIRE(classes.size() > 15);
  for (const Json& row : classes) {
    const std::string part = row.at("part");
    REQUIRE(row.at("fields").size() > 2);
    for (const auto& [name, value] : row.at("fields").items()) {
      INFO(row.at("class") << " " << name);
      Json quantization = base_of(part.substr(0, part.find(' ')));
      REQUIRE(refusal(quantization) == "");
      Json& object = quantization[place_of(part)];
      const Json before = object;
      if (std::ranges::find(unlike, name) == unlike.end()) {
        object[name] = value.is_null() && before.contains(name) ? before.at(name) : value;
        CHECK(refusal(quantization) == "");
      }
      object = before;
      object[name] = "?";
      CHECK_THAT(refusal(quantization), !Catch::Contains("not a known field"));
    }
  }
}

struct BadValue {
  const char* method;
  const char* place;  // a JSON pointer within quantization_config
  Json value;
  const char* expected;  // beside the path, in the message
};

std::string dotted(std::string place) {
  std::ranges::replace(place, '/', '.');
  return "quantization_config" + place;
}

TEST_CASE("a value that can't be loaded is refused by the path of its field") {
  const char* kGptq = "gptq";
  const char* kAwq = "awq";
  const char* kFp8 = "fp8";
  const char* kBits = "bitsandbytes";
  const char* kTensors = "compressed-tensors";
  const Json one = {{"x", 1}};
  const std::vector<BadValue> rows = {
      {kGptq, "/bits", 5, "supported: 2, 3, 4, 8"},
      {kGptq, "/bits", "4", "whole number"},
      {kGptq, "/group_size", 0, "-1"},
      {kGptq, "/group_size", "128", "whole number"},
      {kGptq, "/sym", "yes", "true or false"},
      {kGptq, "/desc_act", 1, "true or false"},
      {kGptq, "/lm_head", "x", "true or false"},
      {kGptq, "/checkpoint_format", "exllama", "gptq_v2"},
      {kGptq, "/format", "bitblas", "gptq_v2"},
      {kGptq, "/method", "awq", "contradicts quant_method"},
      {kGptq, "/is_marlin_format", "yes", "true or false"},
      {kGptq, "/modules_in_block_to_quantize", {1}, "list of names"},
      {kGptq, "/modules_to_not_convert", {"lm_head"}, "modules_in_block_to_quantize"},
      {kGptq, "/dynamic", one, "not supported"},
      {kGptq, "/rotation", "hadamard", "rotated"},
      {kGptq, "/adapter", one, "LoRA"},
      {kGptq, "/activation", "w4a8_fp8", "not supported"},
      {kGptq, "/weight_only", {{"method", "gguf"}}, "another layout"},
      {kGptq, "/pack_dtype", "int8", "int32"},
      {kGptq, "/preprocessors", {one}, "not supported"},
      {kGptq, "/mock_quantization", true, "not supported"},
      {kGptq, "/block_name_to_quantize", "model.vision.blocks", "model.layers"},
      {kGptq, "/quant_block_list", {{"model.layers.0"}}, "model.layers"},
      {kGptq, "/to_quant_block_names", "visual.blocks", "model.layers"},
      {kGptq, "/data_type", "mx_fp", "int"},
      {kGptq, "/super_bits", 6, "another layout"},
      {kGptq, "/super_group_size", 8, "another layout"},
      {kGptq, "/extra_config", one, "not supported"},
      {kGptq, "/act_bits", 8, "16"},
      {kAwq, "/bits", 8, "supported: 4"},
      {kAwq, "/w_bit", 8, "contradicts bits = 4"},
      {kAwq, "/group_size", -2, "-1"},
      {kAwq, "/q_group_size", "x", "whole number"},
      {kAwq, "/version", "exllama", "supported: gemm"},
      {kAwq, "/format", "gemv_fast", "supported: gemm"},
      {kAwq, "/checkpoint_format", "marlin", "supported: gemm"},
      {kAwq, "/backend", "llm-awq", "another layout"},
      {kAwq, "/modules_to_not_convert", "lm_head", "array of strings"},
      {kAwq, "/modules_in_block_to_quantize", {"x"}, "not supported"},
      {kAwq, "/desc_act", true, "not supported"},
      {kAwq, "/lm_head", true, "not supported"},
      {kAwq, "/dynamic", one, "not supported"},
      {kFp8, "/fmt", "e5m2", "supported: e4m3"},
      {kFp8, "/format", "float8_e5m2", "supported: e4m3"},
      {kFp8, "/checkpoint_format", "float8_e5m2", "supported: e4m3"},
      {kFp8, "/weight_block_size", {128}, "two numbers"},
      {"fbgemm_fp8", "/weight_block_size", {128, 128}, "a scale per row"},
      {kFp8, "/ignored_layers", 1, "array of strings"},
      {kFp8, "/modules_to_not_convert", {1}, "array of strings"},
      {kFp8, "/activation_scheme", "per_token", "dynamic"},
      {kFp8, "/scale_fmt", "ue4m3", "plain numbers"},
      {kFp8, "/weight_scale_semantics", "inverse", "divided by"},
      {kFp8, "/weight_scale_method", "row", "divided by"},
      {kFp8, "/bits", 4, "8-bit floats"},
      {kFp8, "/group_size", 128, "8-bit floats"},
      {kFp8, "/sym", false, "8-bit floats"},
      {kFp8, "/desc_act", true, "8-bit floats"},
      {kFp8, "/lm_head", true, "not supported"},
      {kBits, "/load_in_8bit", true, "both"},
      {kBits, "/load_in_4bit", false, "neither"},
      {kBits, "/_load_in_4bit", false, "contradicts"},
      {kBits, "/bnb_4bit_quant_type", "af4", "supported: nf4, fp4"},
      {kBits, "/bnb_4bit_quant_storage", "int32", "bytes"},
      {kBits, "/llm_int8_skip_modules", "lm_head", "array of strings"},
      {kBits, "/llm_int8_has_fp16_weight", "no", "true or false"},
      {kTensors, "/format", "marlin-24", "pack-quantized"},
      {kTensors, "/quantization_status", "frozen", "supported: compressed"},
      {kTensors, "/ignore", "lm_head", "array of strings"},
      {kTensors, "/sparsity_config/format", "sparse-24-bitmask", "supported: dense"},
      {kTensors, "/transform_config/config_groups", one, "transformed"},
      {kTensors, "/moe_sparsity_config", one, "experts"},
      {kTensors, "/kv_cache_scheme", "static", "an object"},
      {kTensors, "/config_groups", 1, "an object"},
      {kTensors, "/config_groups/W4A16", {"Linear"}, "an object"},
      {kTensors, "/config_groups/group_0/targets", "Linear", "array of strings"},
      {kTensors, "/config_groups/group_0/format", "mxfp6-pack-quantized", "float-quantized"},
      {kTensors, "/config_groups/group_0/weights", 1, "an object"},
      {kTensors, "/config_groups/group_0/input_activations", 1, "an object"},
      {kTensors, "/config_groups/group_0/output_activations", {1}, "an object"},
      {kTensors, "/config_groups/group_0/weights/num_bits", 3, "3 bits"},
      {kTensors, "/config_groups/group_0/weights/type", "uint", "supported: int, float"},
      {kTensors, "/config_groups/group_0/weights/strategy", "tensor_group", "block"},
      {kTensors, "/config_groups/group_0/weights/group_size", 128, "contradicts the strategy"},
      {kTensors, "/config_groups/group_0/weights/group_size", 0, "-1 for one group per row"},
      {kTensors, "/config_groups/group_0/weights/group_size", -2, "-1 for one group per row"},
      {kTensors, "/config_groups/group_0/weights/symmetric", false, "zero points"},
      {kTensors, "/config_groups/group_0/weights/symmetric", "no", "true or false"},
      {kTensors, "/config_groups/group_0/weights/block_structure", {2, 2}, "contradicts"},
      {kTensors, "/config_groups/group_0/weights/actorder", "random", "supported: weight, static"},
      {kTensors, "/config_groups/group_0/weights/dynamic", true, "expected null or false"},
      {kTensors, "/config_groups/group_0/weights/scale_dtype", "torch.float8_e4m3fn", "plain"},
      {kTensors, "/config_groups/group_0/weights/zp_dtype", "torch.int32", "bytes"},
  };
  for (const BadValue& row : rows) {
    INFO(row.method << " " << row.place << " " << row.value);
    Json quantization = base_of(row.method);
    quantization[Json::json_pointer(row.place)] = row.value;
    CHECK_THAT(refusal(quantization),
               Catch::StartsWith(dotted(row.place) + ": ") && Catch::Contains(row.expected));
  }
}

TEST_CASE("fields of quantization_config that nobody knows are refused by path, all at once") {
  for (const char* method :
       {"gptq", "awq", "fp8", "fbgemm_fp8", "bitsandbytes", "hqq", "compressed-tensors"}) {
    Json quantization = base_of(method);
    quantization["twist"] = 0.5;
    quantization["swizzle"] = {1, 2};
    CHECK_THAT(refusal(quantization),
               Catch::StartsWith("quantization_config.swizzle = [1,2], "
                                 "quantization_config.twist = 0.5: not a known field of ") &&
                   Catch::Contains(method) && Catch::Contains("what the stored numbers mean") &&
                   Catch::Contains("take it out of the file"));
    // Null says nothing.
    quantization["twist"] = nullptr;
    quantization["swizzle"] = nullptr;
    CHECK(refusal(quantization) == "");
  }
  for (const char* place :
       {"/sparsity_config", "/config_groups/group_0", "/config_groups/group_0/weights",
        "/config_groups/group_0/input_activations", "/transform_config",
        "/config_groups/group_0/output_activations", "/kv_cache_scheme"}) {
    Json quantization = base_of("compressed-tensors");
    Json& object = quantization[Json::json_pointer(place)];
    object["twist"] = 0.5;
    CHECK_THAT(refusal(quantization),
               Catch::StartsWith(dotted(place) + ".twist = 0.5: not a known field of "));
    object["twist"] = nullptr;
    CHECK(refusal(quantization) == "");
  }
}

TEST_CASE("a field that has two names is read by either, and contradicts itself in neither") {
  const Json v2 = {{"quant_method", "gptq"}, {"bits", 4}, {"format", "gptq_v2"}};
  CHECK(refusal(v2) == "");
  Json both = v2;
  both["checkpoint_format"] = "gptq_v2";
  CHECK(refusal(both) == "");
  both["checkpoint_format"] = "gptq";
  CHECK_THAT(refusal(both), Catch::StartsWith("quantization_config.format: \"gptq_v2\" contradicts "
                                              "checkpoint_format = \"gptq\""));
}

TEST_CASE("scales and zero points of activations and of the cache are left unread, nothing else") {
  std::vector<TestTensor> tensors;
  for (const char* suffix : {"input_scale", "input_zero_point", "output_scale", "output_zero_point",
                             "activation_scale", "input_scale_ub", "q_scale", "k_scale", "v_scale",
                             "input_global_scale", "weight_scale", "xk_scale", "bias"}) {
    tensors.push_back(
        {fmt::format("model.layers.0.x.{}", suffix), "F32", "[1]", f32_bytes({1.0F})});
  }
  const MemorySource files({{"model.safetensors", build_safetensors(tensors)}});
  const auto checkpoint = open_checkpoint(files);
  for (const WeightFormat* format : weight_formats()) {
    if (format->name != "fp8" && format->name != "compressed-tensors") continue;
    std::vector<std::string> kept;
    for (const TestTensor& tensor : tensors) {
      const std::string& name = tensor.name;
      if (!format->may_ignore(*checkpoint, *checkpoint->find(name))) {
        kept.push_back(name.substr(name.rfind('.') + 1));
      }
    }
    CHECK(kept == std::vector<std::string>{"weight_scale", "xk_scale", "bias"});
  }
}

}  // namespace
}  // namespace tgi::quantization_fields_test
