#include "engine/model/model_weights.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "tests/catch.h"
#include "tests/model/fake_device.h"
#include "tests/model/model_files.h"

namespace tgi::model_weights_test {
namespace {

ModelWeights load(const LoadedConfig& model,
                  const std::vector<TestTensor>& tensors,
                  const LoadWeightsOptions& options = {.dtype = DType::kF32}) {
  const MemorySource files = weight_files(tensors);
  FakeDevice device;
  ModelWeights weights = load_weights(model, *open_checkpoint(files), device, options);
  CHECK(weights.size_bytes == plan_weight_bytes(model, device, options));
  CHECK(weights.size_bytes == device.allocated_bytes);
  return weights;
}

std::string refusal(const LoadedConfig& model,
                    const std::vector<TestTensor>& tensors,
                    Code code,
                    const LoadWeightsOptions& options = {.dtype = DType::kF32}) {
  try {
    load(model, tensors, options);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  FAIL("was accepted");
  return "";
}

TestTensor& named(std::vector<TestTensor>& tensors, const std::string& name) {
  for (TestTensor& tensor : tensors) {
    if (tensor.name == name) return tensor;
  }
  FAIL("no tensor " << name);
  return tensors.front();
}

void drop(std::vector<TestTensor>& tensors, const std::string& ending) {
  std::erase_if(tensors, [&](const TestTensor& tensor) { return tensor.name.ends_with(ending); });
}

Json with(Json config, const std::string& key, const Json& value) {
  config[key] = value;
  return config;
}

float first_value(const std::vector<TestTensor>& tensors, const std::string& name) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name == name) return static_cast<float>(i);
  }
  return -1.0F;
}

TEST_CASE("q, k and v become one matrix, gate and up another") {
  const LoadedConfig model = load_config(small_llama());
  const auto tensors = small_tensors(model);
  const ModelWeights weights = load(model, tensors);
  REQUIRE(weights.layers.size() == 2);
  const FakeMatrix& qkv = fake(*weights.layers[1].qkv.weight);
  CHECK(qkv.rows == (6 + 2 * 2) * 4);
  CHECK(qkv.cols == 10);
  const std::string attention = "model.layers.1.self_attn.";
  CHECK(qkv.names == std::vector<std::string>{attention + "q_proj.weight",
                                              attention + "k_proj.weight",
                                              attention + "v_proj.weight"});
  CHECK(qkv.at(0, 0) == first_value(tensors, attention + "q_proj.weight"));
  CHECK(qkv.at(24, 0) == first_value(tensors, attention + "k_proj.weight"));
  CHECK(qkv.at(33, 3) == first_value(tensors, attention + "v_proj.weight") + 0.013F);
  const FakeMatrix& gate_up = fake(*weights.layers[0].gate_up.weight);
  CHECK(gate_up.rows == 28);
  CHECK(gate_up.at(14, 0) == first_value(tensors, "model.layers.0.mlp.up_proj.weight"));
  CHECK(weights.layers[0].q_norm.get() == nullptr);
  CHECK(weights.layers[0].qkv.bias.get() == nullptr);
  CHECK(weights.position_embedding == nullptr);
  CHECK(vector_values(weights.final_norm)[9] == first_value(tensors, "model.norm.weight") + 0.009F);
}

TEST_CASE("biases are stacked like their matrices") {
  const LoadedConfig model =
      load_config(with(with(small_llama(), "attention_bias", true), "mlp_bias", true));
  const auto tensors = small_tensors(model);
  const ModelWeights weights = load(model, tensors);
  const std::vector<float> qkv = vector_values(weights.layers[0].qkv.bias);
  REQUIRE(qkv.size() == 40);
  CHECK(qkv[23] == first_value(tensors, "model.layers.0.self_attn.q_proj.bias") + 0.023F);
  CHECK(qkv[24] == first_value(tensors, "model.layers.0.self_attn.k_proj.bias"));
  CHECK(qkv[32] == first_value(tensors, "model.layers.0.self_attn.v_proj.bias"));
  CHECK(vector_values(weights.layers[0].gate_up.bias).size() == 28);
  CHECK(vector_values(weights.layers[0].down.bias).size() == 10);
  CHECK(vector_values(weights.layers[0].o.bias).size() == 10);
}

TEST_CASE("transposed matrices are turned by strides") {
  const LoadedConfig model = load_config(small_gpt2());
  const auto tensors = small_tensors(model);
  const ModelWeights weights = load(model, tensors);
  const FakeMatrix& up = fake(*weights.layers[0].gate_up.weight);
  CHECK(up.rows == 48);
  CHECK(up.cols == 12);
  const float first = first_value(tensors, "transformer.h.0.mlp.c_fc.weight");
  CHECK(up.at(5, 0) == first + 0.005F);
  CHECK(up.at(0, 1) == first + 0.048F);
  CHECK(fake(*weights.position_embedding).rows == 9);
}

TEST_CASE("one error lists all that is missing, misshapen or not of the model") {
  const LoadedConfig model = load_config(small_llama());
  auto tensors = small_tensors(model);
  drop(tensors, "layers.1.mlp.up_proj.weight");
  drop(tensors, "layers.0.input_layernorm.weight");
  named(tensors, "model.layers.0.self_attn.k_proj.weight").shape = "[10, 8]";
  named(tensors, "model.norm.weight").shape = "[1, 10]";
  tensors.push_back({"model.layers.0.self_attn.q_proj.bias", "F32", "[1]", f32_bytes({1})});
  tensors.push_back({"model.layers.2.mlp.up_proj.weight", "F32", "[1]", f32_bytes({1})});
  const std::string message = refusal(model, tensors, Code::kInvalidArgument);
  CHECK_THAT(message, Catch::Contains("2 tensors missing: model.layers.0.input_layernorm.weight, "
                                      "model.layers.1.mlp.up_proj.weight"));
  CHECK_THAT(message,
             Catch::Contains("model.layers.0.self_attn.k_proj.weight: expected (8, 10), got "
                             "(10, 8)"));
  CHECK_THAT(message, Catch::Contains("model.norm.weight: expected (10), got (1, 10)"));
  CHECK_THAT(message, Catch::Contains("2 tensors not of this model: "
                                      "model.layers.0.self_attn.q_proj.bias, "
                                      "model.layers.2.mlp.up_proj.weight"));
}

TEST_CASE("a long list of problems is cut and counted") {
  const LoadedConfig model = load_config(with(small_llama(), "num_hidden_layers", 100));
  const LoadedConfig two_layers = load_config(small_llama());
  const std::string message = refusal(model, small_tensors(two_layers), Code::kInvalidArgument);
  CHECK_THAT(message, Catch::Contains("882 tensors missing") && Catch::Contains("and 862 more"));
  CHECK(message.size() < 2000);
}

TEST_CASE("an element type matters only where it is needed") {
  const LoadedConfig model = load_config(small_llama());
  auto tensors = small_tensors(model);
  tensors.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", "I64", "[1]", "12345678"});
  CHECK(load(model, tensors).layers.size() == 2);
  TestTensor& norm = named(tensors, "model.norm.weight");
  norm.dtype = "F64";
  norm.data = std::string(80, 'x');
  CHECK_THAT(refusal(model, tensors, Code::kUnsupported),
             Catch::Contains("model.norm.weight: element type F64"));
}

TEST_CASE("vectors of any stored type arrive as the same floats") {
  const LoadedConfig model = load_config(small_llama());
  auto tensors = small_tensors(model);
  TestTensor& norm = named(tensors, "model.norm.weight");
  const auto load_norm = [&](const std::string& dtype, const std::vector<uint16_t>& bits) {
    norm.dtype = dtype;
    norm.data.assign(reinterpret_cast<const char*>(bits.data()), bits.size() * 2);
    return vector_values(load(model, tensors).final_norm);
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> half = load_norm(
      "F16", {0x3c00, 0xc000, 0x0001, 0x83ff, 0x0400, 0x7bff, 0x7c00, 0xfc00, 0x8000, 0x7e00});
  const std::vector<float> expected = {
      1.0F, -2.0F, 0x1p-24F, -1023 * 0x1p-24F, 0x1p-14F, 65504.0F, kInfinity, -kInfinity, -0.0F};
  for (size_t i = 0; i < expected.size(); ++i) CHECK(half[i] == expected[i]);
  CHECK(std::signbit(half[8]));
  CHECK(std::isnan(half[9]));
  const std::vector<float> brain =
      load_norm("BF16", {0x3f80, 0xc000, 0x0001, 0x7f80, 0xff80, 0x8000, 0x3fc0, 0, 0, 0});
  CHECK(brain[0] == 1.0F);
  CHECK(brain[1] == -2.0F);
  CHECK(brain[2] == 0x1p-133F);
  CHECK(brain[3] == kInfinity);
  CHECK(brain[4] == -kInfinity);
  CHECK(brain[6] == 1.5F);
}

TEST_CASE("a tied head may be missing or a copy, not another matrix") {
  const LoadedConfig untied = load_config(small_llama());
  const LoadedConfig tied = load_config(with(small_llama(), "tie_word_embeddings", true));
  auto tensors = small_tensors(untied);
  CHECK(load(untied, tensors).untied_lm_head != nullptr);
  CHECK_THAT(refusal(tied, tensors, Code::kInvalidArgument),
             Catch::Contains("tie_word_embeddings") && Catch::Contains("lm_head.weight"));
  named(tensors, "lm_head.weight").data = named(tensors, "model.embed_tokens.weight").data;
  const ModelWeights copied = load(tied, tensors);
  CHECK(copied.untied_lm_head == nullptr);
  CHECK(&copied.lm_head() == copied.token_embedding.get());
  drop(tensors, "lm_head.weight");
  CHECK(load(tied, tensors).untied_lm_head == nullptr);
  CHECK_THAT(refusal(untied, tensors, Code::kInvalidArgument), Catch::Contains("lm_head.weight"));
}

TEST_CASE("counts parameters and what a token reads") {
  const LoadedConfig untied = load_config(small_llama());
  const LoadedConfig tied = load_config(with(small_llama(), "tie_word_embeddings", true));
  const ModelWeights two = load(untied, small_tensors(untied));
  const ModelWeights one = load(tied, small_tensors(tied));
  const int64_t layer = 40 * 10 + 10 * 24 + 3 * 10 * 14 + 2 * 10;
  CHECK(two.num_params == 2 * 11 * 10 + 2 * layer + 10);
  CHECK(one.num_params == two.num_params - 11 * 10);
  const int64_t embedding_bytes = one.token_embedding->size_bytes;
  CHECK(two.streamed_bytes_per_token == two.size_bytes - embedding_bytes);
  CHECK(one.streamed_bytes_per_token == one.size_bytes);
  const LoadedConfig gpt2 = load_config(small_gpt2());
  const ModelWeights learned = load(gpt2, small_tensors(gpt2));
  CHECK(learned.streamed_bytes_per_token ==
        learned.size_bytes - learned.position_embedding->size_bytes);
}

TEST_CASE(
    "quantising rounds the layers' matrices, keeps embeddings and gives the head eight bits") {
  const LoadedConfig untied = load_config(small_llama());
  const LoadedConfig tied = load_config(with(small_llama(), "tie_word_embeddings", true));
  for (const Quantization kind : {Quantization::kInt8, Quantization::kInt4}) {
    const LoadWeightsOptions options{.dtype = DType::kBF16, .quantization = kind};
    const ModelWeights two = load(untied, small_tensors(untied), options);
    CHECK(fake(*two.token_embedding).storage.quantization == Quantization::kNone);
    CHECK(fake(*two.untied_lm_head).storage.quantization == Quantization::kInt8);
    const MatrixStorage& down = fake(*two.layers[0].down.weight).storage;
    CHECK(down.quantization == kind);
    CHECK(down.group_size == (kind == Quantization::kInt8 ? kInt8GroupSize : kInt4GroupSize));
    const ModelWeights one = load(tied, small_tensors(tied), options);
    CHECK(fake(*one.token_embedding).storage.quantization == Quantization::kInt8);
  }
}

TEST_CASE("a group size that does not divide is refused with the matrix and its columns") {
  const LoadedConfig model = load_config(small_llama());
  const std::string error =
      refusal(model, small_tensors(model), Code::kInvalidArgument,
              {.dtype = DType::kBF16, .quantization = Quantization::kInt8, .group_size = 64});
  CHECK_THAT(error,
             Catch::Contains("64") && Catch::Contains("10 columns") && Catch::Contains(".weight"));
}

TEST_CASE("baichuan 2 divides each row of its head by its length, and nothing else") {
  Json config = small_llama();
  for (const char* key : {"num_key_value_heads", "head_dim"}) config.erase(key);
  config["architectures"] = {"BaichuanForCausalLM"};
  config["hidden_size"] = 12;
  const LoadedConfig first = load_config(config);
  const LoadedConfig second = load_config(with(config, "z_loss_weight", 0));
  const auto tensors = small_tensors(first);
  const ModelWeights plain = load(first, tensors);
  const ModelWeights divided = load(second, tensors);
  const FakeMatrix& head = fake(*plain.untied_lm_head);
  const FakeMatrix& got = fake(*divided.untied_lm_head);
  for (int64_t row = 0; row < head.rows; ++row) {
    double sum = 0.0;
    for (int64_t col = 0; col < head.cols; ++col) {
      sum += double{head.at(row, col)} * double{head.at(row, col)};
    }
    for (int64_t col = 0; col < head.cols; ++col) {
      CHECK(got.at(row, col) ==
            Approx(static_cast<double>(head.at(row, col)) / std::sqrt(sum)).epsilon(1e-6));
    }
  }
  CHECK(fake(*plain.token_embedding).values == fake(*divided.token_embedding).values);
}

TEST_CASE("every source tensor is given back") {
  const LoadedConfig model = load_config(with(small_llama(), "attention_bias", true));
  const auto tensors = small_tensors(model);
  const MemorySource files = weight_files(tensors);
  FakeDevice device;
  load_weights(model, *open_checkpoint(files), device, {.dtype = DType::kF32});
  size_t stored = 0;
  for (const TestTensor& tensor : tensors) stored += tensor.data.size();
  CHECK(files.released_bytes() == stored);
}

// The rows of each part of a stacked matrix, rank after rank, must be those of the whole.
void check_ranks(const LoadedConfig& model, const std::vector<int64_t>& parts) {
  const auto tensors = small_tensors(model);
  const ModelWeights whole = load(model, tensors);
  const FakeMatrix& all = fake(*whole.layers[0].qkv.weight);
  const std::vector<float> all_bias = vector_values(whole.layers[0].qkv.bias);
  for (int rank = 0; rank < 2; ++rank) {
    const ModelWeights weights =
        load(model, tensors, {.dtype = DType::kF32, .rank = rank, .world_size = 2});
    const FakeMatrix& qkv = fake(*weights.layers[0].qkv.weight);
    const std::vector<float> bias = vector_values(weights.layers[0].qkv.bias);
    REQUIRE(qkv.rows * 2 == all.rows);
    int64_t row = 0;
    int64_t part_begin = 0;
    for (const int64_t part : parts) {
      for (int64_t i = 0; i < part / 2; ++i, ++row) {
        const int64_t source = part_begin + rank * part / 2 + i;
        CHECK(qkv.at(row, 3) == all.at(source, 3));
        CHECK(bias[static_cast<size_t>(row)] == all_bias[static_cast<size_t>(source)]);
      }
      part_begin += part;
    }
    const FakeMatrix& down = fake(*weights.layers[0].down.weight);
    const FakeMatrix& all_down = fake(*whole.layers[0].down.weight);
    REQUIRE(down.cols * 2 == all_down.cols);
    CHECK(down.at(2, 0) == all_down.at(2, rank * down.cols));
    CHECK(down.rows == all_down.rows);
    CHECK((weights.layers[0].o.bias.get() != nullptr) == (rank == 0));
    CHECK(fake(*weights.token_embedding).rows == 11);
    CHECK(weights.num_params == whole.num_params);
  }
}

TEST_CASE("ranks hold whole heads of q, k and v") {
  check_ranks(load_config(with(small_llama(), "attention_bias", true)), {24, 8, 8});
}

TEST_CASE("a fused and transposed qkv is cut within q, k and v") {
  check_ranks(load_config(small_gpt2()), {12, 12, 12});
}

TEST_CASE("heads are never cut in two") {
  const LoadedConfig model = load_config(small_llama());
  const auto tensors = small_tensors(model);
  CHECK_THROWS_WITH(
      load(model, tensors, {.dtype = DType::kF32, .rank = 0, .world_size = 3}),
      Catch::Contains("num_kv_heads of the model is 2") && Catch::Contains("3 ranks"));
  CHECK_THROWS_WITH(load(model, tensors, {.dtype = DType::kF32, .rank = 2, .world_size = 2}),
                    Catch::Contains("rank 2"));
  CHECK_THROWS_WITH(load(model, tensors, {.dtype = DType::kF32, .rank = 0, .world_size = 0}),
                    Catch::Contains("world size 0"));
}

TEST_CASE("numbers of xielu are each layer's own, and only there where that is the activation") {
  Json json = small_llama();
  json["architectures"] = {"ApertusForCausalLM"};
  const LoadedConfig model = load_config(json);
  const std::vector<TestTensor> all = small_tensors(model);
  std::vector<TestTensor> tensors = all;
  const std::string numbers = "model.layers.1.mlp.act_fn.";
  CHECK(named(tensors, numbers + "alpha_p").shape == "[1]");
  CHECK(named(tensors, numbers + "beta").shape == "[]");
  named(tensors, numbers + "alpha_p").data = f32_bytes({166.0F});  // more than exp can hold
  named(tensors, numbers + "alpha_n").data = f32_bytes({-1.0F});
  named(tensors, numbers + "beta").data = f32_bytes({0.5F});
  named(tensors, numbers + "eps").data = f32_bytes({-1e-6F});
  const ModelWeights weights = load(model, tensors);
  const XieluNumbers& got = weights.layers[1].xielu;
  CHECK(got.alpha_p == 166.0F);
  CHECK(got.alpha_n == Approx(0.5 + std::log1p(std::exp(-1.0))));
  CHECK(got.beta == 0.5F);
  CHECK(got.eps == -1e-6F);
  CHECK(weights.layers[0].xielu.beta == first_value(tensors, "model.layers.0.mlp.act_fn.beta"));

  drop(tensors, "1.mlp.act_fn.alpha_n");
  CHECK_THAT(refusal(model, tensors, Code::kInvalidArgument),
             Catch::Contains("1 tensor missing: model.layers.1.mlp.act_fn.alpha_n"));
  tensors = all;
  named(tensors, numbers + "beta").shape = "[1]";
  CHECK_THAT(refusal(model, tensors, Code::kInvalidArgument),
             Catch::Contains("model.layers.1.mlp.act_fn.beta: expected"));
  json["hidden_act"] = "relu2";
  CHECK_THAT(refusal(load_config(json), all, Code::kInvalidArgument),
             Catch::Contains("8 tensors not of this model"));
  CHECK_NOTHROW(load(load_config(json), small_tensors(load_config(json))));
  // Other families have no such numbers.
  json["architectures"] = {"LlamaForCausalLM"};
  json["hidden_act"] = "xielu";
  CHECK_THROWS_WITH(load_config(json), Catch::Contains("hidden_act: 'xielu' is not supported"));
}

}  // namespace
}  // namespace tgi::model_weights_test
