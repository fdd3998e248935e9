#include "engine/runtime/inspect.h"

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/json.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;

const std::string kModels = std::string(TGI_SOURCE_DIR) + "/tests/golden/models/";

ModelOptions of(const std::string& model) {
  ModelOptions options;
  options.model = model;
  options.backend = "cpu";
  return options;
}

}  // namespace

TEST_CASE("inspect plans what loading the model then takes") {
  const ipc::ModelFacts facts = inspect_model(of("demo"));
  CHECK(facts.architecture == "LlamaForCausalLM");
  CHECK(facts.num_params == 3'476'224);
  CHECK(facts.max_positions == 1024);
  CHECK(facts.chat_templates.size() == 1);
  CHECK(facts.licence == "apache-2.0");
  REQUIRE(facts.plans.size() == 4);
  for (const ipc::DTypePlan& plan : facts.plans) {
    INFO(plan.dtype);
    CHECK(plan.error == "");
    ModelOptions options = of("demo");
    const bool is_quantised = plan.dtype == "int8" || plan.dtype == "int4";
    (is_quantised ? options.quantize : options.dtype) = plan.dtype;
    const ipc::ModelStatus loaded = ServedModel::load(options)->status();
    CHECK(plan.weights == loaded.memory.weights);
    CHECK(plan.kv_bytes_per_token == loaded.kv_bytes_per_token);
    CHECK(plan.workspace == loaded.memory.workspace);
    REQUIRE(plan.contexts.size() == 1);  // the model is meant for less than 2048
    CHECK(plan.contexts[0].tokens == 1024);
    CHECK(plan.contexts[0].kv_cache == 1024 * loaded.kv_bytes_per_token);
    CHECK(plan.contexts[0].total == plan.weights + plan.workspace + plan.contexts[0].kv_cache);
  }
}

// 2 GiB of a sequence: the default of 64 would not fit most machines.
TEST_CASE("inspect plans fewer sequences at a time where their states are large") {
  const TempFolder folder;
  fs::copy(kModels + "../families/mamba2", folder.file("m"));
  std::ofstream(folder.file("m/config.json")) << R"({"architectures": ["Mamba2ForCausalLM"],
    "model_type": "mamba2", "vocab_size": 61, "hidden_size": 64, "num_hidden_layers": 64,
    "expand": 256, "num_heads": 256, "head_dim": 64, "state_size": 512, "n_groups": 1,
    "torch_dtype": "bfloat16"})";
  const ipc::ModelFacts facts = inspect_model(of(folder.file("m")));
  CHECK(facts.state_bytes > int64_t{2} << 30);
  REQUIRE(!facts.plans.empty());
  for (const ipc::DTypePlan& plan : facts.plans) {
    INFO(plan.dtype);
    CHECK(plan.error == "");
    CHECK(plan.workspace > facts.state_bytes);
    CHECK(plan.workspace < facts.memory);
  }
}

TEST_CASE("inspect plans windowed layers by their windows, and loading takes as much") {
  const TempFolder folder;
  const Json config = {{"architectures", {"Gemma3ForCausalLM"}},
                       {"vocab_size", 320},
                       {"hidden_size", 32},
                       {"intermediate_size", 48},
                       {"num_hidden_layers", 12},
                       {"num_attention_heads", 2},
                       {"num_key_value_heads", 1},
                       {"head_dim", 16},
                       {"max_position_embeddings", 4096},
                       {"sliding_window", 128},
                       {"sliding_window_pattern", 6},
                       {"torch_dtype", "bfloat16"}};
  std::ofstream(folder.file("config.json")) << config.dump();
  ModelOptions options = of(folder.path());
  options.load_format = "dummy";
  options.max_batch_tokens = 64;
  const ipc::ModelFacts facts = inspect_model(options);
  CHECK(facts.num_windowed_layers == 10);
  CHECK(facts.sliding_window == 128);
  for (const ipc::DTypePlan& plan : facts.plans) {
    if (plan.dtype != "bf16") continue;
    const ipc::ModelStatus loaded = ServedModel::load(options)->status();
    CHECK(loaded.kv_groups.num_full == 1);
    CHECK(loaded.kv_groups.num_windowed == 5);
    CHECK(loaded.kv_groups.num_layers == 2);
    CHECK(loaded.kv_groups.window == 128);
    CHECK(plan.workspace == loaded.memory.workspace);
    CHECK(plan.kv_bytes_per_token == loaded.kv_bytes_per_token);
    // A context of 4,096: two layers keep 256 blocks, ten the 17 of window, tile and chunk.
    const ipc::ContextPlan& longest = plan.contexts.back();
    CHECK(longest.tokens == 4096);
    CHECK(longest.kv_cache == (256 + 5 * 17) * 16 * plan.kv_bytes_per_token / 6);
    CHECK(loaded.memory.kv_cache == 16 * longest.kv_cache);
    return;
  }
  FAIL("no plan for bf16");
}

TEST_CASE(
    "inspect tells which layers have which heads and which share, and loading takes as much") {
  const TempFolder folder;
  Json types = Json::array();
  for (int i = 0; i < 10; ++i) types.push_back(i % 5 == 4 ? "full_attention" : "sliding_attention");
  const Json config = {{"architectures", {"Gemma4ForCausalLM"}},
                       {"vocab_size", 320},
                       {"vocab_size_per_layer_input", 320},
                       {"hidden_size", 32},
                       {"hidden_size_per_layer_input", 8},
                       {"intermediate_size", 48},
                       {"num_hidden_layers", 10},
                       {"layer_types", types},
                       {"num_attention_heads", 2},
                       {"num_key_value_heads", 1},
                       {"num_kv_shared_layers", 3},
                       {"head_dim", 32},
                       {"global_head_dim", 64},
                       {"max_position_embeddings", 4096},
                       {"sliding_window", 128},
                       {"dtype", "bfloat16"}};
  std::ofstream(folder.file("config.json")) << config.dump();
  ModelOptions options = of(folder.path());
  options.load_format = "dummy";
  options.max_batch_tokens = 64;
  const ipc::ModelFacts facts = inspect_model(options);
  CHECK(facts.num_shared_kv_layers == 3);
  REQUIRE(facts.kv_heads.size() == 2);
  CHECK(facts.kv_heads[0].num_layers == 6);
  CHECK(facts.kv_heads[0].head_dim == 32);
  CHECK(facts.kv_heads[1].num_layers == 1);
  CHECK(facts.kv_heads[1].head_dim == 64);
  for (const ipc::DTypePlan& plan : facts.plans) {
    if (plan.dtype != "bf16") continue;
    const ipc::ModelStatus loaded = ServedModel::load(options)->status();
    // One layer of 64 is as large as two of 32.
    CHECK(loaded.kv_groups.num_full == 1);
    CHECK(loaded.kv_groups.num_windowed == 3);
    CHECK(loaded.kv_groups.num_shared == 3);
    CHECK(loaded.kv_groups.heads.size() == 2);
    CHECK(plan.weights == loaded.memory.weights);
    CHECK(plan.workspace == loaded.memory.workspace);
    // Of a token: keys and values of 64 numbers in 2 bytes, in each of four groups.
    CHECK(plan.kv_bytes_per_token == 4 * 2 * 64 * 2);
    CHECK(plan.kv_bytes_per_token == loaded.kv_bytes_per_token);
    return;
  }
  FAIL("no plan for bf16");
}

TEST_CASE("inspect counts the weights of layers that share them once") {
  const TempFolder folder;
  fs::copy(std::string(TGI_SOURCE_DIR) + "/tests/golden/vectors/albert-groups", folder.file("m"),
           fs::copy_options::recursive);
  const ModelOptions options = of(folder.file("m"));
  const int64_t num_params = inspect_model(options).num_params;
  CHECK(num_params > 0);
  std::ifstream stored(folder.file("m/config.json"));
  Json config = Json::parse(stored);
  config["num_hidden_layers"] = 2 * config.at("num_hidden_layers").get<int64_t>();
  std::ofstream(folder.file("m/config.json")) << config.dump();
  CHECK(inspect_model(options).num_params == num_params);
}

TEST_CASE("inspect tells what the files hold, and what is wrong with them") {
  const TempFolder folder;
  fs::copy(kModels + "qwen2", folder.file("m"));
  const ModelOptions options = of(folder.file("m"));
  std::ofstream(folder.file("m/LICENSE")) << "\n  Apache License\n";
  CHECK(inspect_model(options).licence == "Apache License (LICENSE)");
  std::ofstream(folder.file("m/README.md")) << "---\ntags: [x]\nlicense: mit\n---\n# A model\n";
  ipc::ModelFacts facts = inspect_model(options);
  CHECK(facts.licence == "mit");
  REQUIRE(facts.stored.size() == 1);
  CHECK(facts.stored[0].dtype == "BF16");
  CHECK(facts.stored[0].bytes == 2 * facts.num_params);
  CHECK(facts.chat_templates.empty());
  CHECK(facts.weights_error == "");

  std::ofstream(folder.file("m/README.md")) << "---\nlicense: other\nlicense_name: my-own\n---\n";
  std::ofstream(folder.file("m/tokenizer_config.json")) << R"({"chat_template": "{% if %}"})";
  fs::remove(folder.file("m/model.safetensors"));
  facts = inspect_model(options);
  CHECK(facts.licence == "my-own");
  CHECK_THAT(facts.weights_error, Catch::Contains("model.safetensors"));
  CHECK_THAT(facts.chat_template_error, Catch::Contains("tokenizer_config.json"));

  std::ofstream(folder.file("m/config.json")) << R"({"architectures": ["XForCausalLM"]})";
  CHECK_THROWS_WITH(inspect_model(options), Catch::Contains("XForCausalLM"));
  CHECK_THROWS_AS(inspect_model(of(folder.file("none"))), Error);
}

TEST_CASE("inspect tells what an adapter says of itself, without its model") {
  const std::string folder =
      std::string(TGI_SOURCE_DIR) + "/tests/golden/adapters/qwen2-dora-rslora";
  REQUIRE(holds_adapter(folder));
  const ipc::AdapterFolder adapter = inspect_adapter(folder);
  CHECK(adapter.is_dora);
  CHECK(adapter.is_rank_stabilised);
  CHECK(adapter.rank > 0);
  CHECK(adapter.max_rank >= adapter.rank);
  CHECK(adapter.num_linears > 0);
  CHECK_FALSE(adapter.modules.empty());
  CHECK(adapter.weights_error.empty());
  const ipc::AdapterFolder sent = ipc::adapter_folder_from_json(ipc::to_json(adapter));
  CHECK(sent.alpha == adapter.alpha);
  CHECK(sent.modules == adapter.modules);
  CHECK(sent.bytes == adapter.bytes);
  CHECK_FALSE(holds_adapter("demo"));
  // Trainers put the config of the base beside it; with weights it is a model that has an adapter.
  const TempFolder copies;
  const std::string beside = copies.file("beside");
  std::filesystem::copy(folder, beside, std::filesystem::copy_options::recursive);
  std::ofstream(beside + "/config.json") << "{}";
  CHECK(holds_adapter(beside));
  for (const char* weights :
       {"model-00001-of-00002.safetensors", "pytorch_model-00002-of-00002.safetensors",
        "pytorch_model.bin", "model.safetensors.index.json", "weights-Q8_0.gguf"}) {
    INFO(weights);
    std::ofstream(beside + "/" + weights) << "x";
    CHECK_FALSE(holds_adapter(beside));
    std::filesystem::remove(beside + "/" + weights);
  }
  std::ofstream(beside + "/training_args.bin") << "x";
  CHECK(holds_adapter(beside));
  CHECK_FALSE(holds_adapter(kModels + "gpt2-untied-f16"));
}

}  // namespace tgi
