// Layers that draft by the hidden states of all of a text, beside golden models and texts.
#pragma once

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/file_source.h"
#include "base/files/safetensors_writer.h"
#include "base/known_names.h"
#include "engine/cpu/cpu_backend.h"
#include "engine/runtime/drafters/drafter_kind.h"
#include "engine/text/byte_tokenizer.h"
#include "tests/catch.h"
#include "tests/promises/engine_fixture.h"

namespace tgi {

inline const std::string kDrafters = TGI_SOURCE_DIR "/tests/golden/drafters/";
inline constexpr int32_t kMaxTotalTokens = 64;

inline Json read_json(const std::string& path) {
  std::ifstream file(path);
  return parse_json(std::string(std::istreambuf_iterator<char>(file), {}));
}

struct GoldenText {
  std::vector<int32_t> ids;
  std::vector<float> rows;  // (ids - 1, cols)
  size_t cols = 0;
  std::map<int32_t, std::vector<int32_t>> drafts;  // behind the first so many tokens
};

inline std::vector<GoldenText> golden_texts(const std::string& folder) {
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

// A model, and the layer that drafts for it: of a folder, or its own (kOwnLayer).
struct Loaded {
  Loaded(const std::string& folder,
         std::string_view speculator,
         bool is_reference,
         const DrafterSizes& sizes)
      : files(open_folder(folder)),
        model(load_model_config(*files)),
        tokenizer(model.config.vocab_size) {
    settings.speculator = speculator;
    if (speculator != kOwnLayer) {
      drafter_files = open_folder(settings.speculator);
      json = parse_json(drafter_files->require_text("config.json"));
    }
    Backend& backend = is_reference ? reference_backend() : cpu_backend();
    prepared = prepare(backend);
    const KvPlan kv_plan = plan_kv_groups(model.config, kMaxTotalTokens);
    FixtureOptions options;
    options.is_reference = is_reference;
    options.num_blocks = 16;
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
                             .files = drafter_files.get(),
                             .config = drafter_files != nullptr ? &json : nullptr,
                             .model_files = files.get()};
    for (const DrafterKind* const kind : drafter_kinds()) {
      if (kind->is_asked(asked)) return kind->prepare(asked);
    }
    return nullptr;
  }

  std::unique_ptr<FileSource> files;
  std::unique_ptr<FileSource> drafter_files;  // null: the model's
  Json json;                                  // their config.json
  LoadedConfig model;
  ByteTokenizer tokenizer;
  ipc::ModelSettings settings;
  std::unique_ptr<PreparedDrafter> prepared;
  std::unique_ptr<Worker> worker;
  std::unique_ptr<Drafter> drafter;
};

inline DrafterSizes sizes_of(int32_t max_batch_tokens) {
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

// `folder`: of the golden texts.
inline void check_proposals(const std::string& model,
                            std::string_view speculator,
                            const std::string& folder,
                            bool is_reference,
                            int32_t max_batch_tokens) {
  INFO(folder << (is_reference ? " reference " : " cpu ") << max_batch_tokens);
  Loaded loaded(model, speculator, is_reference, sizes_of(max_batch_tokens));
  Drafter& drafter = *loaded.drafter;
  CHECK(drafter.reads_rows());
  const std::vector<GoldenText> texts = golden_texts(folder);
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

// Copies a folder's checkpoint. `change` is shown each tensor, and says whether to keep it;
// `spoil` the bytes of those that are kept.
inline void copy_checkpoint(
    const std::string& from,
    const std::string& to,
    const std::function<bool(TensorHeader&)>& change,
    const std::function<void(const std::string&, std::vector<std::byte>&)>& spoil = {}) {
  const auto files = open_folder(from);
  const auto checkpoint = open_checkpoint(*files);
  std::vector<TensorHeader> headers;
  std::vector<std::vector<std::byte>> data;
  for (const std::string_view name : checkpoint->names()) {
    const StoredTensor& tensor = *checkpoint->find(name);
    TensorHeader header{std::string(name), std::string(tensor.dtype_name), tensor.shape};
    if (!change(header)) continue;
    const auto bytes = checkpoint->bytes(tensor);
    data.emplace_back(bytes.begin(), bytes.end());
    if (spoil) spoil(header.name, data.back());
    headers.push_back(std::move(header));
  }
  SafetensorsWriter writer(to + "/model.safetensors", headers);
  for (const auto& each : data) writer.append(each);
  writer.finish();
}

}  // namespace tgi
