// Classes of published code that `transformers` does not have: a checkpoint of one, with its fields
// and its names of tensors, answers with the bits of a class that computes the same.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "engine/model/tensor_table.h"
#include "tests/model/model_files.h"
#include "tests/promises/engine_fixture.h"

namespace tgi {
namespace {

struct Stored {
  std::vector<int64_t> shape;
  std::vector<float> values;
};
using StoredByName = std::map<std::string, Stored>;

struct PublishedClass {
  Json same;       // config.json of a class that computes the same
  Json published;  // of this one
  // Of tensors of the former, one after the other: what stands in a name and what it becomes.
  std::vector<std::pair<std::string, std::string>> renames;
  // Rows of the first, one below the other, are the second.
  std::vector<std::pair<std::vector<std::string>, std::string>> stacks{};
};

Stored random_tensor(const TensorEntry& entry, uint32_t& state) {
  Stored out;
  if (entry.is_vector()) {
    out.shape = {entry.cols};
  } else {
    out.shape = {entry.rows, entry.cols};
  }
  const bool is_bias = entry.name.ends_with("bias");
  const float size = entry.is_vector() ? 0.3F : 1.3F / std::sqrt(static_cast<float>(entry.cols));
  const float middle = entry.is_vector() && !is_bias ? 1.0F : 0.0F;
  for (int64_t i = 0; i < entry.rows * entry.cols; ++i) {
    state = state * 1664525U + 1013904223U;
    const float unit = static_cast<float>(state >> 8) / static_cast<float>(1U << 23) - 1.0F;
    out.values.push_back(middle + size * unit);
  }
  return out;
}

StoredByName random_checkpoint(const Json& config) {
  const LoadedConfig model = load_config(config);
  const TensorTable table(model);
  StoredByName out;
  uint32_t state = 7;
  for (const TensorEntry& entry : table.entries()) {
    out.try_emplace(entry.name, random_tensor(entry, state));
  }
  return out;
}

std::string with_layer(std::string name, int layer) {
  const std::string mark = "{layer}";
  if (const size_t at = name.find(mark); at != std::string::npos) {
    name.replace(at, mark.size(), std::to_string(layer));
  }
  return name;
}

StoredByName published(const StoredByName& tensors, const PublishedClass& as) {
  StoredByName out;
  for (const auto& [given, tensor] : tensors) {
    std::string name = given;
    for (const auto& [from, to] : as.renames) {
      if (const size_t at = name.find(from); at != std::string::npos) {
        name.replace(at, from.size(), to);
      }
    }
    CHECK(out.emplace(name, tensor).second);
  }
  for (const auto& [parts, whole] : as.stacks) {
    for (int layer = 0; layer < 4; ++layer) {
      Stored stack;
      for (const std::string& part : parts) {
        const auto found = out.extract(with_layer(part, layer));
        if (found.empty()) continue;
        const Stored& tensor = found.mapped();
        if (stack.shape.empty()) stack.shape = {0};
        stack.shape.resize(tensor.shape.size(), tensor.shape.back());
        stack.shape[0] += tensor.shape[0];
        stack.values.insert(stack.values.end(), tensor.values.begin(), tensor.values.end());
      }
      if (!stack.values.empty()) out.emplace(with_layer(whole, layer), std::move(stack));
    }
  }
  return out;
}

MemorySource files_of(const Json& config, const StoredByName& tensors) {
  std::vector<TestTensor> stored;
  for (const auto& [name, tensor] : tensors) {
    std::string shape;
    for (const int64_t size : tensor.shape) {
      shape += (shape.empty() ? "[" : ",") + std::to_string(size);
    }
    stored.push_back({name, "F32", shape + "]", f32_bytes(tensor.values)});
  }
  return MemorySource(
      {{"config.json", config.dump()}, {"model.safetensors", build_safetensors(stored)}});
}

std::vector<std::vector<double>> logprobs_of(const MemorySource& files) {
  LoadedFixture loaded = load_workers(files, {});
  return all_logprobs(*loaded.workers, {3, 41, 7, 7, 19, 60, 2, 33, 5, 11, 28, 54}, {0, 1, 5, 11},
                      loaded.model.config.vocab_size, loaded.kv_plan.groups.num_groups());
}

void check_same(const PublishedClass& as) {
  INFO(as.published.at("architectures").dump());
  const StoredByName tensors = random_checkpoint(as.same);
  const auto expected = logprobs_of(files_of(as.same, tensors));
  CHECK(logprobs_of(files_of(as.published, published(tensors, as))) == expected);
  // They say something: tokens differ.
  CHECK(std::abs(expected[3][1] - expected[3][2]) > 1e-3);
}

Json config_of(const std::string& architecture, const std::string& type, const Json& fields) {
  Json out = {{"architectures", {architecture}}, {"model_type", type}, {"torch_dtype", "float32"}};
  out.update(fields);
  return out;
}

const Json kSizes = {{"vocab_size", 61},         {"hidden_size", 32},
                     {"intermediate_size", 22},  {"num_hidden_layers", 4},
                     {"num_attention_heads", 8}, {"max_position_embeddings", 256},
                     {"rms_norm_eps", 1e-5},     {"tie_word_embeddings", false}};

Json sizes(const Json& more) {
  Json out = kSizes;
  out.update(more);
  return out;
}

// StableLM's.
Json sizes_of_layer_norm(const Json& more) {
  Json out = sizes(more);
  out.erase("rms_norm_eps");
  return out;
}

void check_near(const std::vector<std::vector<double>>& got,
                const std::vector<std::vector<double>>& expected) {
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    for (size_t id = 0; id < got[i].size(); ++id) {
      CHECK(std::abs(got[i][id] - expected[i][id]) < 1e-4);
    }
  }
}

TEST_CASE("Ling 1 answers as the first DeepSeek with experts, and may divide its head's columns") {
  const Json same = config_of("DeepseekForCausalLM", "deepseek",
                              sizes({{"num_key_value_heads", 2},
                                     {"n_routed_experts", 6},
                                     {"n_shared_experts", 2},
                                     {"num_experts_per_tok", 3},
                                     {"moe_intermediate_size", 10},
                                     {"norm_topk_prob", true},
                                     {"first_k_dense_replace", 1}}));
  Json published_config = config_of("BailingMoeForCausalLM", "bailing_moe",
                                    sizes({{"num_key_value_heads", 2},
                                           {"num_experts", 6},
                                           {"num_shared_experts", 2},
                                           {"num_experts_per_tok", 3},
                                           {"moe_intermediate_size", 10},
                                           {"norm_topk_prob", true},
                                           {"first_k_dense_replace", 1},
                                           {"norm_head", false},
                                           {"norm_softmax", false},
                                           {"use_bias", false},
                                           {"use_qkv_bias", false}}));
  const std::string attention = "model.layers.{layer}.self_attn.";
  const PublishedClass as = {.same = same,
                             .published = published_config,
                             .renames = {{"model.embed_tokens.", "model.word_embeddings."},
                                         {".self_attn.o_proj.", ".attention.dense."}},
                             .stacks = {{{attention + "q_proj.weight", attention + "k_proj.weight",
                                          attention + "v_proj.weight"},
                                         "model.layers.{layer}.attention.query_key_value.weight"}}};
  check_same(as);

  StoredByName tensors = random_checkpoint(same);
  const StoredByName stored = published(tensors, as);
  Stored& head = tensors.at("lm_head.weight");
  for (size_t col = 0; col < 32; ++col) {
    double sum = 0.0;
    for (size_t i = col; i < head.values.size(); i += 32)
      sum += std::pow(double{head.values[i]}, 2);
    for (size_t i = col; i < head.values.size(); i += 32) {
      head.values[i] /= static_cast<float>(std::sqrt(sum));
    }
  }
  published_config["norm_head"] = true;
  check_near(logprobs_of(files_of(published_config, stored)), logprobs_of(files_of(same, tensors)));
  published_config["use_qkv_bias"] = true;
  CHECK(load_config(published_config).config.attention_bias);
  published_config["tie_word_embeddings"] = true;
  CHECK_THROWS_WITH(load_config(published_config), Catch::Contains("norm_head: a head whose"));
}

Json openelm_config() {
  return config_of("OpenELMForCausalLM", "openelm",
                   {{"vocab_size", 61},
                    {"model_dim", 32},
                    {"num_transformer_layers", 4},
                    {"num_query_heads", {8, 8, 8, 8}},
                    {"num_kv_heads", {2, 2, 2, 2}},
                    {"head_dim", 8},
                    {"ffn_multipliers", {0.6875, 0.6875, 0.6875, 0.6875}},
                    {"ffn_dim_divisor", 2},
                    {"max_context_length", 256},
                    {"rope_max_length", 512},
                    {"rope_freq_constant", 10000},
                    {"normalize_qk_projections", true},
                    {"share_input_output_layers", false},
                    {"ffn_with_glu", true},
                    {"activation_fn_name", "swish"},
                    {"normalization_layer_name", "rms_norm"},
                    {"num_gqa_groups", 4},
                    {"qkv_multipliers", {0.5, 1.0}}});
}

PublishedClass openelm() {
  const std::string attention = "transformer.layers.{layer}.attn.";
  const std::string mlp = "transformer.layers.{layer}.mlp.";
  return {.same = config_of("Qwen3ForCausalLM", "qwen3",
                            sizes({{"num_key_value_heads", 2},
                                   {"head_dim", 8},
                                   {"rms_norm_eps", 1e-6},
                                   {"rope_theta", 10000.0}})),
          .published = openelm_config(),
          .renames = {{"model.embed_tokens.", "transformer.token_embeddings."},
                      {"model.norm.", "transformer.norm."},
                      {"model.layers.", "transformer.layers."},
                      {".input_layernorm.", ".attn_norm."},
                      {".post_attention_layernorm.", ".ffn_norm."},
                      {".self_attn.", ".attn."},
                      {".attn.o_proj.", ".attn.out_proj."},
                      {".mlp.down_proj.", ".ffn.proj_2."}},
          .stacks = {{{attention + "q_proj.weight", attention + "k_proj.weight",
                       attention + "v_proj.weight"},
                      attention + "qkv_proj.weight"},
                     {{mlp + "gate_proj.weight", mlp + "up_proj.weight"},
                      "transformer.layers.{layer}.ffn.proj_1.weight"}}};
}

TEST_CASE("OpenELM answers as Qwen 3, as far as its layers are alike") {
  check_same(openelm());
  Json other = openelm_config();
  other["ffn_multipliers"] = {0.5, 1.0};
  CHECK_THROWS_WITH(load_config(other),
                    Catch::Contains("ffn_multipliers: expected 4 entries, one per layer, got 2"));
  other = openelm_config();
  other["num_kv_heads"] = {2, 2, 3, 2};
  CHECK_THROWS_WITH(load_config(other), Catch::Contains("num_kv_heads"));
  other.erase("num_kv_heads");
  CHECK_THROWS_WITH(load_config(other), Catch::Contains("num_kv_heads: missing"));
  other = openelm_config();
  other["num_query_heads"] = {8, 7.5, 8, 8};
  CHECK_THROWS_WITH(load_config(other), Catch::Contains("entry 1: expected a whole number"));
  other["num_query_heads"] = {8, 7, 8, 8};
  CHECK_THROWS_WITH(load_config(other),
                    Catch::Contains("entry 1: 7 heads can't be shared among 2"));
  other["num_query_heads"] = {8, 0, 8, 8};
  CHECK_THROWS_WITH(load_config(other), Catch::Contains("entry 1: expected a number above 0"));
}

// Rows of a tensor of so many columns, or columns of its rows, from the first on.
Stored first_rows(const Stored& tensor, int64_t count) {
  const auto size = static_cast<ptrdiff_t>(count * tensor.shape[1]);
  return {.shape = {count, tensor.shape[1]},
          .values = {tensor.values.begin(), tensor.values.begin() + size}};
}
Stored first_columns(const Stored& tensor, int64_t count) {
  Stored out = {.shape = {tensor.shape[0], count}, .values = {}};
  for (int64_t row = 0; row < tensor.shape[0]; ++row) {
    const auto begin = tensor.values.begin() + static_cast<ptrdiff_t>(row * tensor.shape[1]);
    out.values.insert(out.values.end(), begin, begin + static_cast<ptrdiff_t>(count));
  }
  return out;
}

// Heads that a layer does not have are those that its last matrix makes nothing of.
TEST_CASE("an OpenELM with fewer heads and a narrower MLP in a layer has as much left out") {
  PublishedClass as = openelm();
  StoredByName whole = random_checkpoint(as.same);
  StoredByName parts = whole;
  const auto cut = [&](const std::string& name, int64_t count, bool columns) {
    Stored& part = parts.at(name);
    part = columns ? first_columns(part, count) : first_rows(part, count);
    if (!columns) return;
    Stored& all = whole.at(name);
    for (size_t i = 0; i < all.values.size(); ++i) {
      if (static_cast<int64_t>(i) % all.shape[1] >= count) all.values[i] = 0.0F;
    }
  };
  cut("model.layers.2.self_attn.q_proj.weight", 32, false);
  cut("model.layers.2.self_attn.k_proj.weight", 8, false);
  cut("model.layers.2.self_attn.v_proj.weight", 8, false);
  cut("model.layers.2.self_attn.o_proj.weight", 32, true);
  cut("model.layers.1.mlp.gate_proj.weight", 12, false);
  cut("model.layers.1.mlp.up_proj.weight", 12, false);
  cut("model.layers.1.mlp.down_proj.weight", 12, true);
  as.published["num_query_heads"] = {8, 8, 4, 8};
  as.published["num_kv_heads"] = {2, 2, 1, 2};
  as.published["ffn_multipliers"] = {0.6875, 0.375, 0.6875, 0.6875};
  check_near(logprobs_of(files_of(as.published, published(parts, as))),
             logprobs_of(files_of(as.same, whole)));
}

TEST_CASE("classes whose block is Llama's answer as Llama") {
  const Json same = config_of("LlamaForCausalLM", "llama", sizes({{"num_key_value_heads", 2}}));
  const std::vector<std::pair<std::string, std::string>> types = {
      {"YiForCausalLM", "Yi"},
      {"AquilaForCausalLM", "aquila"},
      {"XverseForCausalLM", "xverse"},
      {"SkyworkForCausalLM", "skywork"}};
  for (const auto& [architecture, type] : types) {
    check_same({.same = same,
                .published = config_of(architecture, type, sizes({{"num_key_value_heads", 2}})),
                .renames = {}});
  }
  // As Yi was published at first.
  check_same(
      {.same = same,
       .published = config_of("YiForCausalLM", "Yi", sizes({{"num_key_value_heads", 2}})),
       .renames = {{".input_layernorm.", ".ln1."}, {".post_attention_layernorm.", ".ln2."}}});
  check_same({.same = config_of("LlamaForCausalLM", "llama",
                                sizes({{"attention_bias", true}, {"rope_theta", 30000.0}})),
              .published = config_of(
                  "InternLMForCausalLM", "internlm",
                  sizes({{"bias", true}, {"rotary", {{"type", "dynamic"}, {"base", 30000}}}})),
              .renames = {}});
}

TEST_CASE("InternLM's positions are turned as it says, or it is refused") {
  const Json config =
      config_of("InternLMForCausalLM", "internlm", sizes({{"rotary", {{"type", "spiral"}}}}));
  CHECK_THROWS_WITH(load_config(config), Catch::Contains("type: 'spiral' is not supported"));
}

TEST_CASE("MiMo answers as Qwen 2, and its layer behind the last is left out") {
  Json fields = sizes({{"num_key_value_heads", 2}, {"attention_bias", true}});
  const Json same = config_of("Qwen2ForCausalLM", "qwen2", fields);
  fields["num_nextn_predict_layers"] = 1;
  StoredByName tensors = random_checkpoint(same);
  const auto expected = logprobs_of(files_of(same, tensors));
  tensors["model.mtp_layers.0.input_proj.weight"] = {.shape = {1, 2}, .values = {1.0F, 2.0F}};
  CHECK(logprobs_of(files_of(config_of("MiMoForCausalLM", "mimo", fields), tensors)) == expected);
}

TEST_CASE("checkpoints that see answer as their text models, without what sees") {
  const Json text = config_of("Qwen2ForCausalLM", "qwen2", sizes({{"num_key_value_heads", 2}}));
  const StoredByName tensors = random_checkpoint(text);
  StoredByName seeing;
  for (const auto& [name, tensor] : tensors) seeing["language_model." + name] = tensor;
  seeing["vision_model.embeddings.class_embedding"] = {.shape = {2}, .values = {1.0F, 2.0F}};
  seeing["mlp1.0.weight"] = {.shape = {2}, .values = {1.0F, 2.0F}};
  const Json internvl = config_of("InternVLChatModel", "internvl_chat",
                                  {{"llm_config", text},
                                   {"vision_config", {{"hidden_size", 8}}},
                                   {"downsample_ratio", 0.5},
                                   {"template", "internvl2_5"},
                                   {"use_llm_lora", 0}});
  CHECK(logprobs_of(files_of(internvl, seeing)) == logprobs_of(files_of(text, tensors)));

  Json phi = config_of("Phi3ForCausalLM", "phi3", sizes({{"num_key_value_heads", 2}}));
  StoredByName phi_tensors = random_checkpoint(phi);
  const auto expected = logprobs_of(files_of(phi, phi_tensors));
  phi_tensors["model.vision_embed_tokens.glb_GN"] = {.shape = {1, 1}, .values = {1.0F}};
  phi["architectures"] = {"Phi3VForCausalLM"};
  phi["model_type"] = "phi3_v";
  phi["embd_layer"] = {{"embedding_cls", "image"}};
  phi["img_processor"] = {{"image_dim_out", 1024}};
  CHECK(logprobs_of(files_of(phi, phi_tensors)) == expected);
}

TEST_CASE("BLIP-2 and InstructBLIP answer as their text models, without what sees") {
  struct Row {
    const char* name;
    const char* type;
    Json text;
  };
  const Json opt = config_of("OPTForCausalLM", "opt",
                             {{"vocab_size", 61},
                              {"hidden_size", 32},
                              {"ffn_dim", 22},
                              {"num_hidden_layers", 2},
                              {"num_attention_heads", 4},
                              {"max_position_embeddings", 96},
                              {"word_embed_proj_dim", 32}});
  const Json llama = config_of("LlamaForCausalLM", "llama", sizes({{"num_key_value_heads", 2}}));
  for (const Row& row : {Row{"Blip2ForConditionalGeneration", "blip-2", opt},
                         Row{"InstructBlipForConditionalGeneration", "instructblip", llama}}) {
    INFO(row.name);
    const StoredByName tensors = random_checkpoint(row.text);
    StoredByName seeing;
    for (const auto& [name, tensor] : tensors) seeing["language_model." + name] = tensor;
    for (const char* name : {"query_tokens", "qformer.layernorm.weight", "language_projection.bias",
                             "vision_model.post_layernorm.bias"}) {
      seeing[name] = {.shape = {2}, .values = {1.0F, 2.0F}};
    }
    const Json config = config_of(row.name, row.type,
                                  {{"text_config", row.text},
                                   {"vision_config", {{"hidden_size", 8}}},
                                   {"qformer_config", {{"hidden_size", 8}}},
                                   {"num_query_tokens", 32},
                                   {"use_decoder_only_language_model", true},
                                   {"initializer_factor", 1.0}});
    CHECK(logprobs_of(files_of(config, seeing)) == logprobs_of(files_of(row.text, tensors)));
  }
  // Others are around an encoder-decoder.
  const Json flan = config_of("Blip2ForConditionalGeneration", "blip-2",
                              {{"text_config", {{"model_type", "t5"}}}});
  CHECK_THROWS_WITH(load_config(flan), Catch::Contains("encoder-decoder"));
}

TEST_CASE("Orion answers as StableLM whose heads are rotated whole") {
  const Json same = sizes_of_layer_norm(
      {{"layer_norm_eps", 1e-5}, {"partial_rotary_factor", 1.0}, {"num_key_value_heads", 8}});
  check_same({.same = config_of("StableLmForCausalLM", "stablelm", same),
              .published = config_of("OrionForCausalLM", "orion", kSizes),
              .renames = {}});
}

TEST_CASE("StableLM answers as itself under the names of its first code") {
  const Json same = sizes_of_layer_norm(
      {{"layer_norm_eps", 1e-5}, {"partial_rotary_factor", 0.5}, {"num_key_value_heads", 8}});
  const Json published = sizes_of_layer_norm({{"norm_eps", 1e-5},
                                              {"rope_pct", 0.5},
                                              {"rotary_scaling_factor", 1.0},
                                              {"num_key_value_heads", 8}});
  check_same({.same = config_of("StableLmForCausalLM", "stablelm", same),
              .published = config_of("StableLMEpochForCausalLM", "stablelm_epoch", published),
              .renames = {}});
}

TEST_CASE("MiniCPM answers as Granite with its multipliers") {
  check_same({.same = config_of("GraniteForCausalLM", "granite",
                                sizes({{"embedding_multiplier", 12.0},
                                       {"residual_multiplier", 0.7},
                                       {"logits_scaling", 4.0},
                                       {"attention_multiplier", 0.5}})),
              .published = config_of(
                  "MiniCPMForCausalLM", "minicpm",
                  sizes({{"scale_emb", 12}, {"scale_depth", 1.4}, {"dim_model_base", 8}})),
              .renames = {}});
}

// A layer's attention or MLP that isn't there is one whose last matrix is 0; KV heads that are
// equal are one.
TEST_CASE("Llama Nemotron answers as a Llama of whose layers some do nothing") {
  Json blocks = Json::array();
  for (int layer = 0; layer < 4; ++layer) {
    blocks.push_back({{"attention",
                       {{"no_op", layer == 1},
                        {"n_heads_in_group", layer == 1 ? Json() : Json(layer == 3 ? 8 : 4)},
                        {"replace_with_linear", false},
                        {"window_length", nullptr}}},
                      {"ffn",
                       {{"no_op", layer == 2},
                        {"ffn_mult", layer == 2 ? Json() : Json(layer == 0 ? 12.5 : 8.0)},
                        {"replace_with_linear", false}}}});
  }
  Json fields = kSizes;
  fields["intermediate_size"] = nullptr;
  fields["num_key_value_heads"] = nullptr;
  fields["block_configs"] = blocks;
  const Json published = config_of("DeciLMForCausalLM", "nemotron-nas", fields);
  const LoadedConfig model = load_config(published);
  CHECK(model.config.intermediate_size == 512);  // 266 and 170, in steps of 256
  CHECK(model.config.num_kv_heads == 2);

  const Json same = config_of("LlamaForCausalLM", "llama",
                              sizes({{"num_key_value_heads", 2}, {"intermediate_size", 512}}));
  StoredByName whole = random_checkpoint(same);
  StoredByName parts;
  const auto zero = [](Stored& tensor, size_t first, size_t count) {
    std::fill_n(tensor.values.begin() + static_cast<ptrdiff_t>(first), count, 0.0F);
  };
  for (auto& [name, tensor] : whole) {
    const auto is = [&](std::string_view part) { return name.find(part) != std::string::npos; };
    if (is("layers.1.self_attn.o_proj") || is("layers.2.mlp.down_proj")) {
      zero(tensor, 0, tensor.values.size());
    }
    const bool is_absent = is("layers.1.self_attn.") || is("layers.1.input_layernorm.") ||
                           is("layers.2.mlp.") || is("layers.2.post_attention_layernorm.");
    if (is_absent) continue;
    Stored part = tensor;
    if (is("layers.3.self_attn.k_proj") || is("layers.3.self_attn.v_proj")) {
      const size_t half = tensor.values.size() / 2;
      std::copy_n(tensor.values.begin(), half,
                  tensor.values.begin() + static_cast<ptrdiff_t>(half));
      part = {
          .shape = {tensor.shape[0] / 2, tensor.shape[1]},
          .values = {tensor.values.begin(), tensor.values.begin() + static_cast<ptrdiff_t>(half)}};
    }
    const bool is_narrow = is("layers.1.mlp.") || is("layers.3.mlp.");
    if (is_narrow && (is("gate_proj") || is("up_proj"))) {
      const size_t half = tensor.values.size() / 2;
      zero(tensor, half, half);
      part = {
          .shape = {256, 32},
          .values = {tensor.values.begin(), tensor.values.begin() + static_cast<ptrdiff_t>(half)}};
    } else if (is_narrow) {
      part = {.shape = {32, 256}, .values = {}};
      for (size_t row = 0; row < 32; ++row) {
        const auto begin = tensor.values.begin() + static_cast<ptrdiff_t>(row * 512);
        part.values.insert(part.values.end(), begin, begin + 256);
      }
    }
    parts.emplace(name, std::move(part));
  }
  check_near(logprobs_of(files_of(published, parts)), logprobs_of(files_of(same, whole)));

  Json broken = published;
  broken["block_configs"][0]["attention"]["n_heads_in_group"] = 3;
  CHECK_THROWS_WITH(load_config(broken),
                    Catch::Contains("block_configs[0].attention.n_heads_in_group: 8 heads"));
  broken = published;
  broken["block_configs"][0]["ffn"]["replace_with_linear"] = true;
  CHECK_THROWS_WITH(load_config(broken), Catch::Contains("replace_with_linear"));
  broken = published;
  broken["num_hidden_layers"] = 5;
  CHECK_THROWS_WITH(load_config(broken), Catch::Contains("expected 5 layers"));
}

TEST_CASE("Qwen 1 answers as Qwen 2 without shared keys, as far as its positions are as they are") {
  Json fields = {{"vocab_size", 61},
                 {"hidden_size", 32},
                 {"intermediate_size", 44},
                 {"num_hidden_layers", 4},
                 {"num_attention_heads", 8},
                 {"kv_channels", 4},
                 {"layer_norm_epsilon", 1e-5},
                 {"max_position_embeddings", 256},
                 {"seq_length", 64},
                 {"rotary_emb_base", 10000},
                 {"rotary_pct", 1.0},
                 {"no_bias", true},
                 {"use_dynamic_ntk", true},
                 {"use_logn_attn", true},
                 {"tie_word_embeddings", false}};
  const Json published = config_of("QWenLMHeadModel", "qwen", fields);
  check_same({.same = config_of("Qwen2ForCausalLM", "qwen2", sizes({{"num_key_value_heads", 8}})),
              .published = published,
              .renames = {{"model.embed_tokens.", "transformer.wte."},
                          {"model.norm.", "transformer.ln_f."},
                          {"model.layers.", "transformer.h."},
                          {".input_layernorm.", ".ln_1."},
                          {".post_attention_layernorm.", ".ln_2."},
                          {".self_attn.o_proj.", ".attn.c_proj."},
                          {".mlp.up_proj.", ".mlp.w1."},
                          {".mlp.gate_proj.", ".mlp.w2."},
                          {".mlp.down_proj.", ".mlp.c_proj."}},
              .stacks = {{{"transformer.h.{layer}.self_attn.q_proj.weight",
                           "transformer.h.{layer}.self_attn.k_proj.weight",
                           "transformer.h.{layer}.self_attn.v_proj.weight"},
                          "transformer.h.{layer}.attn.c_attn.weight"},
                         {{"transformer.h.{layer}.self_attn.q_proj.bias",
                           "transformer.h.{layer}.self_attn.k_proj.bias",
                           "transformer.h.{layer}.self_attn.v_proj.bias"},
                          "transformer.h.{layer}.attn.c_attn.bias"}}});
  CHECK(load_config(published).config.max_positions == 64);
  fields["use_dynamic_ntk"] = false;
  fields["use_logn_attn"] = false;
  CHECK(load_config(config_of("QWenLMHeadModel", "qwen", fields)).config.max_positions == 256);
  fields["intermediate_size"] = 45;
  CHECK_THROWS_WITH(load_config(config_of("QWenLMHeadModel", "qwen", fields)),
                    Catch::Contains("intermediate_size: gate and up together, expected an even"));
}

TEST_CASE("ChatGLM answers as GLM") {
  const Json published = config_of("ChatGLMModel", "chatglm",
                                   {{"padded_vocab_size", 61},
                                    {"hidden_size", 32},
                                    {"ffn_hidden_size", 22},
                                    {"num_layers", 4},
                                    {"num_attention_heads", 8},
                                    {"multi_query_attention", true},
                                    {"multi_query_group_num", 2},
                                    {"kv_channels", 8},
                                    {"seq_length", 256},
                                    {"layernorm_epsilon", 1e-5},
                                    {"add_qkv_bias", true},
                                    {"add_bias_linear", false},
                                    {"rope_ratio", 5},
                                    {"original_rope", true},
                                    {"tie_word_embeddings", false}});
  const std::string layer = "transformer.encoder.layers.{layer}.";
  const std::string attention = layer + "self_attn.";
  const std::string whole = layer + "self_attention.query_key_value.";
  check_same(
      {.same = config_of("GlmForCausalLM", "glm",
                         sizes({{"num_key_value_heads", 2},
                                {"head_dim", 8},
                                {"attention_bias", true},
                                {"rope_theta", 50000.0}})),
       .published = published,
       .renames = {{"model.embed_tokens.", "transformer.embedding.word_embeddings."},
                   {"model.norm.", "transformer.encoder.final_layernorm."},
                   {"lm_head.", "transformer.output_layer."},
                   {"model.layers.", "transformer.encoder.layers."},
                   {".self_attn.o_proj.", ".self_attention.dense."},
                   {".mlp.gate_up_proj.", ".mlp.dense_h_to_4h."},
                   {".mlp.down_proj.", ".mlp.dense_4h_to_h."}},
       .stacks = {
           {{attention + "q_proj.weight", attention + "k_proj.weight", attention + "v_proj.weight"},
            whole + "weight"},
           {{attention + "q_proj.bias", attention + "k_proj.bias", attention + "v_proj.bias"},
            whole + "bias"}}});
  Json other = published;
  other["multi_query_attention"] = false;
  CHECK(load_config(other).config.num_kv_heads == 8);
  // The first ChatGLM, whose positions have two dimensions.
  other["position_encoding_2d"] = true;
  CHECK_THROWS_WITH(load_config(other), Catch::Contains("position_encoding_2d"));
}

TEST_CASE("Falcon answers as itself under the names of its first code") {
  const Json fields = {{"vocab_size", 61},           {"hidden_size", 32}, {"bias", false},
                       {"layer_norm_epsilon", 1e-5}, {"alibi", false},    {"parallel_attn", true},
                       {"multi_query", true}};
  Json small = fields;
  small.update({{"num_hidden_layers", 4}, {"num_attention_heads", 8}});
  Json small_published = fields;
  small_published.update({{"n_layer", 4}, {"n_head", 8}});
  check_same({.same = config_of("FalconForCausalLM", "falcon", small),
              .published = config_of("RWForCausalLM", "RefinedWebModel", small_published),
              .renames = {}});
  small.update({{"num_kv_heads", 2}, {"new_decoder_architecture", true}});
  small_published.update({{"n_head_kv", 2}});
  check_same({.same = config_of("FalconForCausalLM", "falcon", small),
              .published = config_of("RWForCausalLM", "RefinedWeb", small_published),
              .renames = {}});
}

}  // namespace
}  // namespace tgi
