// Adapters of experts: of each one's own linears, and of what holds all of a layer, as PEFT
// stores them now and did before.
#include <set>

#include "engine/lora/adapter_files.h"
#include "engine/lora/adapter_parts.h"
#include "engine/model/adapter_sites.h"
#include "engine/model/weight_layout.h"
#include "tests/catch.h"
#include "tests/lora/adapter_builder.h"

namespace tgi::expert_adapters_test {
namespace {

const std::string kBase = "base_model.model.";
const std::string kExperts = "model.layers.1.mlp.experts";

LoadedConfig golden_model(const std::string& name, const Json& changes = Json::object()) {
  Json config = parse_json(
      open_folder(TGI_SOURCE_DIR "/tests/golden/families/" + name)->require_text("config.json"));
  config.update(changes);
  return load_model_config(MemorySource({{"config.json", config.dump()}}));
}

Json experts_config() {
  Json config = small_adapter_config();
  config["target_parameters"] = {"mlp.experts.gate_up_proj", "mlp.experts.down_proj"};
  config["peft_version"] = "0.21.0";
  return config;
}

// Of both parameters, as PEFT nests them. Of each (rows of B, columns of A).
std::vector<TestTensor> pair(const std::string& module, int64_t y, int64_t x, int64_t stacked) {
  return {numbers(kBase + module + ".lora_A.weight", stacked, x),
          numbers(kBase + module + ".lora_B.weight", y, stacked, 1000.0F)};
}

AdapterFiles opened(const MemorySource& files, const LoadedConfig& model) {
  return open_adapter(files, model);
}

std::string refused(const std::vector<TestTensor>& tensors,
                    Code code,
                    const Json& config,
                    const LoadedConfig& model) {
  const MemorySource files = adapter_files(config, tensors);
  return refusal_of_action(code, [&] { (void)open_adapter(files, model); });
}

}  // namespace

// qwen3-moe: 6 experts, hidden 24, an expert's width 10.
TEST_CASE("parameters of experts are told by their shapes, each expert's factors found in them") {
  const LoadedConfig model = golden_model("qwen3-moe");
  for (const bool is_gate_up_inside : {false, true}) {
    const std::string inside = kExperts + ".base_layer";
    const MemorySource files = adapter_files(
        experts_config(), together({pair(is_gate_up_inside ? inside : kExperts, 20, 24, 12),
                                    pair(is_gate_up_inside ? kExperts : inside, 24, 10, 12)}));
    const AdapterFiles adapter = opened(files, model);
    REQUIRE(adapter.linears.size() == 6 * 3);
    const AdapterLinear& up = adapter.linears[3 + 6];  // gates, then ups, by expert
    CHECK(up.parts.size() == 1);
    CHECK(up.parts.front() ==
          SitePart{.layer = 1, .linear = 0, .role = Role::kExpertUp, .expert = 3});
    CHECK(up.rank == 2);
    CHECK(up.scale == 2.0F);
    CHECK((up.a.rows == 2 && up.a.cols == 24 && up.b.rows == 10 && up.b.cols == 2));
    const std::vector<float> a = read_factor(*adapter.tensors, up.a);
    CHECK(a.front() == static_cast<float>(3 * 2 * 24) / 8.0F);
    CHECK(a[25] == static_cast<float>((3 * 2 + 1) * 24 + 1) / 8.0F);
    const std::vector<float> b = read_factor(*adapter.tensors, up.b);
    CHECK(b[0] == 1000.0F + static_cast<float>(10 * 12 + 3) / 8.0F);
    CHECK(b[1] == 1000.0F + static_cast<float>(10 * 12 + 6 + 3) / 8.0F);
    CHECK(b[2] == 1000.0F + static_cast<float>(11 * 12 + 3) / 8.0F);
    CHECK(adapter.facts.max_rank == 2);
    CHECK(adapter.facts.targets == std::vector<std::string>{"down_proj", "gate_up_proj"});
  }
}

TEST_CASE("parameters that are named without the module that holds them are of experts") {
  const LoadedConfig model = golden_model("qwen3-moe");
  Json config = experts_config();  // as PEFT 0.21 writes what was made of each expert's linears
  config["target_parameters"] = {"gate_up_proj", "down_proj"};
  config["rank_pattern"] = {{R"(.*\.gate_up_proj)", 4}};
  const MemorySource files = adapter_files(
      config, together({pair(kExperts + ".base_layer", 20, 24, 24), pair(kExperts, 24, 10, 12)}));
  const AdapterFacts facts = read_adapter_facts(files);
  CHECK(facts.max_rank == 4);
  CHECK(facts.targets == std::vector<std::string>{"down_proj", "gate_up_proj"});
  CHECK(opened(files, model).facts.max_rank == 4);
}

TEST_CASE("parts of experts have sites of their own, behind all others") {
  const LoadedConfig model = golden_model("qwen3-moe");
  const MemorySource files = adapter_files(
      experts_config(),
      together({pair(kExperts, 20, 24, 12), pair(kExperts + ".base_layer", 24, 10, 12)}));
  const AdapterFiles adapter = opened(files, model);
  std::set<int32_t> sites;
  for (const LowRankPart& part : adapter_parts(adapter, model, {})) {
    CHECK(part.site > embedding_site(model.config.num_layers));
    CHECK(part.rank() == 2);
    sites.insert(part.site);
  }
  CHECK(sites.size() == 12);
  CHECK(*sites.begin() == expert_site(model.config, 1, 0, 0));
  CHECK(*sites.rbegin() == expert_site(model.config, 1, 1, 5));
}

TEST_CASE("an older PEFT took what is stored by outputs the other way around") {
  const LoadedConfig model = golden_model("qwen3-moe");
  Json config = experts_config();
  config["peft_version"] = "0.18.1";
  // x are the outputs of gate and up, y what is read.
  const MemorySource files = adapter_files(config, pair(kExperts, 24, 20, 12));
  const AdapterFiles adapter = opened(files, model);
  REQUIRE(adapter.linears.size() == 6 * 2);
  const AdapterLinear& up = adapter.linears[4 + 6];
  const std::vector<float> a = read_factor(*adapter.tensors, up.a);  // B's column, on its side
  CHECK((up.a.rows == 2 && up.a.cols == 24));
  CHECK(a[1] == 1000.0F + static_cast<float>(12 + 4) / 8.0F);
  CHECK(a[24] == 1000.0F + static_cast<float>(6 + 4) / 8.0F);
  const std::vector<float> b = read_factor(*adapter.tensors, up.b);
  CHECK((up.b.rows == 10 && up.b.cols == 2));
  CHECK(b[0] == static_cast<float>(4 * 2 * 20 + 10) / 8.0F);
  CHECK(b[1] == static_cast<float>((4 * 2 + 1) * 20 + 10) / 8.0F);
}

TEST_CASE("of square matrices the version of PEFT tells which way around they are") {
  // gate and up together have as many outputs as inputs.
  const LoadedConfig model = golden_model("qwen3-moe", {{"moe_intermediate_size", 12}});
  const LoadedConfig transposed = golden_model("gpt-oss");
  const auto is_turned = [](const LoadedConfig& of, const std::string& version) {
    Json config = experts_config();
    config["peft_version"] = version;
    const auto stacked = int64_t{2} * of.config.experts.num_experts;
    const MemorySource files = adapter_files(config, pair(kExperts, 24, 24, stacked));
    const AdapterFiles adapter = opened(files, of);
    return adapter.linears.front().a.tensor->name.ends_with("lora_B.weight");
  };
  CHECK_FALSE(is_turned(model, "0.19.0"));
  CHECK(is_turned(model, "0.18.0"));
  CHECK_FALSE(is_turned(transposed, "0.21.0"));
  CHECK_FALSE(is_turned(transposed, "0.18.0"));
}

TEST_CASE("patterns know parameters of experts by their names") {
  const LoadedConfig model = golden_model("qwen3-moe");
  Json config = experts_config();
  config["rank_pattern"] = {{"experts.gate_up_proj", 3}};
  config["alpha_pattern"] = {{R"(.*\.1\.mlp\.experts\.down_proj)", 7}};
  const MemorySource files = adapter_files(
      config, together({pair(kExperts, 20, 24, 18), pair(kExperts + ".base_layer", 24, 10, 12)}));
  const AdapterFiles adapter = opened(files, model);
  for (const AdapterLinear& linear : adapter.linears) {
    const bool is_down = linear.parts.front().role == Role::kExpertDown;
    CHECK(linear.rank == (is_down ? 2 : 3));
    CHECK(linear.scale == (is_down ? 3.5F : 4.0F / 3.0F));
  }
  CHECK(adapter.facts.max_rank == 3);
  CHECK_THAT(refused(pair(kExperts, 20, 24, 12), Code::kInvalidArgument, config, model),
             Catch::Contains(kExperts + ".lora_A.weight: expected rank 3, got 2"));
}

TEST_CASE("what experts can't have is refused by name") {
  const LoadedConfig model = golden_model("qwen3-moe");
  const Json config = experts_config();
  const auto bad = Code::kInvalidArgument;
  CHECK_THAT(
      refused(pair(kExperts, 20, 23, 12), bad, config, model),
      Catch::Contains("1 tensor is of experts, and of the shape of none of their matrices: " +
                      kBase + kExperts + ".lora_A.weight (12, 23) with " + kBase + kExperts +
                      ".lora_B.weight (20, 12), expected (6 r, 24) and (20, 6 r) for gate_up_proj, "
                      "or (6 r, 10) and (24, 6 r) for down_proj, of rank r"));
  CHECK_THAT(refused(pair(kExperts, 20, 24, 13), bad, config, model),
             Catch::Contains("of the shape of none of their matrices"));
  CHECK_THAT(refused({pair(kExperts, 20, 24, 12).front()}, bad, config, model),
             Catch::Contains("1 tensor is without its lora_B: " + kBase + kExperts));
  CHECK_THAT(
      refused(together({pair(kExperts, 20, 24, 12), pair(kExperts + ".base_layer", 20, 24, 12)}),
              bad, config, model),
      Catch::Contains("1 tensor is of experts that another module is, too"));
  CHECK_THAT(
      refused(together({pair(kExperts, 20, 24, 12), lora_of(kExperts + ".2.gate_proj", 10, 24)}),
              bad, config, model),
      Catch::Contains("of experts that another module is, too"));
  CHECK_THAT(refused({numbers(kBase + kExperts + ".lora_magnitude_vector", 1, 24)},
                     Code::kUnsupported, config, model),
             Catch::Contains("1 tensor is of experts, and not one of a product's, which is not "
                             "supported: " +
                             kBase + kExperts + ".lora_magnitude_vector"));
  CHECK_THAT(refused({numbers(kBase + kExperts + ".2.gate_proj.lora_magnitude_vector", 1, 24)},
                     Code::kUnsupported, config, model),
             Catch::Contains("1 tensor is of DoRA of an expert, which is not supported: "));
}

}  // namespace tgi::expert_adapters_test
