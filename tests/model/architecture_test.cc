#include "engine/model/architecture.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "engine/model/absent_classes.h"
#include "tests/catch.h"
#include "tests/model/config_refusal.h"
#include "tests/model/model_files.h"

namespace tgi {
namespace {

Json with(Json config, const std::string& key, const Json& value) {
  config[key] = value;
  return config;
}

Json without(Json config, const std::string& key) {
  config.erase(key);
  return config;
}

// Of each layer, whether it has one.
std::vector<bool> windows(const Json& config) {
  std::vector<bool> out;
  for (const LayerPlan& layer : load_config(config).config.layers) {
    out.push_back(layer.sliding_window > 0);
  }
  return out;
}

TEST_CASE("reads a llama config") {
  const LoadedConfig model = load_config(small_llama());
  CHECK(model.config.architecture == "LlamaForCausalLM");
  CHECK(model.config.head_dim == 4);
  CHECK(model.config.num_kv_heads == 2);
  CHECK(model.config.max_positions == 2048);
  CHECK(model.config.norm_eps == 1e-6F);
  CHECK(model.config.attention_scale == 0.5F);
  CHECK(model.config.ropes.at(0).rotary_dim == 4);
  CHECK(model.config.checkpoint_dtype == DType::kF32);
  CHECK_FALSE(model.config.tied_embeddings);
  CHECK(model.config.bos_token_id == 1);
  CHECK(model.config.eos_token_ids == std::vector<int32_t>{2});
  CHECK(model.weight_format->name == "dense");
}

TEST_CASE("reads a gpt2 config by its own field names") {
  const ModelConfig config = load_config(small_gpt2()).config;
  CHECK(config.hidden_size == 12);
  CHECK(config.intermediate_size == 48);
  CHECK(config.head_dim == 6);
  CHECK(config.num_kv_heads == 2);
  CHECK(config.max_positions == 9);
  CHECK(config.norm_kind == NormKind::kLayer);
  CHECK(config.activation == Activation::kGeluTanh);
  CHECK(config.learned_positions);
  CHECK(config.ropes.empty());
  CHECK_FALSE(config.gated_mlp);
  CHECK(config.tied_embeddings);
  CHECK(load_config(with(small_gpt2(), "scale_attn_weights", false)).config.attention_scale ==
        1.0F);
  refusal(with(small_gpt2(), "add_cross_attention", true), Code::kUnsupported);
}

TEST_CASE("an unknown architecture is named with the known ones") {
  CHECK_THAT(refusal(with(small_llama(), "architectures", {"FooForCausalLM"}), Code::kUnsupported),
             Catch::Contains("'FooForCausalLM'") && Catch::Contains("LlamaForCausalLM") &&
                 Catch::Contains("MistralForCausalLM") && Catch::Contains("Qwen2ForCausalLM") &&
                 Catch::Contains("Qwen3ForCausalLM") && Catch::Contains("GPT2LMHeadModel"));
  refusal(without(small_llama(), "architectures"), Code::kUnsupported);
  const Json by_type = with(without(small_llama(), "architectures"), "model_type", "mistral");
  CHECK(load_config(by_type).config.architecture == "MistralForCausalLM");
}

TEST_CASE("a class that is known not to be there is refused with the reason") {
  const Json config = with(small_llama(), "architectures", {"T5ForConditionalGeneration"});
  CHECK_THAT(refusal(config, Code::kUnsupported),
             Catch::Contains("'T5ForConditionalGeneration' is not supported: it is an "
                             "encoder-decoder"));
  CHECK_THAT(refusal({{"model_type", "t5"}}, Code::kUnsupported),
             Catch::Contains("'t5'") && Catch::Contains("encoder-decoder"));
  // None is a class that is read by now.
  CHECK(absent_classes().size() > 50);
  for (const AbsentClass& absent : absent_classes()) {
    for (const Json& asked :
         {Json{{"architectures", {absent.name}}}, Json{{"model_type", absent.model_type}}}) {
      CHECK_THAT(refusal(asked, Code::kUnsupported), Catch::Contains(std::string(absent.reason)));
    }
  }
}

TEST_CASE("every family is found by each of its names and its type") {
  for (const Architecture* architecture : architectures()) {
    for (const std::string_view name : architecture->names) {
      const Json config = Json{{"architectures", {name}}};
      CHECK(&find_architecture(JsonReader(config, "")) == architecture);
    }
    for (const std::string_view type : architecture->model_types) {
      const Json config = Json{{"model_type", type}};
      CHECK(&find_architecture(JsonReader(config, "")) == architecture);
    }
  }
}

TEST_CASE("sizes that are zero, negative or absurd are refused by name") {
  for (const std::string key :
       {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
        "num_attention_heads", "num_key_value_heads", "head_dim", "max_position_embeddings"}) {
    for (const Json& value : {Json(0), Json(-4), Json(int64_t{1} << 40), Json(UINT64_MAX),
                              Json("10"), Json(1.5), Json(Json::array())}) {
      CHECK_THAT(refusal(with(small_llama(), key, value), Code::kInvalidArgument),
                 Catch::Contains(key));
    }
  }
}

TEST_CASE("sizes that don't fit each other are refused") {
  CHECK_THAT(refusal(with(small_llama(), "num_key_value_heads", 4), Code::kInvalidArgument),
             Catch::Contains("6 heads") && Catch::Contains("4 KV heads"));
  CHECK_THAT(refusal(without(small_llama(), "head_dim"), Code::kInvalidArgument),
             Catch::Contains("hidden_size: 10 is not a multiple of num_attention_heads = 6"));
  CHECK_THAT(refusal(with(small_llama(), "head_dim", 5), Code::kInvalidArgument),
             Catch::Contains("even"));
  CHECK_THAT(refusal(with(small_llama(), "rms_norm_eps", -1), Code::kInvalidArgument),
             Catch::Contains("rms_norm_eps"));
}

TEST_CASE("activations are known by their names") {
  const auto activation = [](const std::string& name) {
    return load_config(with(small_llama(), "hidden_act", name)).config.activation;
  };
  CHECK(activation("swish") == Activation::kSilu);
  CHECK(activation("gelu") == Activation::kGelu);
  CHECK(activation("gelu_pytorch_tanh") == Activation::kGeluTanh);
  CHECK(activation("relu2") == Activation::kReluSquared);
  CHECK_THAT(refusal(with(small_llama(), "hidden_act", "mish"), Code::kUnsupported),
             Catch::Contains("'mish'") && Catch::Contains("silu"));
}

TEST_CASE("types of the stored weights are known by their names") {
  const auto dtype = [](const std::string& key, const std::string& name) {
    return load_config(with(without(small_llama(), "torch_dtype"), key, name))
        .config.checkpoint_dtype;
  };
  CHECK(dtype("dtype", "bfloat16") == DType::kBF16);
  CHECK(dtype("torch_dtype", "float16") == DType::kF16);
  CHECK(load_config(without(small_llama(), "torch_dtype")).config.checkpoint_dtype == DType::kF32);
  CHECK_THAT(refusal(with(small_llama(), "dtype", "float8_e4m3fn"), Code::kUnsupported),
             Catch::Contains("dtype: 'float8_e4m3fn'"));
}

TEST_CASE("end tokens come from the generation config first") {
  const auto eos = [](const Json& config, const std::string& generation) {
    return load_model_config(config_files(config.dump(), generation)).config.eos_token_ids;
  };
  const Json config = with(small_llama(), "eos_token_id", 2);
  CHECK(eos(config, "") == std::vector<int32_t>{2});
  CHECK(eos(config, "{}") == std::vector<int32_t>{2});
  CHECK(eos(config, R"({"eos_token_id":[7,8]})") == std::vector<int32_t>{7, 8});
  CHECK(eos(config, R"({"eos_token_id":9})") == std::vector<int32_t>{9});
  CHECK(eos(with(small_llama(), "eos_token_id", {3, 4}), "") == std::vector<int32_t>{3, 4});
  CHECK(eos(with(small_llama(), "eos_token_id", -1), "").empty());
  CHECK_THROWS_WITH(eos(config, R"({"eos_token_id":"x"})"),
                    Catch::StartsWith("memory/generation_config.json: eos_token_id"));
  CHECK_THROWS_WITH(eos(config, "nonsense"), Catch::StartsWith("memory/generation_config.json"));
  refusal(with(small_llama(), "eos_token_id", int64_t{1} << 40), Code::kInvalidArgument);
}

TEST_CASE("a missing or broken config file is named") {
  CHECK_THROWS_WITH(load_model_config(MemorySource(std::map<std::string, std::string>{})),
                    Catch::Contains("memory/config.json: no such file"));
  CHECK_THROWS_WITH(load_model_config(config_files("[1]")), Catch::Contains("memory/config.json"));
  CHECK_THROWS_WITH(load_model_config(config_files("{")), Catch::Contains("memory/config.json"));
}

TEST_CASE("a quantized config is refused by its method") {
  for (const char* method : {"aqlm", "quanto", "quark"}) {
    CHECK_THAT(refusal(with(small_llama(), "quantization_config", {{"quant_method", method}}),
                       Code::kUnsupported),
               Catch::Contains(fmt::format("'{}' can't be loaded; supported: dense, ", method)) &&
                   Catch::Contains("--quantize it"));
  }
}

TEST_CASE("quantisation settings in a file of their own count where config.json has none") {
  const auto load = [](const Json& config, const char* file, const char* text) {
    return load_model_config(MemorySource(
        std::map<std::string, std::string>{{"config.json", config.dump()}, {file, text}}));
  };
  const Json plain = small_llama();
  CHECK(load(plain, "quantize_config.json", R"({"bits":4,"group_size":64})").weight_format->name ==
        "gptq");
  CHECK(load(plain, "quant_config.json", R"({"w_bit":4,"q_group_size":64,"version":"GEMM"})")
            .weight_format->name == "awq");
  CHECK(load(plain, "hf_quant_config.json", R"({"quantization":{"quant_algo":"FP8"}})")
            .weight_format->name == "modelopt");
  CHECK_THROWS_WITH(load(plain, "quantize_config.json", "[]"),
                    Catch::Contains("memory/quantize_config.json"));
  CHECK_THROWS_WITH(load(plain, "quantize_config.json", R"({"bits":4,"twist":1})"),
                    Catch::Contains("with the settings of quantize_config.json: "
                                    "quantization_config.twist = 1: not a known field of gptq"));
  const Json other = with(plain, "quantization_config", {{"quant_method", "fp8"}});
  CHECK(load(other, "quantize_config.json", "[]").weight_format->name == "fp8");
}

TEST_CASE("mistral: no field is a window of 4096, null is none") {
  const Json config = with(small_llama(), "architectures", {"MistralForCausalLM"});
  CHECK(longest_window(load_config(config).config) == 4096);
  CHECK(longest_window(load_config(with(config, "sliding_window", nullptr)).config) == 0);
  CHECK(longest_window(load_config(with(config, "sliding_window", 8)).config) == 8);
  CHECK(windows(config) == std::vector<bool>{true, true});
  refusal(with(config, "sliding_window", 0), Code::kInvalidArgument);
}

TEST_CASE("qwen: windows only when asked for, by layer") {
  Json config = with(small_llama(), "architectures", {"Qwen2ForCausalLM"});
  config["sliding_window"] = 8;
  config["max_window_layers"] = 1;
  CHECK(longest_window(load_config(config).config) == 0);
  config["use_sliding_window"] = true;
  CHECK(longest_window(load_config(config).config) == 8);
  CHECK(windows(config) == std::vector<bool>{false, true});
  config["layer_types"] = {"sliding_attention", "full_attention"};
  CHECK(windows(config) == std::vector<bool>{true, false});

  CHECK_THAT(refusal(with(config, "use_sliding_window", false), Code::kInvalidArgument),
             Catch::Contains("layer_types"));
  CHECK_THAT(refusal(with(config, "layer_types", {"full_attention"}), Code::kInvalidArgument),
             Catch::Contains("expected 2 entries"));
  CHECK_THAT(refusal(with(config, "layer_types", {"linear_attention", "full_attention"}),
                     Code::kUnsupported),
             Catch::Contains("'linear_attention'"));
  CHECK_THAT(refusal(with(config, "sliding_window", nullptr), Code::kInvalidArgument),
             Catch::Contains("layer_types") && Catch::Contains("sliding_window is null"));
  CHECK(longest_window(
            load_config(without(with(config, "sliding_window", nullptr), "layer_types")).config) ==
        0);
  config["layer_types"] = {"full_attention", "full_attention"};
  CHECK(longest_window(load_config(config).config) == 0);
}

TEST_CASE("mistral: layers without a window are those of layer_types") {
  Json config = with(small_llama(), "architectures", {"MistralForCausalLM"});
  config["layer_types"] = {"full_attention", "sliding_attention"};
  CHECK(longest_window(load_config(config).config) == 4096);
  CHECK(windows(config) == std::vector<bool>{false, true});
  refusal(with(config, "sliding_window", nullptr), Code::kInvalidArgument);
  refusal(with(config, "layer_types", {"full_attention"}), Code::kInvalidArgument);
  refusal(with(config, "layer_types", {"full_attention", "chunked_attention"}), Code::kUnsupported);
  refusal(with(config, "use_sliding_window", false), Code::kUnsupported);
  config["architectures"] = {"MinistralForCausalLM"};
  config["model_type"] = "ministral";
  CHECK(windows(config) == std::vector<bool>{false, true});
}

TEST_CASE("where sliding_window is for all layers, a list that leaves some out is refused") {
  for (const char* name : {"Phi3ForCausalLM", "PhimoeForCausalLM", "Ministral3ForCausalLM"}) {
    Json config = without(with(small_llama(), "architectures", {name}), "model_type");
    config["sliding_window"] = 8;
    CHECK(windows(config) == std::vector<bool>{true, true});
    config["layer_types"] = {"sliding_attention", "sliding_attention"};
    CHECK(windows(config) == std::vector<bool>{true, true});
    config["layer_types"] = {"sliding_attention", "full_attention"};
    CHECK_THAT(
        refusal(config, Code::kUnsupported),
        Catch::Contains("layer_types[1]: expected sliding_attention, as sliding_window = 8") &&
            Catch::Contains("got full_attention; take one of the two out"));
    // A window of the whole context hides nothing.
    config["sliding_window"] = 1 << 20;
    CHECK(longest_window(load_config(config).config) == 1 << 20);
    config["layer_types"] = {"full_attention", "full_attention"};
    config["sliding_window"] = nullptr;
    CHECK(longest_window(load_config(config).config) == 0);
  }
}

TEST_CASE("llama: what asks for a window is refused, what asks for none is not") {
  const Json config = small_llama();
  CHECK_THAT(refusal(with(config, "sliding_window", 8), Code::kUnsupported),
             Catch::Contains("sliding_window: asks for 8 tokens"));
  refusal(with(config, "use_sliding_window", true), Code::kUnsupported);
  refusal(with(config, "layer_types", {"full_attention", "sliding_attention"}), Code::kUnsupported);
  Json none = config;
  none["layer_types"] = {"full_attention", "full_attention"};
  none["sliding_window"] = 2048;
  CHECK(longest_window(load_config(none).config) == 0);
  none["sliding_window"] = 8;
  none["use_sliding_window"] = false;
  CHECK(longest_window(load_config(none).config) == 0);
}

TEST_CASE("architectures and model_type have to say the same") {
  CHECK_THAT(refusal(with(small_llama(), "model_type", "mistral"), Code::kInvalidArgument),
             Catch::Contains("model_type: 'mistral'") && Catch::Contains("LlamaForCausalLM"));
  CHECK(load_config(with(small_llama(), "model_type", "llama")).config.num_heads == 6);
}

TEST_CASE("sizes whose products are absurd are refused with numbers") {
  Json wide = small_llama();
  wide["num_attention_heads"] = 65536;
  wide["num_key_value_heads"] = 65536;
  wide["head_dim"] = 4096;
  CHECK_THAT(refusal(wide, Code::kInvalidArgument), Catch::Contains("268435456"));
  // Each at its limit: about 2 ^ 57 parameters.
  Json large = small_llama();
  large["hidden_size"] = 1 << 20;
  large["intermediate_size"] = 1 << 22;
  large["num_hidden_layers"] = 4096;
  large["vocab_size"] = 1 << 24;
  large["num_attention_heads"] = 65536;
  large["num_key_value_heads"] = 65536;
  large["head_dim"] = 64;
  CHECK_THAT(refusal(large, Code::kInvalidArgument), Catch::Contains("1048576") &&
                                                         Catch::Contains("parameters") &&
                                                         Catch::Contains("expected at most 1e+14"));
  Json remembering = small_llama();
  remembering["num_hidden_layers"] = 4096;
  remembering["num_attention_heads"] = 1024;
  remembering["num_key_value_heads"] = 1024;
  remembering["head_dim"] = 64;
  remembering["max_position_embeddings"] = 1 << 30;
  CHECK_THAT(refusal(remembering, Code::kInvalidArgument), Catch::Contains("KV cache"));
}

TEST_CASE("qwen3: heads are 128 wide unless the config says otherwise") {
  const Json config = with(small_llama(), "architectures", {"Qwen3ForCausalLM"});
  CHECK(load_config(without(config, "head_dim")).config.head_dim == 128);
  CHECK(load_config(config).config.head_dim == 4);
}

// BLOOM's published slopes of 6 heads: those of 4, then the first and third of 8.
TEST_CASE("alibi slopes are those of the family") {
  const auto slopes = [](const Json& config) { return load_config(config).config.alibi_slopes; };
  CHECK(slopes({{"architectures", {"BloomForCausalLM"}}, {"n_head", 6}, {"hidden_size", 24}}) ==
        std::vector<float>{0.25F, 0.0625F, 0.015625F, 0.00390625F, 0.5F, 0.125F});
  CHECK(slopes({{"architectures", {"MPTForCausalLM"}}, {"n_heads", 3}, {"d_model", 24}}) ==
        std::vector<float>{0.0625F, 0.00390625F, 0.25F});
  // Added before the scores are divided by the root of head_dim.
  CHECK(slopes({{"architectures", {"FalconForCausalLM"}},
                {"num_attention_heads", 2},
                {"hidden_size", 32},
                {"alibi", true}}) == std::vector<float>{0.0625F / 4, 0.00390625F / 4});
  CHECK(slopes({{"architectures", {"FalconForCausalLM"}}}).empty());
}

TEST_CASE("longrope takes the long factors where the context is longer than the original one") {
  Json config = {{"architectures", {"Phi3ForCausalLM"}},
                 {"hidden_size", 16},
                 {"num_attention_heads", 4},
                 {"num_key_value_heads", 4},
                 {"max_position_embeddings", 4096},
                 {"original_max_position_embeddings", 4096},
                 {"rope_scaling",
                  {{"type", "su"}, {"short_factor", {1.0, 2.0}}, {"long_factor", {4.0, 8.0}}}}};
  const RopeSpec shorter = load_config(config).config.ropes.at(0);
  CHECK(shorter.inv_freq.at(0) == 1.0F);
  CHECK(shorter.attention_factor == 1.0F);
  config["max_position_embeddings"] = 131072;
  const RopeSpec longer = load_config(config).config.ropes.at(0);
  CHECK(longer.inv_freq.at(0) == 0.25F);
  CHECK(longer.attention_factor == Approx(std::sqrt(1.0 + std::log(32.0) / std::log(4096.0))));
  config["rope_scaling"]["long_factor"] = {4.0};
  CHECK_THAT(refusal(config, Code::kInvalidArgument),
             Catch::Contains("long_factor: expected a list of 2 numbers"));
  config["rope_scaling"]["long_factor"] = {4.0, 0.0};
  CHECK_THAT(refusal(config, Code::kInvalidArgument), Catch::Contains("expected numbers above 0"));
}

TEST_CASE("what is not computed of these families is refused by name") {
  const auto refused = [](const char* name, const Json& fields, const char* message) {
    Json config = fields;
    config["architectures"] = {name};
    CHECK_THAT(refusal(config, Code::kUnsupported), Catch::Contains(message));
  };
  refused("BaichuanForCausalLM", {{"z_loss_weight", 0}, {"tie_word_embeddings", true}},
          "Baichuan 2");
  refused("PhimoeForCausalLM", {{"num_experts_per_tok", 3}}, "chooses 2 experts, got 3");
  refused("Llama4ForCausalLM", {{"layer_types", Json(48, "sliding_attention")}},
          "layer_types: 'sliding_attention' is not supported");
  refused("Mistral3ForConditionalGeneration", {{"text_config", {{"model_type", "t5"}}}},
          "text_config.model_type: 't5' is not supported");
  refused("Mistral3ForConditionalGeneration", {{"text_config", {{"twist", 1}}}}, "twist = 1");
}

TEST_CASE("what is not computed of Falcon and MPT is refused by name") {
  const auto refused = [](const char* name, const Json& fields, const char* message) {
    Json config = fields;
    config["architectures"] = {name};
    CHECK_THAT(refusal(config, Code::kUnsupported), Catch::Contains(message));
  };
  refused("MPTForCausalLM", {{"attn_config", {{"alibi", false}}}}, "attn_config.alibi: ");
  refused("MPTForCausalLM", {{"attn_config", {{"twist", 1}}}}, "attn_config.twist");
  refused("FalconForCausalLM", {{"new_decoder_architecture", true}, {"parallel_attn", false}},
          "parallel_attn: ");
  refused("FalconForCausalLM", {{"num_ln_in_parallel_attn", 2}}, "num_ln_in_parallel_attn: ");
}

TEST_CASE("baichuan with positions has rotary embeddings, with a length alone alibi") {
  const ModelConfig small = load_config({{"architectures", {"BaiChuanForCausalLM"}},
                                         {"max_position_embeddings", 4096},
                                         {"model_max_length", 4096}})
                                .config;
  CHECK(small.alibi_slopes.empty());
  CHECK(small.ropes.size() == 1);
  const ModelConfig large = load_config({{"architectures", {"BaichuanForCausalLM"}},
                                         {"model_max_length", 4096},
                                         {"hidden_size", 5120},
                                         {"num_attention_heads", 40}})
                                .config;
  CHECK(large.alibi_slopes.size() == 40);
  CHECK(large.ropes.empty());
}

}  // namespace
}  // namespace tgi
