#include "engine/weights/checkpoint.h"

#include <array>

#include "base/error.h"
#include "base/json.h"
#include "engine/weights/respelled_checkpoint.h"
#include "engine/weights/weight_format.h"
#include "tests/catch.h"
#include "tests/weights/safetensors_builder.h"

namespace tgi {
namespace {

const std::string kShard1 = build_safetensors({{"a", "F32", "[2]", f32_bytes({1, 2})}});
const std::string kShard2 = build_safetensors({{"b", "F32", "[1]", f32_bytes({3})}});
constexpr const char* kIndex = "model.safetensors.index.json";

MemorySource sharded(const std::string& index) {
  return MemorySource({{kIndex, index}, {"1.safetensors", kShard1}, {"2.safetensors", kShard2}});
}

std::string refusal(const MemorySource& files, Code code) {
  try {
    open_checkpoint(files);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  FAIL("was accepted");
  return "";
}

TEST_CASE("opens a single file") {
  const MemorySource files({{"model.safetensors", kShard1}});
  const auto checkpoint = open_checkpoint(files);
  const StoredTensor* a = checkpoint->find("a");
  REQUIRE(a != nullptr);
  CHECK(a->dtype == DType::kF32);
  CHECK(a->num_elements() == 2);
  CHECK(a->file == "memory/model.safetensors");
  CHECK(checkpoint->bytes(*a).size() == 8);
  CHECK(checkpoint->find("b") == nullptr);
  checkpoint->release(*a);
  CHECK(files.released_bytes() == 8);
}

TEST_CASE("tensors of another spelling are found by the usual one, and none gets lost") {
  constexpr auto kRenames = std::to_array<TensorRename>({{".to_q.", ".q_proj."}, {"mid.", ""}});
  const auto tensor = [](const char* name) {
    return TestTensor{name, "F32", "[1]", f32_bytes({1})};
  };
  const MemorySource files(
      {{"model.safetensors",
        build_safetensors({tensor("a.mid.to_q.weight"), tensor("b.q_proj.bias"),
                           tensor("b.to_q.bias"), tensor("c")})}});
  const auto stored = open_checkpoint(files);
  const RespelledCheckpoint checkpoint(*stored, kRenames);
  CHECK(checkpoint.names() ==
        std::vector<std::string_view>{"a.q_proj.weight", "b.q_proj.bias", "b.to_q.bias", "c"});
  REQUIRE(checkpoint.find("a.q_proj.weight") != nullptr);
  CHECK(checkpoint.find("a.q_proj.weight")->name == "a.mid.to_q.weight");
  CHECK(checkpoint.find("b.q_proj.bias") == stored->find("b.q_proj.bias"));
  CHECK(checkpoint.find("a.mid.to_q.weight") == nullptr);
  CHECK(checkpoint.bytes(*checkpoint.find("c")).size() == 4);
}

TEST_CASE("opens a file of another name") {
  const MemorySource files({{"other.safetensors", kShard1}});
  CHECK(open_safetensors(files, "other.safetensors")->find("a") != nullptr);
  CHECK_THROWS_AS(open_safetensors(files, "model.safetensors"), Error);
}

TEST_CASE("opens a sharded index, with tensors that it does not list") {
  const MemorySource files({{kIndex, R"({"metadata":{},"weight_map":{"a":"1.safetensors"}})"},
                            {"1.safetensors", build_safetensors({
                                                  {"a", "F32", "[1]", f32_bytes({1})},
                                                  {"extra", "F32", "[1]", f32_bytes({2})},
                                              })}});
  const auto checkpoint = open_checkpoint(files);
  CHECK(checkpoint->names() == std::vector<std::string_view>{"a", "extra"});
}

TEST_CASE("a single file is preferred to an index") {
  const MemorySource files({{"model.safetensors", kShard1}, {kIndex, "not JSON"}});
  CHECK(open_checkpoint(files)->find("a") != nullptr);
}

TEST_CASE("says what is missing when there are no weights") {
  CHECK_THAT(refusal(MemorySource(std::map<std::string, std::string>{}), Code::kNotFound),
             Catch::Contains("memory/model.safetensors") && Catch::Contains(kIndex));
  CHECK_THAT(refusal(MemorySource(std::map<std::string, std::string>{{"pytorch_model.bin", "x"}}),
                     Code::kNotFound),
             Catch::Contains("`tgi load memory` converts it to safetensors"));
}

TEST_CASE("weights by other names are told") {
  const MemorySource files(
      {{"consolidated.safetensors", kShard1}, {"flax_model.msgpack", "x"}, {"params.json", "{}"}});
  CHECK_THAT(refusal(files, Code::kNotFound),
             Catch::EndsWith("the folder has consolidated.safetensors, flax_model.msgpack: give "
                             "one that holds the model as transformers saves it"));
  std::map<std::string, std::string> many;
  for (int i = 1; i <= 6; ++i) many["model-" + std::to_string(i) + "-of-6.safetensors"] = kShard1;
  CHECK_THAT(refusal(MemorySource(many), Code::kNotFound),
             Catch::Contains("model-4-of-6.safetensors and 2 more"));
}

TEST_CASE("a damaged index is refused") {
  CHECK_THAT(refusal(sharded("nonsense"), Code::kInvalidArgument), Catch::Contains(kIndex));
  CHECK_THAT(refusal(sharded("{}"), Code::kInvalidArgument),
             Catch::Contains("weight_map: missing"));
  CHECK_THAT(refusal(sharded(R"({"weight_map":{}})"), Code::kInvalidArgument),
             Catch::Contains("names no tensor"));
  CHECK_THAT(refusal(sharded(R"({"weight_map":{"a":1}})"), Code::kInvalidArgument),
             Catch::Contains("weight_map.a"));
}

TEST_CASE("a shard is a plain file name") {
  for (const std::string name : {"../1.safetensors", "/etc/passwd", "sub/1.safetensors", "..", ".",
                                 "", "a\\\\b", "a\\u0000b"}) {
    INFO(name);
    CHECK_THAT(
        refusal(sharded("{\"weight_map\":{\"a\":\"" + name + "\"}}"), Code::kInvalidArgument),
        Catch::Contains("plain name"));
  }
}

TEST_CASE("a missing shard and a tensor that is not in its shard are named") {
  CHECK_THAT(refusal(sharded(R"({"weight_map":{"a":"1.safetensors","c":"3.safetensors"}})"),
                     Code::kNotFound),
             Catch::Contains("memory/3.safetensors"));
  CHECK_THAT(refusal(sharded(R"({"weight_map":{"a":"1.safetensors","c":"2.safetensors"}})"),
                     Code::kInvalidArgument),
             Catch::Contains("2.safetensors holds tensor c, but it does not"));
  CHECK_THAT(refusal(sharded(R"({"weight_map":{"a":"2.safetensors","b":"1.safetensors"}})"),
                     Code::kInvalidArgument),
             Catch::Contains("memory/1.safetensors does"));
}

TEST_CASE("a tensor in two shards is refused") {
  const MemorySource files(
      {{kIndex, R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})"},
       {"1.safetensors", kShard1},
       {"2.safetensors", build_safetensors({{"a", "F32", "[1]", f32_bytes({1})},
                                            {"b", "F32", "[1]", f32_bytes({1})}})}});
  CHECK_THAT(refusal(files, Code::kInvalidArgument),
             Catch::Contains("tensor a is both in memory/1.safetensors and in "
                             "memory/2.safetensors"));
}

TEST_CASE("a damaged shard is named") {
  const MemorySource files({{kIndex, R"({"weight_map":{"a":"1.safetensors"}})"},
                            {"1.safetensors", kShard1.substr(0, kShard1.size() - 1)}});
  CHECK_THAT(refusal(files, Code::kInvalidArgument),
             Catch::StartsWith("memory/1.safetensors: tensor a"));
}

TEST_CASE("finds tensors under their older names") {
  const auto has = [](const std::string& stored, std::string_view wanted) {
    const MemorySource files(
        {{"model.safetensors", build_safetensors({{stored, "U8", "[1]", "x"}})}});
    return find_by_any_name(*open_checkpoint(files), wanted, "model.") != nullptr;
  };
  CHECK(has("model.norm.weight", "model.norm.weight"));
  CHECK(has("norm.weight", "model.norm.weight"));
  CHECK(has("model.norm.gamma", "model.norm.weight"));
  CHECK(has("norm.beta", "model.norm.bias"));
  CHECK(has("model.lm_head.weight", "lm_head.weight"));
  CHECK_FALSE(has("other.norm.weight", "model.norm.weight"));
  CHECK_FALSE(has("norm.beta", "model.norm.weight"));
}

TEST_CASE("a config without quantization is dense") {
  const Json plain = parse_json(R"({"hidden_size":1})");
  CHECK(find_weight_format(JsonReader(plain, "")).name == "dense");
  const Json null = parse_json(R"({"quantization_config":null})");
  CHECK(find_weight_format(JsonReader(null, "")).name == "dense");
}

TEST_CASE("a quantization that no format claims is named") {
  const Json json = parse_json(R"({"quantization_config":{"quant_method":"aqlm","bits":4}})");
  try {
    find_weight_format(JsonReader(json, ""));
    FAIL("was accepted");
  } catch (const Error& error) {
    CHECK(error.code() == Code::kUnsupported);
    CHECK_THAT(error.what(),
               Catch::Contains("'aqlm'") && Catch::Contains("dense") && Catch::Contains("gptq"));
  }
}

TEST_CASE("a dense slice is a view with strides") {
  const MemorySource files(
      {{"model.safetensors",
        build_safetensors({{"w", "F32", "[2, 3]", f32_bytes({0, 1, 2, 3, 4, 5})}})}});
  const auto checkpoint = open_checkpoint(files);
  const WeightFormat& dense = *weight_formats().front();
  WeightProblems problems;
  const auto at = [](const WeightPart& part, int64_t row, int64_t col) {
    float value = 0;
    std::memcpy(&value, part.data + 4 * (row * part.row_stride + col * part.col_stride), 4);
    return value;
  };

  const MatrixSpec plain{.name = "w", .prefix = "", .rows = 2, .cols = 3};
  const auto tensors = dense.collect({}, *checkpoint, plain, problems);
  const HostWeight right = dense.slice({}, *checkpoint, plain, tensors, {0, 2}, {1, 2}, {});
  CHECK(at(right.parts[0], 0, 0) == 1.0F);
  CHECK(at(right.parts[0], 1, 1) == 5.0F);

  const MatrixSpec transposed{.name = "w", .prefix = "", .rows = 3, .cols = 2, .transposed = true};
  const auto same = dense.collect({}, *checkpoint, transposed, problems);
  const HostWeight lower = dense.slice({}, *checkpoint, transposed, same, {1, 2}, {0, 2}, {});
  CHECK(lower.rows == 2);
  CHECK(at(lower.parts[0], 0, 0) == 1.0F);
  CHECK(at(lower.parts[0], 1, 1) == 5.0F);
  CHECK((problems.missing.empty() && problems.misshapen.empty()));

  const MatrixSpec wrong{.name = "w", .prefix = "", .rows = 3, .cols = 2};
  dense.collect({}, *checkpoint, wrong, problems);
  REQUIRE(problems.misshapen.size() == 1);
  CHECK(problems.misshapen[0] == "w: expected (3, 2), got (2, 3)");
}

}  // namespace
}  // namespace tgi
