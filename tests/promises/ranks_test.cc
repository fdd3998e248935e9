// Tensor parallelism: 2 and 4 ranks say what one says, for every kind of tensor that is cut, and a
// number of ranks keeps the promises that one keeps.
//
// The bits are those of the number of ranks: a row of o or down is summed rank by rank instead of
// column by column. In f32 that moves logits by some 1e-7 of the largest; bound here at 1e-5.
#include <cmath>
#include <random>

#include "base/error.h"
#include "base/json.h"
#include "engine/model/rank_ranges.h"
#include "engine/model/tensor_table.h"
#include "engine/runtime/demo_model.h"
#include "tests/model/model_files.h"
#include "tests/promises/engine_fixture.h"

namespace tgi {
namespace {

constexpr double kTolerance = 1e-5;  // of the largest log-probability, in f32

std::vector<int32_t> random_ids(uint32_t seed, int count, int32_t vocab_size) {
  std::mt19937 random(seed);
  std::vector<int32_t> ids;
  for (int i = 0; i < count; ++i)
    ids.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(vocab_size)));
  return ids;
}

// The largest difference of log-probabilities to those of one rank, as a part of the largest one.
double difference_to_one(const FileSource& files, FixtureOptions options) {
  const int num_ranks = options.num_ranks;
  options.num_ranks = 1;
  const std::vector<int32_t> positions = {0, 7, 20, 39};
  std::vector<std::vector<std::vector<double>>> rows;
  for (const int ranks : {1, num_ranks}) {
    options.num_ranks = ranks;
    const LoadedFixture loaded = load_workers(files, options);
    const int32_t vocab_size = loaded.model.config.vocab_size;
    rows.push_back(all_logprobs(*loaded.workers, random_ids(5, 40, vocab_size), positions,
                                vocab_size, loaded.kv_plan.groups.num_groups()));
  }
  double largest = 0;
  double difference = 0;
  for (size_t row = 0; row < positions.size(); ++row) {
    for (size_t id = 0; id < rows[0][row].size(); ++id) {
      largest = std::max(largest, std::abs(rows[0][row][id]));
      difference = std::max(difference, std::abs(rows[0][row][id] - rows[1][row][id]));
    }
  }
  return difference / largest;
}

// Sizes that 2 and 4 ranks can share, in the ways families differ: biases on both sides of a cut,
// norms of heads, groups of query heads, fused qkv, transposed matrices, tied heads.
std::map<std::string, Json> divisible_models() {
  const Json llama = {{"architectures", {"LlamaForCausalLM"}},
                      {"vocab_size", 97},
                      {"hidden_size", 64},
                      {"intermediate_size", 96},
                      {"num_hidden_layers", 2},
                      {"num_attention_heads", 8},
                      {"num_key_value_heads", 4},
                      {"head_dim", 16},
                      {"max_position_embeddings", 256},
                      {"torch_dtype", "float32"}};
  const auto with = [&](Json changes) {
    Json out = llama;
    out.update(changes);
    return out;
  };
  return {
      {"llama, 2 query heads to a KV head", llama},
      {"llama, tied head, no groups",
       with({{"tie_word_embeddings", true}, {"num_key_value_heads", 8}})},
      {"llama with biases everywhere", with({{"attention_bias", true}, {"mlp_bias", true}})},
      {"mistral with a window",
       with({{"architectures", {"MistralForCausalLM"}}, {"sliding_window", 16}})},
      {"qwen2: biases of q, k and v", with({{"architectures", {"Qwen2ForCausalLM"}}})},
      {"qwen3: norms of heads", with({{"architectures", {"Qwen3ForCausalLM"}}})},
      {"cohere: norms of heads with weights of their own, parallel branches",
       with({{"architectures", {"CohereForCausalLM"}}, {"use_qk_norm", true}})},
      {"glm4: gate and up in one matrix, norms after the sum",
       with({{"architectures", {"Glm4ForCausalLM"}}})},
      {"nemotron: no gate, biases", with({{"architectures", {"NemotronForCausalLM"}},
                                          {"attention_bias", true},
                                          {"mlp_bias", true}})},
      {"seed-oss: a bias of o alone", with({{"architectures", {"SeedOssForCausalLM"}},
                                            {"attention_bias", false},
                                            {"attention_out_bias", true}})},
      {"deepseek v3: latent attention with biases, experts in groups",
       with({{"architectures", {"DeepseekV3ForCausalLM"}},
             {"num_key_value_heads", 8},
             {"attention_bias", true},
             {"kv_lora_rank", 23},
             {"q_lora_rank", 31},
             {"qk_nope_head_dim", 12},
             {"qk_rope_head_dim", 6},
             {"v_head_dim", 10},
             {"n_routed_experts", 8},
             {"n_group", 4},
             {"topk_group", 2},
             {"num_experts_per_tok", 3},
             {"moe_intermediate_size", 24},
             {"first_k_dense_replace", 1}})},
      {"llama 4: chunks, experts that weigh what they read beside a shared one",
       with({{"architectures", {"Llama4ForCausalLM"}},
             {"intermediate_size_mlp", 96},
             {"intermediate_size", 24},
             {"num_local_experts", 4},
             {"num_experts_per_tok", 2},
             {"interleave_moe_layer_step", 2},
             {"attention_chunk_size", 12},
             {"no_rope_layers", {1, 0}},
             {"floor_scale", 8}})},
      {"trinity: gates of what attention gives, norms on both sides of the branches",
       with({{"architectures", {"AfmoeForCausalLM"}},
             {"moe_intermediate_size", 24},
             {"num_experts", 6},
             {"num_experts_per_tok", 2},
             {"sliding_window", 16}})},
      {"youtu: latent attention of the stream", with({{"architectures", {"YoutuForCausalLM"}},
                                                      {"num_key_value_heads", 8},
                                                      {"kv_lora_rank", 23},
                                                      {"q_lora_rank", nullptr},
                                                      {"qk_nope_head_dim", 12},
                                                      {"qk_rope_head_dim", 6},
                                                      {"v_head_dim", 10}})},
      {"gpt2: fused qkv, transposed, biases, learned positions",
       {{"architectures", {"GPT2LMHeadModel"}},
        {"vocab_size", 97},
        {"n_embd", 64},
        {"n_layer", 2},
        {"n_head", 8},
        {"n_positions", 256}}},
  };
}

bool can_be_dealt_out(const ModelConfig& config, int num_ranks) {
  try {
    check_world_size(config, num_ranks);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

TEST_CASE("2 and 4 ranks give the logits of one, for every kind of tensor that is cut") {
  for (const auto& [name, json] : divisible_models()) {
    const MemorySource files = config_files(json.dump());
    for (const int num_ranks : {2, 4}) {
      const double difference = difference_to_one(
          files, {.num_ranks = num_ranks, .num_threads = 1, .random_weights = true});
      INFO(name << ", " << num_ranks << " ranks: " << difference);
      CHECK(difference < kTolerance);
      CHECK(difference > 0);  // cut, and not the whole model on one rank
    }
  }
}

TEST_CASE("2 and 3 ranks say what transformers says, greedily and exactly") {
  int num_checked = 0;
  std::vector<std::string> folders = golden_model_folders();
  for (std::string& family : golden_model_folders("families")) folders.push_back(std::move(family));
  for (const std::string& folder : folders) {
    const auto files = open_folder(folder);
    const LoadedConfig model = load_model_config(*files);
    const Json golden = parse_json(files->require_text("golden.json"), 16);
    for (const int num_ranks : {2, 3}) {
      if (!can_be_dealt_out(model.config, num_ranks)) continue;
      INFO(folder << ", " << num_ranks << " ranks");
      EngineFixture ranks(*files, {.num_ranks = num_ranks, .num_threads = 1});
      for (const Json& one : golden.at("cases")) {
        const auto expected = one.at("greedy_ids").get<std::vector<int32_t>>();
        CHECK(ranks
                  .generate_one({.prompt_ids = one.at("prompt_ids").get<std::vector<int32_t>>(),
                                 .max_new_tokens = static_cast<int32_t>(expected.size()),
                                 .sampling = {}})
                  .ids == expected);
      }
      ++num_checked;
    }
  }
  CHECK(num_checked >= 60);
}

TEST_CASE("answers of several ranks are the same bits alone, in a batch, cached and preempted") {
  const auto files = open_demo_model();
  std::vector<Asked> asked;
  const std::vector<int32_t> shared = random_ids(1, 40, 2048);
  for (uint32_t i = 0; i < 12; ++i) {
    Asked one{.prompt_ids = random_ids(i, static_cast<int>(10 + 5 * i), 2048),
              .max_new_tokens = static_cast<int32_t>(24 + i),
              .sampling = {}};
    if (i % 2 == 0) one.prompt_ids.insert(one.prompt_ids.begin(), shared.begin(), shared.end());
    if (i % 3 == 0) {
      one.sampling.do_sample = true;
      one.sampling.seed = 100 + i;
    }
    asked.push_back(std::move(one));
  }
  std::vector<Generated> of_one;
  EngineFixture single(*files, {.num_threads = 1});
  for (const Asked& one : asked) of_one.push_back(single.generate_one(one, false));
  for (const int num_ranks : {2, 4}) {
    std::vector<Generated> expected;
    EngineFixture alone(*files, {.num_ranks = num_ranks, .num_threads = 1});
    for (const Asked& one : asked) expected.push_back(alone.generate_one(one, false));
    EngineFixture warm(*files, {.num_ranks = num_ranks, .num_threads = 2, .max_batch_tokens = 33});
    EngineFixture tight(
        *files,
        {.num_ranks = num_ranks, .num_threads = 1, .max_batch_tokens = 64, .num_blocks = 14});
    for (int round = 0; round < 2; ++round) {
      for (EngineFixture* fixture : {&warm, &tight}) {
        const auto answers = fixture->generate(asked);
        for (size_t i = 0; i < asked.size(); ++i) {
          INFO(num_ranks << " ranks, round " << round << ", request " << i);
          CHECK(answers[i] == expected[i]);
          if (fixture == &warm && round == 1 && asked[i].prompt_ids.size() > 16) {
            CHECK(answers[i].num_cached >= 16);
          }
        }
      }
    }
    CHECK(tight.engine().stats().counters.num_preemptions > 0);
    for (size_t i = 0; i < asked.size(); ++i) {
      INFO(num_ranks << " ranks beside one, request " << i);
      CHECK(expected[i].ids == of_one[i].ids);
    }
  }
}

TEST_CASE(
    "quantised and 16-bit models on ranks are as far from one rank as their rounding is fine") {
  const auto files = open_demo_model();
  struct Row {
    DType dtype;
    Quantization quantization;
    double tolerance;
  };
  // The cuts of the demo model (64 and 128 columns on 4 ranks) are on borders of int4's default
  // groups, so that the ranks' weights are those of one rank. What differs are activations that
  // fall to the other side when they are rounded; in int8 groups begin anew on 4 ranks.
  for (const Row& row :
       {Row{DType::kF32, Quantization::kNone, kTolerance},
        Row{DType::kBF16, Quantization::kNone, 0.01}, Row{DType::kF32, Quantization::kInt8, 0.02},
        Row{DType::kF32, Quantization::kInt4, 0.01}}) {
    for (const int num_ranks : {2, 4}) {
      const double difference = difference_to_one(*files, {.dtype = row.dtype,
                                                           .quantization = row.quantization,
                                                           .num_ranks = num_ranks,
                                                           .num_threads = 1});
      INFO(dtype_name(row.dtype) << " " << quantization_name(row.quantization) << ", " << num_ranks
                                 << " ranks: " << difference);
      CHECK(difference < row.tolerance);
    }
  }
}

}  // namespace tgi
