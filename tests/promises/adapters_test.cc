// Adapters: what PEFT computes with them (scripts/golden/make_adapters) to 1e-4 and token by token;
// the bits of an answer depend on its adapter and on nothing else in the batch, those of the base
// model on no adapter at all; and all are served when few fit.
#include <filesystem>
#include <map>
#include <thread>

#include "engine/lora/adapter_parts.h"
#include "engine/model/rank_ranges.h"
#include "tests/promises/engine_fixture.h"
#include "tests/promises/golden_logits.h"
#include "tests/temp_folder.h"

namespace tgi::adapters_test {
namespace {

const std::string kGolden = TGI_SOURCE_DIR "/tests/golden/";

struct GoldenAdapter {
  std::string name;
  std::string folder;
  Json expected;
};

// By the folder of their base model.
std::map<std::string, std::vector<GoldenAdapter>> golden_adapters(
    const std::string& kind = "adapters") {
  std::map<std::string, std::vector<GoldenAdapter>> out;
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kGolden + kind)) {
    if (!entry.is_directory()) continue;
    const std::string folder = entry.path().string();
    const Json expected = parse_json(open_folder(folder)->require_text("expected.json"), 16);
    out[kGolden + expected.at("base").get<std::string>()].push_back(
        {.name = entry.path().filename().string(), .folder = folder, .expected = expected});
    ++count;
  }
  REQUIRE(count >= (kind == "adapters" ? 20 : 5));
  return out;
}

// The first place is the adapter's.
void check_adapter_logits(const FileSource& base,
                          const GoldenAdapter& golden,
                          int num_ranks,
                          bool is_reference = false) {
  INFO(golden.name << " on " << num_ranks << " ranks");
  LoadedFixture loaded = load_workers(
      base, {.is_reference = is_reference, .num_ranks = num_ranks, .max_active_adapters = 1});
  const auto files = open_folder(golden.folder);
  const auto base_tensors = open_checkpoint(base);
  const AdapterFiles adapter = open_adapter(*files, loaded.model, base_tensors.get());
  AdapterParts parts;
  for (int rank = 0; rank < num_ranks; ++rank) {
    parts.push_back(adapter_parts(adapter, loaded.model,
                                  {.dtype = DType::kF32, .rank = rank, .world_size = num_ranks}));
  }
  const auto made = loaded.workers->make_adapter(parts);
  loaded.workers->set_adapter(1, made.get());
  for (const Json& one : golden.expected.at("cases")) check_logits(loaded, one, 1);
  loaded.workers->set_adapter(1, nullptr);
}

bool can_be_cut(const FileSource& base) {
  try {
    check_world_size(load_model_config(base).config, 2);
    return true;
  } catch (const Error&) {
    return false;
  }
}

Asked asked_of(const Json& golden, std::shared_ptr<const HostAdapter> adapter) {
  return {.prompt_ids = golden.at("prompt_ids").get<std::vector<int32_t>>(),
          .max_new_tokens = static_cast<int32_t>(golden.at("greedy_ids").size()),
          .sampling = {},
          .adapter = std::move(adapter)};
}

// Every case of every adapter, and as many of the base model.
std::vector<Asked> ask_all(AdapterStore& store, const std::vector<GoldenAdapter>& adapters) {
  std::vector<Asked> out;
  for (const GoldenAdapter& golden : adapters) {
    for (const Json& one : golden.expected.at("cases")) {
      out.push_back(asked_of(one, store.load(golden.name, golden.folder)));
      out.push_back(asked_of(one, nullptr));
    }
  }
  return out;
}

}  // namespace

TEST_CASE("logits with every adapter are those of PEFT") {
  int num_cut = 0;
  for (const auto& [folder, adapters] : golden_adapters()) {
    const auto base = open_folder(folder);
    for (const GoldenAdapter& golden : adapters) {
      check_adapter_logits(*base, golden, 1);
      if (!can_be_cut(*base)) continue;
      check_adapter_logits(*base, golden, 2);
      ++num_cut;
    }
  }
  CHECK(num_cut >= 8);
}

// The reference, because the cpu backend rounds what it multiplies with integers.
TEST_CASE("of a quantised model logits with an adapter are those of PEFT over its numbers") {
  for (const auto& [folder, adapters] : golden_adapters("quantised_adapters")) {
    const auto base = open_folder(folder);
    for (const GoldenAdapter& golden : adapters) check_adapter_logits(*base, golden, 1, true);
  }
}

TEST_CASE("greedy tokens with all adapters of a model in one batch are those of PEFT") {
  for (const auto& [folder, adapters] : golden_adapters()) {
    INFO(folder);
    const auto base = open_folder(folder);
    EngineFixture fixture(*base,
                          {.max_batch_tokens = 29, .max_active_adapters = 16, .base = folder});
    const std::vector<Asked> asked = ask_all(fixture.adapters(), adapters);
    for (const bool is_warm : {false, true}) {
      const auto answers = fixture.generate(asked);
      size_t next = 0;
      for (const GoldenAdapter& golden : adapters) {
        for (const Json& one : golden.expected.at("cases")) {
          INFO(golden.name << (is_warm ? ", warm" : ", cold"));
          CHECK(answers[next].ids == one.at("greedy_ids").get<std::vector<int32_t>>());
          next += 2;
        }
      }
    }
  }
}

namespace {

void check_bits(const std::string& folder, const std::vector<GoldenAdapter>& adapters) {
  INFO(folder);
  REQUIRE(adapters.size() >= 3);
  const auto base = open_folder(folder);
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    std::vector<Generated> expected;
    {
      EngineFixture alone(
          *base, {.dtype = dtype, .num_threads = 1, .max_active_adapters = 1, .base = folder});
      EngineFixture without(*base, {.dtype = dtype, .num_threads = 1});
      for (const Asked& one : ask_all(alone.adapters(), adapters)) {
        const bool has_adapter = one.adapter != nullptr;
        expected.push_back((has_adapter ? alone : without).generate_one(one, false));
      }
    }
    struct Way {
      std::string name;
      FixtureOptions options;
    };
    const std::vector<Way> ways = {
        {"all at once", {.num_threads = 2, .max_active_adapters = 16}},
        {"chunks of some tokens, three threads",
         {.num_threads = 3, .max_batch_tokens = 21, .max_active_adapters = 16}},
        {"two places", {.num_threads = 2, .max_active_adapters = 2}},
        {"so few blocks that sequences are preempted",
         {.max_batch_tokens = 64, .num_blocks = 24, .max_active_adapters = 16}},
    };
    for (Way way : ways) {
      INFO(way.name << ", " << dtype_name(dtype));
      way.options.dtype = dtype;
      way.options.base = folder;
      EngineFixture fixture(*base, way.options);
      const std::vector<Asked> asked = ask_all(fixture.adapters(), adapters);
      int64_t num_cached = 0;
      for (int round = 0; round < 2; ++round) {
        const auto answers = fixture.generate(asked);
        for (size_t i = 0; i < answers.size(); ++i) {
          INFO("request " << i << ", round " << round);
          CHECK(answers[i] == expected[i]);
          num_cached += answers[i].num_cached;
        }
      }
      CHECK(num_cached > 0);
    }
  }
}

}  // namespace

TEST_CASE(
    "an adapter's answer has the same bits alone and among all others, and base rows theirs") {
  const auto all = golden_adapters();
  for (const std::string model : {"models/llama", "families/mixtral"}) {
    check_bits(kGolden + model, all.at(kGolden + model));
  }
}

TEST_CASE("many adapters in turn with few places: each answers as it does alone, and none stays") {
  const std::string folder = kGolden + "models/llama";
  const auto all = golden_adapters();
  const std::vector<GoldenAdapter>& adapters = all.at(folder);
  const auto base = open_folder(folder);
  EngineFixture fixture(*base, {.max_active_adapters = 3, .base = folder});
  // Two hundred names of a few adapters: each name is one of its own to the pool.
  std::vector<Asked> asked;
  std::vector<std::vector<int32_t>> expected;
  for (int i = 0; i < 200; ++i) {
    const GoldenAdapter& golden = adapters[static_cast<size_t>(i) % adapters.size()];
    const Json& one = golden.expected.at("cases")[0];
    asked.push_back(
        asked_of(one, fixture.adapters().load(fmt::format("name {}", i), golden.folder)));
    expected.push_back(one.at("greedy_ids").get<std::vector<int32_t>>());
  }
  const auto answers = fixture.generate(asked);
  for (size_t i = 0; i < answers.size(); ++i) CHECK(answers[i].ids == expected[i]);
  CHECK(fixture.engine().stats().num_active_adapters <= 3);
  for (int i = 0; i < 200; ++i) fixture.adapters().unload(fmt::format("name {}", i));
  const auto deadline = Clock::now() + std::chrono::seconds(20);
  while (fixture.engine().stats().num_active_adapters > 0 && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  const EngineStats stats = fixture.engine().stats();
  CHECK(stats.num_active_adapters == 0);
  CHECK(stats.adapter_bytes_used == 0);
  CHECK(stats.adapters.empty());
  CHECK(stats.num_blocks_cached == 0);
}

TEST_CASE("all that are pinned fit at once, or the last is refused") {
  const std::string folder = kGolden + "models/llama";
  const std::string adapter = kGolden + "adapters/llama";
  const auto base = open_folder(folder);
  {
    EngineFixture fixture(*base, {.max_active_adapters = 2, .base = folder});
    AdapterStore& store = fixture.adapters();
    for (const char* name : {"a", "b", "c"}) (void)store.load(name, adapter);
    for (const char* name : {"a", "b", "a"}) store.pin(name, true);
    CHECK_THROWS_WITH(store.pin("c", true),
                      "adapter c: it can't be pinned: pinned adapters have all 2 places that there "
                      "are; unpin one, or give --max-active-adapters more");
    std::map<std::string, bool> pinned;
    for (const auto& each : store.list()) pinned[each.name] = each.pinned;
    CHECK(pinned == std::map<std::string, bool>{{"a", true}, {"b", true}, {"c", false}});
    store.pin("a", false);
    store.pin("c", true);
  }
  FixtureOptions options{.max_active_adapters = 8, .base = folder};
  options.adapter_bytes = EngineFixture(*base, options).adapters().load("a", adapter)->device_bytes;
  EngineFixture fixture(*base, options);
  AdapterStore& store = fixture.adapters();
  for (const char* name : {"a", "b"}) (void)store.load(name, adapter);
  store.pin("a", true);
  CHECK_THROWS_WITH(store.pin("b", true), Catch::StartsWith("adapter b: it can't be pinned: with "
                                                            "those that are, ") &&
                                              Catch::Contains("--adapter-memory-fraction"));
  // The one that has all of the memory answers.
  const Json expected = parse_json(open_folder(adapter)->require_text("expected.json"), 16);
  const Json& one = expected.at("cases")[0];
  CHECK(fixture.generate_one(asked_of(one, store.find("a"))).ids ==
        one.at("greedy_ids").get<std::vector<int32_t>>());
}

TEST_CASE("an adapter that is unloaded while its changed files are read stays away") {
  const std::string folder = kGolden + "models/llama";
  const auto base = open_folder(folder);
  EngineFixture fixture(*base, {.max_active_adapters = 2, .base = folder});
  AdapterStore& store = fixture.adapters();
  const TempFolder place;
  const std::string copy = place.file("adapter");
  std::filesystem::copy(kGolden + "adapters/llama-dora", copy);
  for (int i = 0; i < 200; ++i) {
    (void)store.load("a", copy);
    std::filesystem::last_write_time(
        copy + "/adapter_config.json",
        std::filesystem::file_time_type::clock::now() + std::chrono::seconds(i));
    std::string refusal;
    std::thread request([&] {
      try {
        (void)store.find("a");
      } catch (const Error& error) {
        refusal = error.what();
      }
    });
    std::this_thread::sleep_for(std::chrono::microseconds(10 * i));
    store.unload("a");
    request.join();
    REQUIRE(store.list().empty());
    if (refusal.empty()) continue;  // it was sooner
    CHECK(refusal == "adapter a: no adapter of that name is loaded; none is");
  }
}

}  // namespace tgi::adapters_test
