// What fields of single architectures become, and which of their values are refused: golden files
// with other metadata.
#include <functional>
#include <string>
#include <vector>

#include "base/files/mapped_file.h"
#include "base/json.h"
#include "engine/gguf/model_reader.h"
#include "engine/weights/ggml/gguf_file.h"
#include "tests/catch.h"
#include "tests/gguf/metadata_builder.h"

namespace tgi::architectures_test {
namespace {

using Change = std::function<void(MetadataBuilder&)>;

// The config.json that a golden file stands for when its metadata says otherwise.
Json config_of(const std::string& name, const Change& change) {
  const std::string path = TGI_SOURCE_DIR "/tests/golden/gguf/" + name + "/model.gguf";
  const MappedFile file(path);
  const GgufFile golden = parse_gguf(file.bytes(), path);
  MetadataBuilder builder(golden.metadata);
  change(builder);
  const GgufMetadata metadata = builder.build();
  gguf::ModelReader model(metadata, golden.tensors);
  for (const gguf::GgufArchitecture& one : gguf::gguf_architectures()) {
    if (one.name == model.architecture()) one.read(model);
  }
  model.check_all_read();
  (void)model.make_index();
  return model.config;
}

void check_refused(const std::string& name, const Change& change, const std::string& why) {
  INFO(why);
  CHECK_THROWS_WITH(config_of(name, change), Catch::Contains(why));
}

TEST_CASE("Gemma 4's layers are as wide as the class can say, and of heads of two lengths") {
  const std::string name = "gemma4-shared-kv";
  const auto set = [](const char* key, auto value) {
    return [=](MetadataBuilder& fields) { fields.set(std::string("gemma4.") + key, value); };
  };
  const Json config = config_of(name, [](MetadataBuilder& /*same*/) {});
  CHECK(config.at("intermediate_size") == 38);
  CHECK(config.at("use_double_wide_mlp") == true);
  CHECK(config.at("per_layer_config").at("0").at("head_dim") == 12);
  CHECK(config.at("per_layer_config").at("1").at("head_dim") == 8);
  const auto widths = [&](std::vector<int32_t> values) {
    return set("feed_forward_length", std::move(values));
  };
  CHECK(config_of(name, widths({38, 38, 38, 38, 38, 38, 38})).at("use_double_wide_mlp") == false);
  check_refused(name, widths({38, 40, 38, 76, 76, 76, 76}), "layer 1 is 40 wide, expected 38");
  check_refused(name, widths({38, 38, 38, 38, 76, 76, 76}), "layer 3 is 38 wide, expected 76");
  check_refused(name, widths({38, 38}), "expected 7 numbers, one for each layer, got 2");
  check_refused(name, set("attention.value_length_swa", 10), "10, expected that of keys, 8");
  check_refused(name, set("rope.dimension_count", 6), "6 of the 12 columns");
  check_refused(name, set("rope.dimension_count_swa", 4), "4 of the 8 columns");
  check_refused(
      name, [](MetadataBuilder& fields) { fields.remove("gemma4.attention.key_length_swa"); },
      "gemma4.attention.key_length_swa");
}

TEST_CASE("one base of the rotation for all layers is what OLMo 3's class has") {
  check_refused(
      "olmo3", [](MetadataBuilder& fields) { fields.set("olmo2.rope.freq_base_swa", 10000); },
      "expected one base for all");
}

TEST_CASE("Mistral 4 is known under DeepSeek's name by the scale of its queries") {
  const auto as_deepseek = [](MetadataBuilder& fields) { fields.rename("mistral4", "deepseek2"); };
  const Json config = config_of("mistral4", as_deepseek);
  CHECK(config == config_of("mistral4", [](MetadataBuilder& /*same*/) {}));
  CHECK(config.at("architectures").at(0) == "Mistral4ForCausalLM");
  check_refused(
      "mistral4",
      [](MetadataBuilder& fields) { fields.set("mistral4.attention.temperature_length", 12); },
      "12, expected 24");
}

TEST_CASE("Mistral 4's queries are scaled by stretches of the file's length without a yarn, too") {
  const Json config = config_of("mistral4", [](MetadataBuilder& fields) {
    for (const char* key : {"type", "factor", "original_context_length", "yarn_log_multiplier",
                            "yarn_beta_fast", "yarn_beta_slow", "yarn_ext_factor"}) {
      fields.remove(std::string("mistral4.rope.scaling.") + key);
    }
    fields.set("mistral4.attention.temperature_length", 12);
  });
  CHECK(config.at("rope_scaling").at("rope_type") == "default");
  CHECK(config.at("rope_scaling").at("original_max_position_embeddings") == 12);
}

TEST_CASE("only Mellum's layers without a window are stretched") {
  const Json config = config_of("mellum-normed-windows", [](MetadataBuilder& fields) {
    fields.set("mellum.rope.scaling.type", "yarn");
    fields.set("mellum.rope.scaling.factor", 4);
    fields.set("mellum.rope.scaling.original_context_length", 16);
  });
  const Json& ropes = config.at("rope_parameters");
  CHECK(ropes.at("full_attention").at("rope_type") == "yarn");
  CHECK(ropes.at("sliding_attention").at("rope_type") == "default");
}

TEST_CASE("experts that are chosen in another way than the class has are refused") {
  const auto set = [](const char* key, auto value) {
    return [=](MetadataBuilder& fields) { fields.set(key, value); };
  };
  check_refused("bailingmoe2", set("bailingmoe2.expert_gating_func", 1),
                "bailingmoe2.expert_gating_func: 1, expected 2 (sigmoid)");
  check_refused("mistral4", set("mistral4.expert_gating_func", 2), "expected 1 (softmax)");
  check_refused("hy3", set("hy_v3.expert_weights_norm", false),
                "hy_v3.expert_weights_norm: false, expected true");
  check_refused("laguna", set("laguna.expert_weights_norm", false), "expected true");
  check_refused("cohere2-moe", set("cohere2moe.expert_gating_func", 4),
                "cohere2moe.expert_gating_func: 4, expected 2 (sigmoid)");
  const std::string fn = "expert_selection_fn";
  CHECK(config_of("cohere2-moe", set("cohere2moe.expert_gating_func", 1)).at(fn) == "softmax");
  CHECK(config_of("cohere2-moe", set("cohere2moe.expert_gating_func", 0)).at(fn) == "sigmoid");
}

TEST_CASE("heads that are stored for images' positions are rotated in whole pairs") {
  check_refused(
      "glm4v", [](MetadataBuilder& fields) { fields.set("glm4.rope.dimension_count", 3); },
      "expected an even number of 2 to 8, got 3");
}

TEST_CASE("Baichuan of 7B is Llama's block, and that of 13B is refused") {
  const auto renamed = [](MetadataBuilder& fields) { fields.rename("llama", "baichuan"); };
  const Json config = config_of("internlm3", renamed);
  CHECK(config == config_of("internlm3", [](MetadataBuilder& /*same*/) {}));
  check_refused(
      "internlm3",
      [&](MetadataBuilder& fields) {
        renamed(fields);
        fields.set("baichuan.block_count", 40);
      },
      "Baichuan 13B");
}

TEST_CASE("layers of DeciLM have KV heads of their own, or no attention") {
  const auto with_heads = [](std::vector<int32_t> heads, std::vector<int32_t> kv_heads) {
    return [=](MetadataBuilder& fields) {
      fields.set("deci.attention.head_count", heads);
      fields.set("deci.attention.head_count_kv", kv_heads);
    };
  };
  const Json blocks = config_of("deci", [](MetadataBuilder& /*same*/) {}).at("block_configs");
  CHECK(blocks[0]["attention"] == Json({{"no_op", false}, {"n_heads_in_group", 1}}));
  CHECK(blocks[0]["ffn"] == Json({{"no_op", false}, {"intermediate_size", 256}}));
  CHECK(blocks[1]["attention"] == Json({{"no_op", true}}));
  check_refused("deci", with_heads({3, 3}, {3, 0}), "layer 1 has 3 heads and no KV heads");
  check_refused("deci", with_heads({3, 0}, {2, 0}), "layer 0 has 2 KV heads for 3 heads");
  // Whose rows the tensor does not have.
  check_refused("deci", with_heads({3, 0}, {1, 0}), "blk.0.attn_k.weight");
}

TEST_CASE("layers of Nanbeige that run several times are refused, and once is Llama's block") {
  const Json config = config_of("nanbeige", [](MetadataBuilder& /*same*/) {});
  CHECK(config.at("architectures").at(0) == "LlamaForCausalLM");
  check_refused(
      "nanbeige", [](MetadataBuilder& fields) { fields.set("nanbeige.num_loops", 2); },
      "nanbeige.num_loops: 2, expected 1");
}

TEST_CASE("positions that are stretched by 1 are not, by another number they are") {
  const auto stretched = [](int factor) {
    return config_of("codeshell", [=](MetadataBuilder& fields) {
      fields.set("codeshell.rope.scaling.factor", factor);
    });
  };
  CHECK_FALSE(stretched(1).contains("rope_scaling"));
  CHECK(stretched(4).at("rope_scaling") == Json({{"rope_type", "linear"}, {"factor", 4.0}}));
}

}  // namespace
}  // namespace tgi::architectures_test
