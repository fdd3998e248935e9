// Layers whose experts are those that a table has for the token: how it is loaded, and that the
// forward pass goes by it. The family is one that has no such layers but for these tests.
#include <cmath>
#include <cstring>
#include <set>

#include "base/error.h"
#include "engine/cpu/cpu_backend.h"
#include "engine/device/communicator.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/model_weights.h"
#include "engine/model/state_layout.h"
#include "engine/model/transformer.h"
#include "tests/catch.h"
#include "tests/model/fake_device.h"
#include "tests/model/model_files.h"

namespace tgi::experts_by_token_test {
namespace {

constexpr int64_t kVocab = 11;
constexpr int64_t kTopK = 2;
constexpr int64_t kExperts = 5;
const std::string kGate = "model.layers.1.mlp.gate.";
const std::string kTable = kGate + "tid2eid";

// The experts of the first layer are not those of tokens.
LoadedConfig small_model() {
  LoadedConfig model = load_config({{"architectures", {"Dots1ForCausalLM"}},
                                    {"vocab_size", kVocab},
                                    {"hidden_size", 10},
                                    {"intermediate_size", 14},
                                    {"num_hidden_layers", 2},
                                    {"num_attention_heads", 6},
                                    {"num_key_value_heads", 2},
                                    {"head_dim", 4},
                                    {"n_routed_experts", kExperts},
                                    {"num_experts_per_tok", kTopK},
                                    {"moe_intermediate_size", 6},
                                    {"torch_dtype", "float32"}});
  static const std::vector<TensorSpec> tensors = [&] {
    std::vector<TensorSpec> out(model.tensors().begin(), model.tensors().end());
    out.insert(out.end(), kExpertsByTokenTensors.begin(), kExpertsByTokenTensors.end());
    return out;
  }();
  static const Architecture family = [&] {
    Architecture out = *model.architecture;
    out.tensors = tensors;
    return out;
  }();
  model.architecture = model.text = &family;
  model.config.layers[1].experts_by_token = true;
  model.config.experts.route.score = RouterScore::kSqrtSoftplus;
  return model;
}

// (kVocab, kTopK)
std::vector<int64_t> some_experts() {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < kVocab * kTopK; ++i) out.push_back(i * 3 % kExperts);
  return out;
}

template <typename T>
std::string bytes_of(const std::vector<int64_t>& values) {
  std::string out;
  for (const int64_t value : values) {
    const auto stored = static_cast<T>(value);
    out.append(reinterpret_cast<const char*>(&stored), sizeof stored);
  }
  return out;
}

TestTensor table_of(const std::vector<int64_t>& experts) {
  return {kTable, "I64", "[11, 2]", bytes_of<int64_t>(experts)};
}

std::vector<TestTensor> tensors_with(const TestTensor& table) {
  std::vector<TestTensor> out;
  for (TestTensor& tensor : small_tensors(small_model())) {
    if (tensor.name == table.name) continue;
    std::vector<float> values(tensor.data.size() / sizeof(float));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = 0.5F * std::sin(static_cast<float>(i * (out.size() + 7)));
    }
    tensor.data = f32_bytes(values);
    out.push_back(std::move(tensor));
  }
  out.push_back(table);
  return out;
}

ModelWeights load(const Checkpoint& checkpoint, const LoadWeightsOptions& options) {
  const LoadedConfig model = small_model();
  FakeDevice device;
  ModelWeights weights = load_weights(model, checkpoint, device, options);
  CHECK(weights.size_bytes == plan_weight_bytes(model, device, options));
  CHECK(weights.size_bytes == device.allocated_bytes);
  return weights;
}

ModelWeights load(const std::vector<TestTensor>& tensors,
                  const LoadWeightsOptions& options = {.dtype = DType::kF32}) {
  const MemorySource files = weight_files(tensors);
  return load(*open_checkpoint(files), options);
}

std::string refusal(const std::vector<TestTensor>& tensors, Code code) {
  try {
    load(tensors);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  FAIL("was accepted");
  return "";
}

std::vector<int64_t> held(const DeviceIndices& indices) {
  const auto count = static_cast<int64_t>(indices.buffer.size_bytes() / sizeof(int32_t));
  return {indices.get(), indices.get() + count};
}

TEST_CASE("the experts of tokens are read from both kinds of integers") {
  const std::vector<int64_t> experts = some_experts();
  const TestTensor narrow = {kTable, "I32", "[11, 2]", bytes_of<int32_t>(experts)};
  for (const TestTensor& table : {table_of(experts), narrow}) {
    INFO(table.dtype);
    const ModelWeights weights = load(tensors_with(table));
    CHECK(held(weights.layers[1].experts_by_token) == experts);
    CHECK(weights.layers[1].experts_by_token.rows == kVocab);
    CHECK(weights.layers[1].choice_bias.get() == nullptr);
    CHECK(weights.layers[0].experts_by_token.get() == nullptr);
    CHECK(weights.layers[0].choice_bias.get() != nullptr);
  }
}

TEST_CASE("each rank holds the experts of tokens whole") {
  for (const int rank : {0, 1}) {
    const ModelWeights weights = load(tensors_with(table_of(some_experts())),
                                      {.dtype = DType::kF32, .rank = rank, .world_size = 2});
    CHECK(held(weights.layers[1].experts_by_token) == some_experts());
  }
}

TEST_CASE("the experts of tokens are no parameters, nor are they streamed") {
  const LoadedConfig model = small_model();
  LoadedConfig plain = small_model();
  plain.config.layers[1].experts_by_token = false;
  CHECK(count_stored_parameters(TensorTable(plain)) ==
        count_stored_parameters(TensorTable(model)) + kExperts);
  const ModelWeights weights = load(tensors_with(table_of(some_experts())));
  FakeDevice device;
  const ModelWeights other =
      load_weights(plain, *make_dummy_checkpoint(plain, 1), device, {.dtype = DType::kF32});
  CHECK(other.streamed_bytes_per_token ==
        weights.streamed_bytes_per_token + kExperts * int64_t{sizeof(float)});
}

TEST_CASE("an expert that is not there is refused with its place") {
  for (const int64_t wrong : {kExperts, int64_t{-1}, int64_t{1} << 32}) {
    std::vector<int64_t> experts = some_experts();
    experts[7] = wrong;
    CHECK_THAT(refusal(tensors_with(table_of(experts)), Code::kInvalidArgument),
               Catch::Contains("tensor " + kTable + ": row 3, column 1 is " +
                               std::to_string(wrong) + ", expected 0 to 4"));
  }
}

TEST_CASE("a table of experts that does not fit is refused like a tensor") {
  TestTensor table = table_of(some_experts());
  table.shape = "[2, 11]";
  CHECK_THAT(refusal(tensors_with(table), Code::kInvalidArgument),
             Catch::Contains(kTable + ": expected (11, 2), got (2, 11)"));
  const TestTensor floats = {kTable, "F32", "[11, 2]", bytes_of<int32_t>(some_experts())};
  CHECK_THAT(refusal(tensors_with(floats), Code::kUnsupported),
             Catch::Contains(kTable + ": element type F32, expected I64 or I32"));
  std::vector<TestTensor> without = tensors_with(table_of(some_experts()));
  without.pop_back();
  CHECK_THAT(refusal(without, Code::kInvalidArgument),
             Catch::Contains("1 tensor missing: " + kTable));
  without.push_back(table_of(some_experts()));
  without.push_back({kGate + "e_score_correction_bias", "F32", "[1]", f32_bytes({1})});
  CHECK_THAT(refusal(without, Code::kInvalidArgument),
             Catch::Contains("1 tensor not of this model: " + kGate + "e_score_correction_bias"));
}

TEST_CASE("random weights have experts of tokens that are there") {
  const LoadedConfig model = small_model();
  const ModelWeights weights = load(*make_dummy_checkpoint(model, 3), {.dtype = DType::kBF16});
  const std::vector<int64_t> experts = held(weights.layers[1].experts_by_token);
  REQUIRE(experts.size() == static_cast<size_t>(kVocab * kTopK));
  for (size_t i = 0; i < experts.size(); i += 2) CHECK(experts[i] != experts[i + 1]);
  CHECK(std::set<int64_t>(experts.begin(), experts.end()).size() == kExperts);
  const ModelWeights again = load(*make_dummy_checkpoint(model, 3), {.dtype = DType::kBF16});
  CHECK(held(again.layers[1].experts_by_token) == experts);
  const ModelWeights other = load(*make_dummy_checkpoint(model, 4), {.dtype = DType::kBF16});
  CHECK(held(other.layers[1].experts_by_token) != experts);
}

// Of the tokens 4, 9 and 2, those after the first.
std::vector<float> scores_with(const std::vector<int64_t>& experts) {
  const LoadedConfig model = small_model();
  const MemorySource files = weight_files(tensors_with(table_of(experts)));
  const auto device = make_cpu_device({.num_threads = 1});
  const ModelWeights weights =
      load_weights(model, *open_checkpoint(files), *device, {.dtype = DType::kF32});
  const KvPlan plan = one_kv_group(model.config);
  allocate_state(*device, model.config, plan,
                 {.num_blocks = 2,
                  .kv_dtype = DType::kF32,
                  .num_slots = 1,
                  .max_blocks_per_slot = 2,
                  .max_batch_tokens = 4});
  NullCommunicator communicator;
  Transformer transformer(model.config, weights, *device, communicator, plan, 4);
  Batch batch;
  batch.clear();
  batch.token_ids = {4, 9, 2};
  batch.positions = {0, 1, 2};
  batch.slots = {0};
  batch.cu_seqlens_q = {0, 3};
  batch.context_lens = {3};
  batch.slot_starts.emplace_back();
  batch.block_appends.push_back({.slot = 0, .index = 0, .block = 0});
  batch.score_rows = {{.row = 0, .target_id = 9}, {.row = 1, .target_id = 2}};
  return run_step(*device, batch, transformer).scores;
}

TEST_CASE("a token goes to the experts of its row") {
  std::vector<int64_t> experts = some_experts();
  const std::vector<float> scores = scores_with(experts);
  REQUIRE(scores.size() == 2);
  experts[2 * 3] = (experts[2 * 3] + 1) % kExperts;
  CHECK(scores_with(experts) == scores);
  experts[2 * 9] = (experts[2 * 9] + 1) % kExperts;
  const std::vector<float> others = scores_with(experts);
  CHECK(others[0] == scores[0]);
  CHECK(others[1] != scores[1]);
  experts[2 * 4] = (experts[2 * 4] + 1) % kExperts;
  CHECK(scores_with(experts)[0] != scores[0]);
}

}  // namespace
}  // namespace tgi::experts_by_token_test
