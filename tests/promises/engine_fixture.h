// A real model on a real device behind an engine, without a tokenizer: prompts and answers are
// token ids.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files/file_source.h"
#include "base/log.h"
#include "engine/cpu/cpu_backend.h"
#include "engine/cpu/host_communicator.h"
#include "engine/model/architecture.h"
#include "engine/model/model_weights.h"
#include "engine/model/state_layout.h"
#include "engine/runtime/adapter_store.h"
#include "engine/runtime/engine.h"
#include "engine/runtime/rank_group.h"
#include "engine/text/byte_tokenizer.h"
#include "engine/weights/checkpoint.h"
#include "tests/catch.h"
#include "tests/runtime/fake_workers.h"

namespace tgi {

struct FixtureOptions {
  DType dtype = DType::kF32;
  Quantization quantization = Quantization::kNone;
  std::optional<DType> kv_dtype{};  // empty: as dtype
  bool is_reference = false;        // in place of the cpu device
  std::string isa = "auto";
  int num_ranks = 1;
  int num_threads = 2;          // of each rank
  bool random_weights = false;  // in place of the files'
  int32_t max_batch_tokens = 512;
  int32_t max_running = 32;
  int32_t num_blocks = 512;
  int32_t max_active_adapters = 0;
  int64_t adapter_bytes = int64_t{1} << 30;
  std::string base{};  // the model's folder, for adapters that bring copies of its head
  bool lorax_merging = false;
  int32_t max_drafts = 0;
  ReportedRows reported_rows{};             // by the first rank
  std::function<void(Worker&)> on_first{};  // of the first rank, before it is used
};

struct LoadedFixture {
  LoadedConfig model;
  KvPlan kv_plan;
  std::unique_ptr<RankGroup> workers;
};

// A rank and what it holds of the model.
inline std::unique_ptr<Worker> load_rank(const FileSource& files,
                                         const LoadedConfig& model,
                                         const KvPlan& kv_plan,
                                         const FixtureOptions& options,
                                         std::unique_ptr<Communicator> communicator) {
  const ModelConfig& config = model.config;
  auto device = options.is_reference ? make_reference_device(options.num_ranks)
                                     : make_cpu_device({.isa = options.isa,
                                                        .num_threads = options.num_threads,
                                                        .may_oversubscribe = true});
  const auto checkpoint =
      options.random_weights ? make_dummy_checkpoint(model, 1) : open_checkpoint(files);
  ModelWeights weights = load_weights(model, *checkpoint, *device,
                                      {.dtype = options.dtype,
                                       .quantization = options.quantization,
                                       .rank = communicator->rank(),
                                       .world_size = options.num_ranks,
                                       .takes_adapters = options.max_active_adapters > 0});
  allocate_state(*device, config, kv_plan,
                 {.num_ranks = options.num_ranks,
                  .num_blocks = options.num_blocks,
                  .kv_dtype = options.kv_dtype.value_or(options.dtype),
                  .num_slots = options.max_running,
                  .max_blocks_per_slot = options.num_blocks,
                  .max_batch_tokens = options.max_batch_tokens,
                  .max_adapters = options.max_active_adapters,
                  .max_drafts = options.max_drafts,
                  .reported_cols = options.reported_rows.cols(config.hidden_size)});
  auto worker =
      std::make_unique<Worker>(config, std::move(device), std::move(weights),
                               std::move(communicator), kv_plan, options.max_batch_tokens);
  worker->report_rows(options.reported_rows);
  return worker;
}

inline LoadedFixture load_workers(const FileSource& files, const FixtureOptions& options) {
  LoadedFixture out;
  out.model = load_model_config(files);
  out.kv_plan = plan_kv_groups(out.model.config, options.num_blocks * 16);
  auto threads = std::make_unique<RankThreads>(options.num_ranks);
  auto communicators = make_host_communicators(options.num_ranks);
  std::vector<std::unique_ptr<WorkerGroup>> workers(communicators.size());
  threads->run([&](int rank) {
    const auto index = static_cast<size_t>(rank);
    auto worker =
        load_rank(files, out.model, out.kv_plan, options, std::move(communicators[index]));
    if (rank == 0 && options.on_first) options.on_first(*worker);
    workers[index] = std::move(worker);
  });
  out.workers = std::make_unique<RankGroup>(std::move(threads), std::move(workers));
  return out;
}

// Log-probabilities of the whole vocabulary after each of the wanted positions, from one step over
// all tokens. `adapter`: its place on the device.
inline std::vector<std::vector<double>> all_logprobs(WorkerGroup& workers,
                                                     const std::vector<int32_t>& token_ids,
                                                     const std::vector<int32_t>& positions,
                                                     int32_t vocab_size,
                                                     int32_t num_groups,
                                                     int32_t adapter = 0) {
  Batch batch;
  batch.clear();
  const auto count = static_cast<int32_t>(token_ids.size());
  SamplingParams sampling;
  sampling.top_n_tokens = vocab_size;
  batch.slot_starts.push_back({.slot = 0,
                               .sampling = sampling,
                               .token_ids = token_ids,
                               .num_prompt_tokens = count,
                               .adapter = adapter});
  for (int32_t i = 0; i < count; ++i) {
    batch.token_ids.push_back(token_ids[static_cast<size_t>(i)]);
    batch.positions.push_back(i);
  }
  // Not the identity: a block table that is ignored would show.
  for (int32_t i = 0; i <= count / 16; ++i) {
    for (int32_t group = 0; group < num_groups; ++group) {
      batch.block_appends.push_back(
          {.slot = 0, .index = i, .block = 200 - i * num_groups - group, .group = group});
    }
  }
  batch.slots.push_back(0);
  batch.cu_seqlens_q.push_back(count);
  batch.context_lens.push_back(count);
  for (const int32_t position : positions) {
    batch.sample_rows.push_back({.row = position, .slot = 0, .position = position + 1});
  }
  const StepResult& result = run_step(workers, batch);
  std::vector<std::vector<double>> out;
  for (const SampledToken& sampled : result.sampled) {
    REQUIRE(sampled.top_tokens.size() == static_cast<size_t>(vocab_size));
    std::vector<double> row(static_cast<size_t>(vocab_size));
    for (const TokenScore& token : sampled.top_tokens)
      row[static_cast<size_t>(token.id)] = token.logprob;
    out.push_back(std::move(row));
  }
  return out;
}

// Token ids and the bits of their log-probabilities: equal only when every bit of the computation
// was.
struct Generated {
  std::vector<int32_t> ids;
  std::vector<double> logprobs;
  int64_t num_cached = 0;
  bool operator==(const Generated& other) const {
    return ids == other.ids && logprobs == other.logprobs;
  }
};

struct Asked {
  std::vector<int32_t> prompt_ids;
  int32_t max_new_tokens = 16;
  SamplingParams sampling;
  std::shared_ptr<const HostAdapter> adapter{};  // (optional)
};

class EngineFixture {
 public:
  EngineFixture(const FileSource& files, const FixtureOptions& options) {
    LoadedFixture loaded = load_workers(files, options);
    tokenizer_ = std::make_unique<ByteTokenizer>(loaded.model.config.vocab_size);
    EngineOptions engine;
    engine.scheduler = {.max_running = options.max_running,
                        .max_batch_tokens = options.max_batch_tokens,
                        .shares_prefixes = !has_state(loaded.model.config)};
    engine.num_blocks = options.num_blocks;
    engine.kv_groups = loaded.kv_plan.groups;
    engine.vocab_size = loaded.model.config.vocab_size;
    engine.adapters = {.memory_bytes = options.adapter_bytes,
                       .max_active = options.max_active_adapters,
                       .cycle_time = std::chrono::milliseconds(5)};
    engine_ = std::make_unique<Engine>(engine, std::move(loaded.workers), *tokenizer_);
    adapters_ = std::make_unique<AdapterStore>(
        std::move(loaded.model), LoadWeightsOptions{.dtype = options.dtype}, options.num_ranks,
        options.base, *engine_, options.lorax_merging);
  }

  // All at once; the answers in the order asked.
  std::vector<Generated> generate(const std::vector<Asked>& asked, bool use_prefix_cache = true) {
    answers_.clear();
    for (const Asked& each : asked) {
      auto request = std::make_unique<Request>();
      request->id = ++last_id_;
      request->prompt_ids = each.prompt_ids;
      request->max_new_tokens = each.max_new_tokens;
      request->sampling = each.sampling;
      request->adapter = each.adapter;
      request->ignore_eos = true;
      request->details = true;
      request->use_prefix_cache = use_prefix_cache;
      request->accepted_at = Clock::now();
      answers_.push_back(std::make_unique<Answer>());
      engine_->submit(std::move(request), std::make_unique<AnswerSink>(*answers_.back()));
    }
    std::vector<Generated> out;
    for (const auto& answer : answers_) {
      REQUIRE(answer->wait_for_end(120000));
      REQUIRE(answer->done);
      Generated generated;
      for (const ipc::TokenInfo& token : answer->done->best.tokens) {
        generated.ids.push_back(token.id);
        generated.logprobs.push_back(token.logprob.value_or(1.0));
      }
      generated.num_cached = answer->done->num_cached_tokens;
      out.push_back(std::move(generated));
    }
    return out;
  }

  Generated generate_one(const Asked& asked, bool use_prefix_cache = true) {
    return generate({asked}, use_prefix_cache).front();
  }

  Engine& engine() { return *engine_; }
  AdapterStore& adapters() { return *adapters_; }

 private:
  std::unique_ptr<ByteTokenizer> tokenizer_;
  // Outlive the engine, which still tells them of its end when a test gives up on it.
  std::vector<std::unique_ptr<Answer>> answers_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<AdapterStore> adapters_;
  uint64_t last_id_ = 0;
};

// Those of `kind`: models, one for each trait of a loader, or families, for each trait of a family.
inline std::vector<std::string> golden_model_folders(const std::string& kind = "models") {
  std::vector<std::string> out;
  for (const auto& entry :
       std::filesystem::directory_iterator(TGI_SOURCE_DIR "/tests/golden/" + kind)) {
    if (entry.is_directory()) out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  REQUIRE(out.size() >= 19);
  return out;
}

}  // namespace tgi
