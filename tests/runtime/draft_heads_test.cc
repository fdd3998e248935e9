// Heads that draft propose what torch computes in double precision, on every device, and files that
// don't fit are refused before their numbers are read.
#include <array>
#include <filesystem>
#include <fstream>

#include "base/files/file_source.h"
#include "base/files/speculator_folder.h"
#include "engine/cpu/cpu_backend.h"
#include "engine/runtime/drafters/drafter_kind.h"
#include "engine/text/byte_tokenizer.h"
#include "tests/catch.h"
#include "tests/promises/engine_fixture.h"
#include "tests/runtime/draft_layers.h"
#include "tests/temp_folder.h"

namespace tgi::draft_heads_test {
namespace {

const std::string kGolden = TGI_SOURCE_DIR "/tests/golden/";
constexpr int32_t kMaxRunning = 24;

// What there is before a drafter is chosen: the model that it drafts for, and the folder's files.
struct Choice {
  Choice(const std::string& folder, bool is_reference)
      : files(open_folder(folder)),
        config(parse_json(files->require_text("config.json"))),
        model(load_model_config(*open_folder(kGolden + "models/llama"))),
        tokenizer(model.config.vocab_size),
        backend(is_reference ? reference_backend() : cpu_backend()) {
    settings.speculator = folder;
  }

  std::unique_ptr<PreparedDrafter> prepare(std::string* name = nullptr) {
    const AskedDrafter asked{.settings = settings,
                             .model = model,
                             .tokenizer = tokenizer,
                             .backend = backend,
                             .device = {.num_threads = 2},
                             .dtype = DType::kF32,
                             .files = files.get(),
                             .config = &config};
    for (const DrafterKind* const kind : drafter_kinds()) {
      if (!kind->is_asked(asked)) continue;
      if (name != nullptr) *name = kind->name;
      return kind->prepare(asked);
    }
    return nullptr;
  }

  std::unique_ptr<FileSource> files;
  Json config;
  LoadedConfig model;
  ByteTokenizer tokenizer;
  Backend& backend;
  ipc::ModelSettings settings;
};

struct Row {
  std::vector<float> hidden;
  std::vector<int32_t> text;
  std::vector<int32_t> wanted;
};

std::vector<Row> golden_rows(const std::string& folder) {
  std::vector<Row> out;
  for (const Json& row : read_json(folder + "/golden.json")) {
    out.push_back({.hidden = row.at("hidden").get<std::vector<float>>(),
                   .text = {7, row.at("token").get<int32_t>()},
                   .wanted = row.at("drafts").get<std::vector<int32_t>>()});
  }
  return out;
}

// A copy of golden heads with something changed.
class ChangedHeads {
 public:
  explicit ChangedHeads(const std::string& name) {
    for (const auto& entry : std::filesystem::directory_iterator(kGolden + "drafters/" + name))
      std::filesystem::copy_file(entry.path(), folder_.file(entry.path().filename().string()));
  }
  void set(const std::string& field, const Json& value) {
    Json config = read_json(folder_.file("config.json"));
    config[field] = value;
    std::ofstream(folder_.file("config.json")) << config.dump();
  }
  const std::string& path() const { return folder_.path(); }
  std::string refusal() const {
    try {
      (void)Choice(path(), true).prepare();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

 private:
  TempFolder folder_;
};

}  // namespace

TEST_CASE("heads propose what torch computes in double precision") {
  const std::array<std::pair<std::string, std::string>, 4> folders = {
      {{"medusa1", "medusa"},
       {"medusa2", "medusa"},
       {"mlp", "mlp-speculator"},
       {"mlp-tied", "mlp-speculator"}}};
  for (const bool is_reference : {true, false}) {
    const auto base = open_folder(kGolden + "models/llama");
    const LoadedConfig model = load_model_config(*base);
    const KvPlan kv_plan = plan_kv_groups(model.config, 64);
    const auto worker =
        load_rank(*base, model, kv_plan, {.is_reference = is_reference, .num_blocks = 8},
                  std::move(make_host_communicators(1).front()));
    for (const auto& [folder, kind] : folders) {
      INFO(folder << (is_reference ? " reference" : " cpu"));
      Choice choice(kGolden + "drafters/" + folder, is_reference);
      std::string name;
      const auto prepared = choice.prepare(&name);
      REQUIRE(prepared != nullptr);
      CHECK(name == kind);
      CHECK(prepared->reads_hidden());
      const auto drafter = prepared->load({.sizes = {.max_running = kMaxRunning},
                                           .lm_head = &worker->lm_head(),
                                           .lm_head_bias = worker->lm_head_bias()});
      const std::vector<Row> rows = golden_rows(kGolden + "drafters/" + folder);
      REQUIRE(rows.size() == kMaxRunning);
      CHECK(prepared->most_drafts() == static_cast<int32_t>(rows.front().wanted.size()));
      const auto memory = drafter->start();
      // Alone and among others, and as many as are wanted.
      for (const size_t together : {size_t{1}, rows.size()}) {
        std::vector<std::vector<int32_t>> drafts(rows.size());
        for (size_t first = 0; first < rows.size(); first += together) {
          std::vector<Drafter::Wanted> wanted;
          for (size_t i = first; i < first + together; ++i) {
            wanted.push_back({.memory = memory.get(),
                              .token_ids = rows[i].text,
                              .max_tokens = static_cast<int32_t>(i % 6),
                              .draft_ids = &drafts[i],
                              .hidden = rows[i].hidden});
          }
          drafter->draft(wanted);
        }
        for (size_t i = 0; i < rows.size(); ++i) {
          std::vector<int32_t> expected = rows[i].wanted;
          expected.resize(std::min(expected.size(), i % 6));
          CHECK(drafts[i] == expected);
        }
      }
      // Of what it does not know the hidden state of it drafts nothing.
      std::vector<int32_t> none = {1};
      const std::array unknown = {Drafter::Wanted{
          .memory = memory.get(), .token_ids = rows[0].text, .max_tokens = 2, .draft_ids = &none}};
      drafter->draft(unknown);
      CHECK(none.empty());
    }
  }
}

TEST_CASE("heads that don't fit are refused by name before their numbers are read") {
  for (const char* name : {"medusa1", "mlp"}) {
    INFO(name);
    const std::string vocabulary = "vocab_size is 98, but the model that it is to draft for has 97";
    {
      ChangedHeads heads(name);
      heads.set("vocab_size", 98);
      CHECK_THAT(heads.refusal(), Catch::Contains(vocabulary));
    }
    {
      ChangedHeads heads(name);
      heads.set("number_of_wings", 2);
      CHECK_THAT(heads.refusal(), Catch::Contains("number_of_wings"));
    }
  }
  {
    ChangedHeads heads("medusa1");
    heads.set("hidden_size", 72);
    CHECK_THAT(heads.refusal(), Catch::Contains("hidden_size is 72"));
  }
  {
    ChangedHeads heads("medusa1");
    heads.set("medusa_num_heads", 4);
    CHECK_THAT(heads.refusal(), Catch::Contains("missing tensors: 3.0.linear.weight"));
  }
  {
    ChangedHeads heads("medusa1");
    heads.set("medusa_num_heads", 2);
    CHECK_THAT(heads.refusal(), Catch::Contains("tensors that nothing reads: 2.0.linear"));
  }
  {
    ChangedHeads heads("mlp");
    heads.set("inner_dim", 41);
    CHECK_THAT(heads.refusal(),
               Catch::Contains("speculator.emb.0.weight: expected (97, 41), got (97, 40)"));
  }
  {
    ChangedHeads heads("mlp");
    heads.set("emb_dim", 64);
    CHECK_THAT(heads.refusal(), Catch::Contains("emb_dim is 64"));
  }
  {
    ChangedHeads heads("mlp");
    std::filesystem::remove(heads.path() + "/model.safetensors");
    CHECK_THAT(heads.refusal(), Catch::Contains("model.safetensors"));
  }
  {
    ChangedHeads heads("medusa2");
    std::filesystem::remove(heads.path() + "/medusa_lm_head.safetensors");
    CHECK_THAT(heads.refusal(), Catch::Contains("medusa_lm_head.safetensors"));
  }
}

TEST_CASE("a draft model of another vocabulary, or that can't go back, is refused by name") {
  const auto refusal = [](const std::string& draft) -> std::string {
    Choice choice(kGolden + "drafters/medusa1", true);
    choice.settings.draft_model = kGolden + draft;
    try {
      (void)choice.prepare();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK_THAT(refusal("models/qwen2"),
             Catch::Contains("its vocabulary is not that of the model: it has 101 tokens"));
  CHECK_THAT(refusal("families/mamba-f32"), Catch::Contains("layers that carry a state"));
  CHECK_THAT(refusal("models/none"), Catch::Contains("models/none"));
  CHECK(refusal("models/llama").empty());
}

TEST_CASE("heads in place of a model name the model that they draft for") {
  CHECK(base_of_speculator(kGolden + "models/llama") == std::nullopt);
  CHECK(base_of_speculator(kGolden) == std::nullopt);
  CHECK(base_of_speculator(kGolden + "drafters/medusa1") == kGolden + "models/llama");
  CHECK(base_of_speculator(kGolden + "drafters/eagle3-speculators") ==
        kGolden + "drafters/eagle3-model");
  CHECK(base_of_speculator(kGolden + "drafters/eagle3-plain") == std::nullopt);
  ChangedHeads heads("mlp");
  heads.set("base_model_name_or_path", "ORG/NAME");
  CHECK(base_of_speculator(heads.path()) == "ORG/NAME");
  heads.set("base_model_name_or_path", nullptr);
  CHECK_THROWS_WITH(base_of_speculator(heads.path()), Catch::Contains("base_model_name_or_path"));
}

}  // namespace tgi::draft_heads_test
