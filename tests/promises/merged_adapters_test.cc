// Merged adapters: what PEFT's add_weighted_adapter computes (scripts/golden/make_adapters) to
// 1e-4; the same bits alone and among others; made once, until one that they are made of changes.
#include <filesystem>
#include <map>

#include "base/known_names.h"
#include "engine/lora/adapter_parts.h"
#include "engine/lora/merge_adapters.h"
#include "tests/promises/engine_fixture.h"
#include "tests/promises/golden_logits.h"

namespace tgi::merged_adapters_test {
namespace {

const std::string kGolden = TGI_SOURCE_DIR "/tests/golden/";
const std::string kBase = kGolden + "models/llama";

struct GoldenMerge {
  std::string name;
  Json expected;
};

std::vector<GoldenMerge> golden_merges() {
  std::vector<GoldenMerge> out;
  const auto files = open_folder(kGolden + "merged_adapters");
  for (const std::string& name : files->names()) {
    out.push_back({name, parse_json(files->require_text(name), 16)});
  }
  REQUIRE(out.size() >= 9);
  return out;
}

// Opened, with what they are views of.
struct Inputs {
  std::vector<std::unique_ptr<FileSource>> files;
  std::vector<AdapterFiles> adapters;
  std::vector<MergeInput> inputs;
};

Inputs open_inputs(const Json& asked, const LoadedConfig& model) {
  Inputs out;
  const auto base = open_folder(kBase);
  const auto tensors = open_checkpoint(*base);
  const auto ids = asked.at("ids").get<std::vector<std::string>>();
  for (const std::string& id : ids) {
    out.files.push_back(open_folder(kGolden + "adapters/" + id));
    out.adapters.push_back(open_adapter(*out.files.back(), model, tensors.get()));
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    const float weight = asked.contains("weights") ? asked["weights"][i].get<float>() : 1.0F;
    out.inputs.push_back({.name = ids[i], .adapter = &out.adapters[i], .weight = weight});
  }
  return out;
}

MergeOptions options_of(const Json& asked) {
  MergeOptions out{.on_factors = asked.value("on_factors", false), .num_threads = 2};
  out.rule.strategy = merge_strategy_from_name(asked.value("merge_strategy", "linear")).value();
  out.rule.majority_sign =
      majority_sign_from_name(asked.value("majority_sign_method", "total")).value();
  out.rule.density = asked.value("density", 1.0);
  return out;
}

void check_merge_logits(const GoldenMerge& golden, int num_ranks) {
  INFO(golden.name << " on " << num_ranks << " ranks");
  const auto base = open_folder(kBase);
  LoadedFixture loaded = load_workers(*base, {.num_ranks = num_ranks, .max_active_adapters = 1});
  const Json& asked = golden.expected.at("merged_adapters");
  const Inputs inputs = open_inputs(asked, loaded.model);
  const AdapterFiles merged = merge_adapters(inputs.inputs, options_of(asked));
  AdapterParts parts;
  for (int rank = 0; rank < num_ranks; ++rank) {
    parts.push_back(adapter_parts(merged, loaded.model,
                                  {.dtype = DType::kF32, .rank = rank, .world_size = num_ranks}));
  }
  const auto made = loaded.workers->make_adapter(parts);
  loaded.workers->set_adapter(1, made.get());
  for (const Json& one : golden.expected.at("cases")) check_logits(loaded, one, 1);
  loaded.workers->set_adapter(1, nullptr);
}

ipc::MergedAdapters merge_of(const std::vector<std::string>& names,
                             const std::vector<double>& weights = {},
                             const std::string& strategy = "linear") {
  ipc::MergedAdapters out{.ids = names, .weights = weights, .merge_strategy = strategy};
  for (const std::string& name : names) out.paths.push_back(kGolden + "adapters/" + name);
  if (strategy != "linear") out.density = 0.5;
  return out;
}

Asked asked_of(std::shared_ptr<const HostAdapter> adapter, int32_t salt = 0) {
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < 20 + salt; ++i) prompt.push_back(3 + (i * 7 + salt) % 90);
  return {
      .prompt_ids = prompt, .max_new_tokens = 12, .sampling = {}, .adapter = std::move(adapter)};
}

}  // namespace

TEST_CASE("logits with merged adapters are those of PEFT") {
  for (const GoldenMerge& golden : golden_merges()) {
    check_merge_logits(golden, 1);
    check_merge_logits(golden, 2);
  }
}

TEST_CASE("a merged adapter's answer has the same bits alone and among others") {
  const auto base = open_folder(kBase);
  const std::vector<ipc::MergedAdapters> merges = {
      merge_of({"llama", "llama-second"}, {0.7, 0.9}),
      merge_of({"llama-second", "llama-all-linear-rslora", "llama-embedding"}),
      merge_of({"llama", "llama-second"}, {}, "ties"),
      merge_of({"llama", "llama-second"}, {}, "dare_linear"),
      merge_of({"llama", "llama-second"}, {}, "dare_ties"),
  };
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const auto ask_all = [&](AdapterStore& store) {
      std::vector<Asked> out;
      for (const ipc::MergedAdapters& merge : merges) {
        out.push_back(asked_of(store.merged(merge), static_cast<int32_t>(out.size())));
        out.push_back(asked_of(nullptr, static_cast<int32_t>(out.size())));
        out.push_back(asked_of(store.merged(merge_of({"llama"}))));
      }
      return out;
    };
    std::vector<Generated> expected;
    EngineFixture alone(
        *base, {.dtype = dtype, .num_threads = 1, .max_active_adapters = 1, .base = kBase});
    for (const Asked& one : ask_all(alone.adapters())) {
      expected.push_back(alone.generate_one(one, false));
    }
    for (size_t i = 3; i < expected.size(); i += 3) CHECK(expected[i].ids != expected[0].ids);
    EngineFixture together(*base, {.dtype = dtype,
                                   .num_threads = 3,
                                   .max_batch_tokens = 21,
                                   .max_active_adapters = 16,
                                   .base = kBase});
    for (int round = 0; round < 2; ++round) {
      const auto answers = together.generate(ask_all(together.adapters()));
      for (size_t i = 0; i < answers.size(); ++i) {
        INFO("request " << i << ", round " << round << ", " << dtype_name(dtype));
        CHECK(answers[i] == expected[i]);
      }
    }
  }
}

TEST_CASE("one adapter with weight 1 is itself, and one with weight 0 adds nothing") {
  const auto base = open_folder(kBase);
  EngineFixture fixture(*base, {.max_active_adapters = 8, .base = kBase});
  AdapterStore& store = fixture.adapters();
  const auto single = store.load("llama", kGolden + "adapters/llama");
  CHECK(store.merged(merge_of({"llama"})) == single);
  const auto with_nothing = store.merged(merge_of({"llama", "llama-second"}, {1, 0}));
  CHECK(with_nothing != single);
  const auto twice = store.merged(merge_of({"llama"}, {2}));
  CHECK(twice != single);
  const Generated expected = fixture.generate_one(asked_of(single), false);
  const Generated same = fixture.generate_one(asked_of(with_nothing), false);
  REQUIRE(same.ids == expected.ids);
  for (size_t i = 0; i < same.logprobs.size(); ++i) {
    CHECK(same.logprobs[i] == Approx(expected.logprobs[i]).margin(1e-5));
  }
  CHECK(fixture.generate_one(asked_of(twice), false).logprobs != expected.logprobs);
}

TEST_CASE("what was merged is made once for each way to merge it, and anew when its parts change") {
  const auto base = open_folder(kBase);
  EngineFixture fixture(*base, {.max_active_adapters = 8, .base = kBase});
  AdapterStore& store = fixture.adapters();
  const auto merge = merge_of({"llama", "llama-second"}, {}, "ties");
  const auto first = store.merged(merge);
  CHECK(first->name == "ties(llama, llama-second; density 0.5, total)");
  CHECK(store.merged(merge) == first);
  auto known = merge;
  known.paths.clear();
  CHECK(store.merged(known) == first);
  auto other = merge;
  other.density = 0.25;
  CHECK(store.merged(other) != first);
  other = merge;
  other.majority_sign_method = "frequency";
  CHECK(store.merged(other) != first);
  CHECK(store.merged(merge_of({"llama-second", "llama"}, {}, "ties")) != first);
  CHECK(store.merged(merge_of({"llama", "llama-second"}, {1, 2}, "ties")) != first);
  CHECK(store.merged(merge_of({"llama", "llama-second"}, {}, "dare_ties")) != first);
  CHECK(store.merged(merge) == first);

  store.unload("llama");
  CHECK_THROWS_WITH(store.merged(known), Catch::Contains("llama: no adapter of that name"));
  CHECK(store.merged(merge) != first);
  CHECK_THROWS_WITH(store.merged(merge_of({"llama", "llama-dora"})),
                    Catch::Contains("llama-dora") && Catch::Contains("DoRA"));

  // Those asked for last are kept.
  const auto kept = store.merged(merge);
  for (size_t i = 0; i < kMaxMergesKept; ++i) {
    (void)store.merged(merge_of({"llama", "llama-second"}, {1, 2.0 + static_cast<double>(i)}));
    if (i + 1 < kMaxMergesKept) CHECK(store.merged(merge) == kept);
  }
  (void)store.merged(merge_of({"llama"}, {3}));
  for (size_t i = 0; i < kMaxMergesKept; ++i) {
    (void)store.merged(merge_of({"llama"}, {5.0 + static_cast<double>(i)}));
  }
  CHECK(store.merged(merge) != kept);
}

TEST_CASE("merged adapters leave the device, and the host, with what they are made of") {
  const auto base = open_folder(kBase);
  EngineFixture fixture(*base, {.max_active_adapters = 3, .base = kBase});
  for (int i = 0; i < 8; ++i) {
    const auto merge = merge_of({"llama", "llama-second"}, {1, 1.0 + i});
    (void)fixture.generate({asked_of(fixture.adapters().merged(merge), i), asked_of(nullptr, i)});
  }
  fixture.adapters().unload("llama-second");
  const auto deadline = Clock::now() + std::chrono::seconds(10);
  while (fixture.engine().stats().num_active_adapters > 0 && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  CHECK(fixture.engine().stats().adapter_bytes_used == 0);
  CHECK(fixture.engine().stats().adapters.empty());
}

TEST_CASE("LoRAX's arithmetic is what the store was made for, or is not") {
  const auto base = open_folder(kBase);
  EngineFixture products(*base, {.max_active_adapters = 2, .base = kBase});
  EngineFixture factors(*base, {.max_active_adapters = 2, .base = kBase, .lorax_merging = true});
  const auto merge = merge_of({"llama", "llama-second"}, {0.6, 1.1});
  const auto one = products.generate_one(asked_of(products.adapters().merged(merge)), false);
  const auto other = factors.generate_one(asked_of(factors.adapters().merged(merge)), false);
  CHECK(one.logprobs != other.logprobs);
  CHECK_THROWS_WITH(factors.adapters().merged(merge_of({"llama", "llama-all-linear-rslora"})),
                    Catch::Contains("LoRAX's arithmetic takes adapters of one rank only"));
}

}  // namespace tgi::merged_adapters_test
