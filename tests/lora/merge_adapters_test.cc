// What adapters become together: which linears, of which ranks, and which can't be merged. The
// numbers are compared with PEFT's in tests/promises/merged_adapters_test.cc.
#include "engine/lora/merge_adapters.h"

#include <deque>

#include "engine/device/backend.h"
#include "engine/tensor/weight_element.h"
#include "tests/catch.h"
#include "tests/lora/adapter_builder.h"

namespace tgi::merge_adapters_test {
namespace {

const std::string kGolden = TGI_SOURCE_DIR "/tests/golden/";
const std::string kQ = "model.layers.0.self_attn.q_proj";  // (60, 36)
const std::string kK = "model.layers.0.self_attn.k_proj";  // (20, 36)

const LoadedConfig& llama() {
  static const LoadedConfig config = load_model_config(*open_folder(kGolden + "models/llama"));
  return config;
}

// Adapters of llama, which stay where they are.
class Adapters {
 public:
  void add(const std::string& name,
           const Json& config,
           const std::vector<TestTensor>& tensors,
           float weight = 1.0F) {
    sources_.push_back(adapter_files(config, tensors));
    opened_.push_back(open_adapter(sources_.back(), llama()));
    inputs_.push_back({.name = name, .adapter = &opened_.back(), .weight = weight});
  }
  void add_rank(const std::string& name, int64_t rank, const std::string& module, int64_t outputs) {
    add(name, Json{{"peft_type", "LORA"}, {"r", rank}, {"lora_alpha", 2 * rank}},
        lora_of(module, outputs, 36, rank));
  }
  void add_golden(const std::string& name) {
    folders_.push_back(open_folder(kGolden + "adapters/" + name));
    const auto base = open_folder(kGolden + "models/llama");
    const auto tensors = open_checkpoint(*base);
    opened_.push_back(open_adapter(*folders_.back(), llama(), tensors.get()));
    inputs_.push_back({.name = name, .adapter = &opened_.back()});
  }
  AdapterFiles merge(MergeStrategy strategy = MergeStrategy::kLinear,
                     bool on_factors = false) const {
    MergeOptions options{.on_factors = on_factors};
    options.rule.strategy = strategy;
    return merge_adapters(inputs_, options);
  }

 private:
  std::deque<MemorySource> sources_;
  std::vector<std::unique_ptr<FileSource>> folders_;
  std::deque<AdapterFiles> opened_;
  std::vector<MergeInput> inputs_;
};

TEST_CASE("factors lie side by side, and one factor of all stays outside of them") {
  Adapters two;
  two.add_rank("a", 2, kQ, 60);
  two.add_rank("b", 3, kQ, 60);
  two.add_rank("c", 1, kK, 20);
  const AdapterFiles merged = two.merge();
  REQUIRE(merged.linears.size() == 2);
  const AdapterLinear& q = merged.linears[0];
  CHECK(q.module == kQ);
  CHECK(q.rank == 5);
  CHECK(q.scale == 2.0F);
  CHECK((q.a.rows == 5 && q.a.cols == 36));
  CHECK((q.b.rows == 60 && q.b.cols == 5));
  const auto a = read_factor(*merged.tensors, q.a);
  CHECK(a[0] == 0.0F);
  CHECK(a[2 * 36] == 0.0F);  // where the second one's begin
  CHECK(a[2 * 36 + 1] == 0.125F);
  const auto b = read_factor(*merged.tensors, q.b);
  CHECK(b[5] == 100.25F);       // row 1 of the first
  CHECK(b[5 + 2] == 100.375F);  // row 1 of the second
  CHECK(merged.linears[1].module == kK);
  CHECK(merged.linears[1].rank == 1);

  Adapters weighted;
  weighted.add("a", small_adapter_config(), lora_of(kQ, 60, 36), 0.5F);
  weighted.add("b", small_adapter_config(), lora_of(kQ, 60, 36), -2.0F);
  const AdapterFiles sum = weighted.merge();
  CHECK(sum.linears[0].scale == 1.0F);
  const auto scaled = read_factor(*sum.tensors, sum.linears[0].b);
  CHECK(scaled[0] == 100.0F);  // times 0.5 * 4 / 2
  CHECK(scaled[2] == -400.0F);
}

TEST_CASE("ranks above the largest of one product make several, up to what a linear takes") {
  Adapters some;
  for (int i = 0; i < 3; ++i) some.add_rank(std::to_string(i), 200, kQ, 60);
  const AdapterFiles merged = some.merge();
  REQUIRE(merged.linears.size() == 3);
  for (const AdapterLinear& linear : merged.linears) CHECK(linear.rank == 200);
  // Once more of q, with k beside it: both are of one linear of the model.
  for (int i = 3; i < 6; ++i) some.add_rank(std::to_string(i), 200, kQ, 60);
  CHECK(some.merge().linears.size() == 6);
  some.add_rank("k", 80, kK, 20);
  CHECK(some.merge().linears.size() == 7);
  some.add_rank("too much", 1, kQ, 60);
  const std::string text = refusal_of_action(Code::kUnsupported, [&] { (void)some.merge(); });
  CHECK_THAT(text, Catch::Contains("add up to more than 1280") && Catch::Contains("merge fewer"));
}

TEST_CASE("what is factorised again has the sum of the ranks, and no more than there can be") {
  Adapters two;
  two.add_rank("a", 2, kQ, 60);
  two.add_rank("b", 3, kQ, 60);
  for (const auto strategy :
       {MergeStrategy::kTies, MergeStrategy::kDareLinear, MergeStrategy::kDareTies}) {
    CHECK(two.merge(strategy).linears[0].rank == 5);
  }
  two.add_rank("c", 200, kQ, 60);
  CHECK(two.merge(MergeStrategy::kTies).linears[0].rank == 36);
}

TEST_CASE("what can't be merged is refused by the adapter's name and the linear's") {
  Adapters dora;
  dora.add_golden("llama");
  dora.add_golden("llama-dora");
  for (const auto strategy : {MergeStrategy::kLinear, MergeStrategy::kTies}) {
    const std::string text =
        refusal_of_action(Code::kUnsupported, [&] { (void)dora.merge(strategy); });
    CHECK_THAT(text, Catch::Contains("adapter llama-dora: ") &&
                         Catch::Contains("q_proj: DoRA can't be merged"));
  }
  Adapters biases;
  biases.add_golden("llama");
  biases.add_golden("llama-lora-bias");
  CHECK(biases.merge().linears.size() > 4);
  CHECK_THAT(refusal_of_action(Code::kUnsupported,
                               [&] { (void)biases.merge(MergeStrategy::kDareLinear); }),
             Catch::Contains("only be merged with merge_strategy linear"));
  CHECK_THAT(refusal_of_action(Code::kUnsupported,
                               [&] { (void)biases.merge(MergeStrategy::kLinear, true); }),
             Catch::Contains("only be merged with merge_strategy linear"));
  Adapters ranks;
  ranks.add_rank("a", 2, kQ, 60);
  ranks.add_rank("b", 3, kQ, 60);
  CHECK_THAT(refusal_of_action(Code::kUnsupported,
                               [&] { (void)ranks.merge(MergeStrategy::kLinear, true); }),
             Catch::Contains("adapter b: " + kQ + ": rank 3, and that of a is 2"));
  Adapters embeddings;
  const auto embedding_of = [](int64_t rank) {
    const std::string name = "base_model.model.model.embed_tokens.lora_embedding_";
    return std::vector<TestTensor>{numbers(name + "A", rank, 97), numbers(name + "B", 36, rank)};
  };
  const Json config = Json{{"peft_type", "LORA"}, {"r", 200}, {"lora_alpha", 2}};
  embeddings.add("a", config, embedding_of(200));
  CHECK(embeddings.merge().linears.size() == 1);
  embeddings.add("b", config, embedding_of(200));
  CHECK_THAT(refusal_of_action(Code::kUnsupported, [&] { (void)embeddings.merge(); }),
             Catch::Contains("adapters of the embedding add up to more than 256"));
}

}  // namespace
}  // namespace tgi::merge_adapters_test
