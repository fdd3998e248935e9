#include "engine/lora/adapter_config.h"

#include <cmath>
#include <filesystem>
#include <set>

#include "engine/lora/finite_bits.h"
#include "engine/lora/module_patterns.h"
#include "engine/lora/tensor_names.h"
#include "tests/catch.h"
#include "tests/lora/adapter_builder.h"

namespace tgi {
namespace {

AdapterConfig read_text(const std::string& text) {
  return read_adapter_config(MemorySource({{"adapter_config.json", text}}));
}

AdapterConfig read_with(const Json& more) {
  Json config = small_adapter_config();
  config.update(more);
  return read_text(config.dump());
}

std::string refused(const Json& more, Code code) {
  const std::string text = refusal_of_action(code, [&] { read_with(more); });
  CHECK_THAT(text, Catch::StartsWith("memory/adapter_config.json: "));
  return text;
}

TEST_CASE("a config of PEFT is read") {
  const AdapterConfig config = read_with({{"base_model_name_or_path", "org/base"},
                                          {"revision", "main"},
                                          {"use_rslora", true},
                                          {"lora_alpha", 2.5},
                                          {"target_modules", {"v_proj", "q_proj"}},
                                          {"bias", "lora_only"},
                                          {"use_dora", true}});
  CHECK(config.base_model == "org/base");
  CHECK(config.revision == "main");
  CHECK(config.rank == 2);
  CHECK(config.alpha == 2.5);
  CHECK(config.is_rank_stabilised);
  CHECK(config.targets == std::vector<std::string>{"v_proj", "q_proj"});
  CHECK(config.bias == "lora_only");
  CHECK(config.is_dora);
  CHECK_FALSE(config.has_b_biases);
  CHECK(read_with({{"lora_bias", true}}).has_b_biases);
  CHECK_THAT(refused({{"lora_bias", true}, {"use_dora", true}}, Code::kUnsupported),
             Catch::Contains("lora_bias: not supported together with use_dora"));
}

TEST_CASE("what a config leaves out is as PEFT has it") {
  const AdapterConfig config =
      read_text(R"({"peft_type":"LORA","revision":null,"rank_pattern":null,"bias":null})");
  CHECK(config.rank == 8);
  CHECK(config.alpha == 8.0);
  CHECK_FALSE(config.is_rank_stabilised);
  CHECK(config.base_model.empty());
  CHECK(config.ranks.empty());
  CHECK(config.targets.empty());
  CHECK_FALSE(config.is_dora);
  CHECK_FALSE(config.has_b_biases);
}

TEST_CASE("targets may be a pattern") {
  CHECK(read_with({{"target_modules", "all-linear"}}).targets ==
        std::vector<std::string>{"all-linear"});
}

TEST_CASE("patterns keep the order of the file") {
  const AdapterConfig config = read_text(
      R"({"peft_type":"LORA","rank_pattern":{"z":3,"a":1,"m":2},"alpha_pattern":{"y":0.5}})");
  CHECK(config.ranks == NumbersByPattern<int32_t>{{"z", 3}, {"a", 1}, {"m", 2}});
  CHECK(config.alphas == NumbersByPattern<double>{{"y", 0.5}});
}

TEST_CASE("ranks are 1 to 256") {
  CHECK(read_with({{"r", 256}}).rank == 256);
  CHECK_THAT(refused({{"r", 257}}, Code::kUnsupported),
             Catch::Contains("r: rank 257 is above 256"));
  CHECK_THAT(refused({{"r", 18446744073709551615ULL}}, Code::kUnsupported),
             Catch::Contains("18446744073709551615"));
  CHECK_THAT(refused({{"r", 0}}, Code::kInvalidArgument), Catch::Contains("got 0"));
  CHECK_THAT(refused({{"r", -1}}, Code::kInvalidArgument), Catch::Contains("got -1"));
  CHECK_THAT(refused({{"r", 2.5}}, Code::kInvalidArgument), Catch::Contains("got 2.5"));
  CHECK_THAT(refused({{"r", "8"}}, Code::kInvalidArgument), Catch::Contains("r: expected"));
  CHECK_THAT(refused({{"rank_pattern", {{"q_proj", 300}}}}, Code::kUnsupported),
             Catch::Contains("rank_pattern.q_proj: rank 300"));
}

TEST_CASE("values of other types are refused by name") {
  CHECK_THAT(refused({{"lora_alpha", "16"}}, Code::kInvalidArgument),
             Catch::Contains("lora_alpha: expected a number"));
  CHECK_THAT(refused({{"alpha_pattern", {{"q_proj", true}}}}, Code::kInvalidArgument),
             Catch::Contains("alpha_pattern.q_proj: expected a number"));
  CHECK_THAT(refused({{"rank_pattern", {1, 2}}}, Code::kInvalidArgument),
             Catch::Contains("rank_pattern"));
  CHECK_THAT(refused({{"use_rslora", 1}}, Code::kInvalidArgument), Catch::Contains("use_rslora"));
  CHECK_THAT(refused({{"bias", "some"}}, Code::kInvalidArgument),
             Catch::Contains("bias: expected none, all or lora_only, got \"some\""));
  CHECK_THAT(refused({{"target_modules", 3}}, Code::kInvalidArgument),
             Catch::Contains("target_modules"));
  CHECK_THAT(refused({{"r", nullptr}}, Code::kInvalidArgument), Catch::Contains("r: "));
}

TEST_CASE("adapters of another kind are refused by its name") {
  CHECK_THAT(refused({{"peft_type", "IA3"}, {"feedforward_modules", {"x"}}}, Code::kUnsupported),
             Catch::Contains("\"IA3\" are not supported, only LORA"));
  refusal_of_action(Code::kInvalidArgument, [] { read_text(R"({"r":8})"); });
  refusal_of_action(Code::kInvalidArgument, [] { read_text("nonsense"); });
  refusal_of_action(Code::kNotFound, [] {
    read_adapter_config(MemorySource(std::map<std::string, std::string>{}));
  });
}

TEST_CASE("fields that change what is computed are refused by name") {
  const auto values = Json::parse(R"({
    "modules_to_save": ["lm_head"],
    "trainable_token_indices": [1, 2],
    "layer_replication": [[0, 2], [1, 3]], "alora_invocation_tokens": [5], "use_qalora": true,
    "velora_config": {"num_groups": 2}, "monteclora_config": {"num_samples": 2},
    "use_bdlora": {"nblocks": 2}, "arrow_config": {"top_k": 1}, "kasa_config": {"beta": 1},
    "megatron_config": {"x": 1}, "ensure_weight_tying": true, "task_type": "SEQ_CLS",
    "init_lora_weights": "pissa_niter_4", "enable_lora": [true, false],
    "some_new_field": 1})");
  for (const auto& [name, value] : values.items()) {
    CHECK_THAT(refused({{name, value}}, Code::kUnsupported), Catch::Contains(name));
  }
}

TEST_CASE("what a config of PEFT says where nothing was asked for is accepted") {
  const auto values = Json::parse(R"({
    "use_dora": false, "lora_bias": false, "modules_to_save": null, "target_parameters": null,
    "trainable_token_indices": null, "layer_replication": null, "alora_invocation_tokens": null,
    "use_qalora": false, "qalora_group_size": 16, "velora_config": null, "use_bdlora": null,
    "megatron_config": null, "megatron_core": "megatron.core", "task_type": "CAUSAL_LM",
    "init_lora_weights": true, "loftq_config": {}, "eva_config": null, "layers_pattern": "layers",
    "layers_to_transform": [1, 2], "exclude_modules": ["lm_head"], "fan_in_fan_out": true,
    "inference_mode": true, "lora_dropout": 0.1, "auto_mapping": {"base_model_class": "X"},
    "peft_version": "0.21.2", "ensure_weight_tying": false, "unsloth_fixed": true,
    "some_new_field": null})");
  for (const auto& [name, value] : values.items()) {
    INFO(name);
    CHECK_NOTHROW(read_with({{name, value}}));
  }
}

TEST_CASE("every field of PEFT's config class is known") {
  const auto folder = open_folder(TGI_SOURCE_DIR "/tests/golden/adapters");
  const Json fields = parse_json(folder->require_text("lora_config.json")).at("defaults");
  CHECK(fields.size() >= 40);
  for (const auto& [name, value] : fields.items()) {
    INFO(name);
    CHECK(find_field(adapter_fields(), {}, name) != nullptr);
  }
  Json config = fields;
  config["peft_type"] = "LORA";
  CHECK(read_text(config.dump()).rank == fields.at("r"));
}

// As Python's re.match(rf"(.*\.)?({pattern})$", name) says.
TEST_CASE("patterns match whole names or what follows a dot") {
  const auto matches = [](const std::string& pattern, std::string_view module) {
    return ModulePatterns({pattern}).find(module) == 0;
  };
  const std::string name = "model.layers.11.self_attn.q_proj";
  CHECK(matches("q_proj", name));
  CHECK(matches("self_attn.q_proj", name));
  CHECK(matches("self_attn_q_proj", "self_attn_q_proj"));
  CHECK(matches("self_attn.q_proj", "x.self_attn_q_proj"));
  CHECK(matches(name, name));
  CHECK(matches("^model.layers.11.self_attn.q_proj", name));
  CHECK(matches(R"(layers\.1[0-9]\..*)", name));
  CHECK(matches(R"(.*\.q_proj)", name));
  CHECK(matches(R"((q|v)_proj)", name));
  CHECK(matches(R"(layers\.\d+\.self_attn\.(q|k)_proj$)", name));
  CHECK(matches("k_proj|q_proj", name));
  CHECK_FALSE(matches("proj", name));
  CHECK_FALSE(matches("_proj", name));
  CHECK_FALSE(matches("q_proj", "q_proj.x"));
  CHECK_FALSE(matches("^layers.11.self_attn.q_proj", name));
  CHECK_FALSE(matches("layers.1.self_attn.q_proj", name));
  CHECK_FALSE(matches(R"(layers\.1\.self_attn\.(q|k)_proj)", name));
  CHECK_FALSE(matches("", name));
}

TEST_CASE("a pattern that can't be read is named") {
  CHECK_THAT(refusal_of_action(Code::kInvalidArgument, [] { ModulePatterns({"(q_proj"}); }),
             Catch::StartsWith("(q_proj: "));
  AdapterConfig config;
  config.ranks = {{"(q)\\1", 4}};
  CHECK_THAT(refusal_of_action(Code::kUnsupported, [&] { ModuleScales scales(config); }),
             Catch::StartsWith("rank_pattern: (q)\\1: "));
}

TEST_CASE("a pattern that would take forever to go back over is matched in little time") {
  std::string name(2000, 'a');
  CHECK(ModulePatterns({"(a+)+b|x[0-9]"}).find(name) == -1);
}

TEST_CASE("scales are those of the module") {
  AdapterConfig config;
  config.rank = 4;
  config.alpha = 16.0;
  config.ranks = {{"layers.1.mlp.up_proj", 8}, {"up_proj", 2}};
  config.alphas = {{R"(layers\.[01]\..*)", 3.0}};
  const auto both = [&config](std::string_view module) {
    ModuleScales scales(config);
    return std::pair(scales.rank_of(module), scales.scale_of(module));
  };
  CHECK(both("model.layers.2.mlp.down_proj") == std::pair(4, 4.0F));
  CHECK(both("model.layers.2.mlp.up_proj") == std::pair(2, 8.0F));
  CHECK(both("model.layers.1.mlp.up_proj") == std::pair(8, 0.375F));
  config.is_rank_stabilised = true;
  CHECK(both("model.layers.2.mlp.down_proj") == std::pair(4, 8.0F));
  CHECK(both("model.layers.1.mlp.up_proj") ==
        std::pair(8, static_cast<float>(3.0 / std::sqrt(8.0))));
}

TEST_CASE("names of tensors are taken apart") {
  const auto is = [](std::string_view name, AdapterTensor kind, std::string_view module) {
    INFO(name);
    const AdapterTensorName parsed = parse_adapter_tensor(name);
    CHECK(parsed.kind == kind);
    CHECK(parsed.module == module);
  };
  const std::string q = "base_model.model.model.layers.0.q_proj";
  const std::string_view module = "model.layers.0.q_proj";
  is(q + ".lora_A.weight", AdapterTensor::kA, module);
  is(q + ".lora_B.weight", AdapterTensor::kB, module);
  is(q + ".lora_A.default.weight", AdapterTensor::kA, module);
  is("model.layers.0.q_proj.lora_B.my-own_1.weight", AdapterTensor::kB, module);
  is(q + ".lora_B.bias", AdapterTensor::kBBias, module);
  is(q + ".lora_B.default.bias", AdapterTensor::kBBias, module);
  is("base_model.model.model.embed_tokens.lora_embedding_A", AdapterTensor::kEmbeddingA,
     "model.embed_tokens");
  is("base_model.model.model.embed_tokens.lora_embedding_B.default", AdapterTensor::kEmbeddingB,
     "model.embed_tokens");
  is(q + ".lora_magnitude_vector", AdapterTensor::kMagnitude, module);
  is(q + ".lora_magnitude_vector.default.weight", AdapterTensor::kMagnitude, module);
  is(q + ".base_layer.bias", AdapterTensor::kBias, module);
  is(q + ".bias", AdapterTensor::kBias, module);
  is("base_model.model.lm_head.base_layer.weight", AdapterTensor::kWeight, "lm_head");
  is("base_model.model.lm_head.weight", AdapterTensor::kWeight, "lm_head");
  is(q + ".lora_A.a.b.weight", AdapterTensor::kOther, "model.layers.0.q_proj.lora_A.a.b.weight");
  is(q + ".lora_A.default", AdapterTensor::kOther, "model.layers.0.q_proj.lora_A.default");
  is(q + ".lora_diag.default", AdapterTensor::kOther, "model.layers.0.q_proj.lora_diag.default");
  is("token_adapter.trainable_tokens_delta", AdapterTensor::kOther,
     "token_adapter.trainable_tokens_delta");
  is(".lora_A.weight", AdapterTensor::kOther, ".lora_A.weight");
  is(".weight", AdapterTensor::kOther, ".weight");
  is("", AdapterTensor::kOther, "");
}

TEST_CASE("numbers that are not finite are found wherever they are") {
  const auto are = [](std::vector<std::byte> bytes, DType dtype) {
    // Also where elements are not aligned.
    bytes.insert(bytes.begin(), std::byte{0});
    return are_finite(std::span(bytes).subspan(1), dtype);
  };
  struct Case {
    DType dtype;
    std::vector<uint32_t> finite;
    std::vector<uint32_t> others;  // infinities, then NaNs
  };
  const std::vector<Case> cases = {
      {DType::kF32,
       {0, 0x80000000, 0x7F7FFFFF, 0xFF7FFFFF, 0x00000001, 0x7F000000},
       {0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FFFFFFF}},
      {DType::kF16,
       {0, 0x8000, 0x7BFF, 0xFBFF, 0x0001, 0x7800},
       {0x7C00, 0xFC00, 0x7E00, 0x7C01, 0xFFFF}},
      {DType::kBF16,
       {0, 0x8000, 0x7F7F, 0xFF7F, 0x0001, 0x7F00},
       {0x7F80, 0xFF80, 0x7FC0, 0x7F81, 0xFFFF}},
  };
  for (const Case& one : cases) {
    const size_t size = dtype_size(one.dtype);
    for (const size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{2048}, size_t{5000}}) {
      std::vector<std::byte> bytes(count * size);
      const auto put = [&](size_t at, uint32_t bits) {
        std::memcpy(bytes.data() + at * size, &bits, size);
      };
      for (size_t i = 0; i < count; ++i) put(i, one.finite[i % one.finite.size()]);
      CHECK(are(bytes, one.dtype));
      for (const uint32_t bits : one.others) {
        for (const size_t at : {size_t{0}, count / 2, count - 1}) {
          if (count == 0) continue;
          const auto whole = bytes;
          put(at, bits);
          INFO(dtype_name(one.dtype) << " " << bits << " at " << at << " of " << count);
          CHECK_FALSE(are(bytes, one.dtype));
          bytes = whole;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tgi
