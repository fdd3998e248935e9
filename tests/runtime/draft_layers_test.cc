// Layers that draft by the hidden states of all of a text propose what torch computes in double
// precision, on every device, however a text is shown to them; and checkpoints that don't fit are
// refused before their numbers are read.
#include <array>
#include <fstream>
#include <functional>
#include <map>
#include <random>

#include "base/files/file_source.h"
#include "base/files/safetensors_writer.h"
#include "base/known_names.h"
#include "engine/cpu/cpu_backend.h"
#include "engine/runtime/drafters/drafter_kind.h"
#include "engine/text/byte_tokenizer.h"
#include "tests/catch.h"
#include "tests/promises/engine_fixture.h"
#include "tests/temp_folder.h"

namespace tgi::draft_layers_test {
namespace {

const std::string kGolden = TGI_SOURCE_DIR "/tests/golden/drafters/";
constexpr int32_t kMaxTotalTokens = 64;

Json read_json(const std::string& path) {
  std::ifstream file(path);
  return parse_json(std::string(std::istreambuf_iterator<char>(file), {}));
}

struct GoldenText {
  std::vector<int32_t> ids;
  std::vector<float> rows;  // (ids - 1, cols)
  size_t cols = 0;
  std::map<int32_t, std::vector<int32_t>> drafts;  // behind the first so many tokens
};

std::vector<GoldenText> golden_texts(const std::string& folder) {
  std::vector<GoldenText> out;
  for (const Json& json : read_json(folder + "/golden.json")) {
    GoldenText& text = out.emplace_back();
    text.ids = json.at("text").get<std::vector<int32_t>>();
    for (const Json& row : json.at("hidden")) {
      const auto values = row.get<std::vector<float>>();
      text.cols = values.size();
      text.rows.insert(text.rows.end(), values.begin(), values.end());
    }
    for (const auto& [length, drafts] : json.at("drafts").items()) {
      text.drafts[std::stoi(length)] = drafts.get<std::vector<int32_t>>();
    }
  }
  return out;
}

// A model of the golden folder, and the layer that drafts for it.
struct Loaded {
  Loaded(const std::string& folder, bool is_reference, const DrafterSizes& sizes)
      : files(open_folder(folder)),
        model(load_model_config(*files)),
        tokenizer(model.config.vocab_size) {
    settings.speculator = kOwnLayer;
    Backend& backend = is_reference ? reference_backend() : cpu_backend();
    prepared = prepare(backend);
    const KvPlan kv_plan = plan_kv_groups(model.config, kMaxTotalTokens);
    FixtureOptions options;
    options.is_reference = is_reference;
    options.num_blocks = 8;
    worker =
        load_rank(*files, model, kv_plan, options, std::move(make_host_communicators(1).front()));
    drafter = prepared->load({.sizes = sizes,
                              .lm_head = &worker->lm_head(),
                              .lm_head_bias = worker->lm_head_bias(),
                              .token_embedding = &worker->token_embedding()});
  }

  std::unique_ptr<PreparedDrafter> prepare(Backend& backend) const {
    const AskedDrafter asked{.settings = settings,
                             .model = model,
                             .tokenizer = tokenizer,
                             .backend = backend,
                             .device = {.num_threads = 2},
                             .dtype = DType::kF32,
                             .kv_dtype = DType::kF32,
                             .model_files = files.get()};
    for (const DrafterKind* const kind : drafter_kinds()) {
      if (kind->is_asked(asked)) return kind->prepare(asked);
    }
    return nullptr;
  }

  std::unique_ptr<FileSource> files;
  LoadedConfig model;
  ByteTokenizer tokenizer;
  ipc::ModelSettings settings;
  std::unique_ptr<PreparedDrafter> prepared;
  std::unique_ptr<Worker> worker;
  std::unique_ptr<Drafter> drafter;
};

DrafterSizes sizes_of(int32_t max_batch_tokens) {
  return {.max_running = 4,
          .max_batch_tokens = max_batch_tokens,
          .max_total_tokens = kMaxTotalTokens,
          .num_blocks = 16};
}

// A text and how much of it was shown.
struct Shown {
  const GoldenText* golden = nullptr;
  std::unique_ptr<Drafter::Memory> memory;
  int32_t length = 1;  // tokens
  SamplingParams sampling{};

  // Rows from `first` on, up to the one before the last of `to` tokens.
  Drafter::Computed rows(int32_t first, int32_t to) const {
    const auto at = static_cast<size_t>(first) * golden->cols;
    return {
        .memory = memory.get(),
        .token_ids = std::span(golden->ids).first(static_cast<size_t>(to)),
        .first_token = first,
        .rows =
            std::span(golden->rows).subspan(at, static_cast<size_t>(to - 1) * golden->cols - at),
        .sampling = &sampling};
  }
  Drafter::Wanted wanted(int32_t max_tokens, std::vector<int32_t>& drafts) const {
    return {.memory = memory.get(),
            .token_ids = std::span(golden->ids).first(static_cast<size_t>(length)),
            .max_tokens = max_tokens,
            .draft_ids = &drafts,
            .sampling = &sampling};
  }
};

void check_proposals(const std::string& name, bool is_reference, int32_t max_batch_tokens) {
  INFO(name << (is_reference ? " reference " : " cpu ") << max_batch_tokens);
  Loaded loaded(kGolden + name, is_reference, sizes_of(max_batch_tokens));
  Drafter& drafter = *loaded.drafter;
  CHECK(drafter.reads_rows());
  const std::vector<GoldenText> texts = golden_texts(kGolden + name);
  std::mt19937 random(static_cast<uint32_t>(max_batch_tokens));
  int num_checked = 0;
  // Some at once, in pieces of any length, one after the other begun anew.
  std::vector<Shown> shown;
  for (size_t i = 0; i < 3; ++i) shown.push_back({.golden = &texts[i], .memory = drafter.start()});
  for (int turn = 0; turn < 60; ++turn) {
    std::vector<Drafter::Computed> computed;
    for (Shown& each : shown) {
      const auto all = static_cast<int32_t>(each.golden->ids.size());
      if (each.length == all) {
        each.length = 1;
        if (turn % 2 == 0) each.memory = drafter.start();
      }
      // Once more what was shown already, as after a preemption.
      const int32_t first =
          turn % 7 == 6 ? static_cast<int32_t>(random() % static_cast<uint32_t>(each.length))
                        : each.length - 1;
      const auto count = static_cast<int32_t>(turn % 3 == 0 ? random() % 30 + 1 : random() % 3 + 1);
      each.length = std::min(each.length + count, all);
      computed.push_back(each.rows(first, each.length));
    }
    drafter.read(computed);
    if (turn % 4 == 1) continue;  // nothing is drafted
    std::vector<std::vector<int32_t>> drafts(shown.size());
    std::vector<Drafter::Wanted> wanted;
    const auto max_tokens = static_cast<int32_t>(random() % 5);
    for (size_t i = 0; i < shown.size(); ++i) {
      wanted.push_back(shown[i].wanted(std::min(max_tokens, 4), drafts[i]));
    }
    drafter.draft(wanted);
    for (size_t i = 0; i < shown.size(); ++i) {
      const auto found = shown[i].golden->drafts.find(shown[i].length);
      if (found == shown[i].golden->drafts.end()) continue;
      std::vector<int32_t> expected = found->second;
      expected.resize(static_cast<size_t>(std::min(max_tokens, 4)));
      INFO("turn " << turn << ", text " << i << " of " << shown[i].length << " tokens");
      CHECK(drafts[i] == expected);
      num_checked += expected.empty() ? 0 : 1;
    }
  }
  CHECK(num_checked > 60);
}

// A copy of a golden model with something changed.
std::string refusal(const std::function<void(Json&)>& change_config,
                    const std::function<bool(TensorHeader&)>& keep) {
  const TempFolder folder;
  const std::string from = kGolden + "mtp-glm4-moe";
  Json config = read_json(from + "/config.json");
  change_config(config);
  std::ofstream(folder.file("config.json")) << config.dump();
  const auto files = open_folder(from);
  const auto checkpoint = open_checkpoint(*files);
  std::vector<TensorHeader> headers;
  std::vector<std::vector<std::byte>> data;
  for (const std::string_view name : checkpoint->names()) {
    const StoredTensor& tensor = *checkpoint->find(name);
    TensorHeader header{std::string(name), std::string(tensor.dtype_name), tensor.shape};
    if (!keep(header)) continue;
    const auto bytes = checkpoint->bytes(tensor);
    data.emplace_back(bytes.begin(), bytes.end());
    headers.push_back(std::move(header));
  }
  SafetensorsWriter writer(folder.file("model.safetensors"), headers);
  for (const auto& each : data) writer.append(each);
  writer.finish();
  try {
    Loaded(folder.path(), false, sizes_of(64));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a layer for the next tokens proposes what torch computes in double precision") {
  for (const char* name : {"mtp-glm4-moe", "mtp-deepseek3", "mtp-glm4-moe-lite"}) {
    check_proposals(name, true, 64);
    check_proposals(name, false, 64);
    check_proposals(name, false, 7);  // rows of a pass
  }
}

TEST_CASE("behind a gap a layer that drafts begins anew, and without rows it drafts nothing") {
  const std::string folder = kGolden + "mtp-glm4-moe";
  Loaded loaded(folder, false, sizes_of(64));
  const std::vector<GoldenText> texts = golden_texts(folder);
  Shown shown{.golden = &texts[0], .memory = loaded.drafter->start(), .length = 30};
  std::vector<int32_t> drafts = {1};
  const auto draft = [&] {
    const std::array wanted = {shown.wanted(2, drafts)};
    loaded.drafter->draft(wanted);
  };
  draft();
  CHECK(drafts.empty());
  // A prefix was cached.
  const std::array begin = {shown.rows(20, 30)};
  loaded.drafter->read(begin);
  draft();
  CHECK(drafts.size() == 2);
  const std::vector<int32_t> behind_gap = drafts;
  // Rows that do not reach to the text's end are no reason to draft.
  shown.length = 33;
  draft();
  CHECK(drafts.empty());
  // The same rows behind another gap are the same text to it.
  const std::array elsewhere = {shown.rows(2, 10)};
  loaded.drafter->read(elsewhere);
  shown.length = 30;
  loaded.drafter->read(begin);
  draft();
  CHECK(drafts == behind_gap);
}

TEST_CASE("layers for the next tokens that don't fit are refused by name") {
  const auto same = [](Json&) {};
  const auto all = [](TensorHeader&) { return true; };
  CHECK(refusal(same, all).empty());
  const auto without = [](const std::string& name) {
    return [name](TensorHeader& tensor) { return tensor.name != name; };
  };
  CHECK_THAT(refusal(same, without("model.layers.2.eh_proj.weight")),
             Catch::Contains("(MTP)") && Catch::Contains("model.layers.2.eh_proj.weight"));
  CHECK_THAT(refusal(same, without("model.layers.2.mlp.experts.3.up_proj.weight")),
             Catch::Contains("missing: model.layers.2.mlp.experts.3.up_proj.weight"));
  CHECK(refusal(same, without("model.layers.2.embed_tokens.weight")).empty());
  CHECK_THAT(refusal(same,
                     [](TensorHeader& tensor) {
                       if (tensor.name == "model.layers.2.hnorm.weight") {
                         tensor.name = "model.layers.2.hidden_norm.weight";
                       }
                       return true;
                     }),
             Catch::Contains("model.layers.2.hidden_norm.weight") &&
                 Catch::Contains("model.layers.2.hnorm.weight"));
  CHECK_THAT(refusal(same,
                     [](TensorHeader& tensor) {
                       if (tensor.name == "model.layers.2.enorm.weight") tensor.shape = {12, 2};
                       return true;
                     }),
             Catch::Contains("model.layers.2.enorm.weight"));
  const auto count = [](int count) {
    return [count](Json& config) { config["num_nextn_predict_layers"] = count; };
  };
  CHECK_THAT(refusal(count(0), all), Catch::Contains("num_nextn_predict_layers is 0"));
  CHECK_THAT(refusal(count(2), all), Catch::Contains("num_nextn_predict_layers is 2"));
  CHECK_THROWS_WITH(Loaded(TGI_SOURCE_DIR "/tests/golden/models/llama", false, sizes_of(64)),
                    Catch::Contains("no layer for the next tokens"));
}

}  // namespace tgi::draft_layers_test
