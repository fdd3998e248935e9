// Adapters on a GPU in 16 bits: sequences of several adapters and of the base model in one batch
// say what they say on the CPU in f32, also when another adapter has taken a place between two
// steps, and in captured steps what they say in steps by themselves.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/cpu/cpu_backend.h"
#include "engine/lora/adapter_parts.h"
#include "engine/model/state_layout.h"
#include "engine/runtime/worker.h"
#include "tests/catch.h"
#include "tests/cuda/emulated_backend.h"
#include "tests/cuda/golden_models.h"

namespace tgi {
namespace {

constexpr int32_t kMaxTokens = 64;
constexpr int32_t kNumSlots = 4;
constexpr int32_t kNumTokens = 20;

class AdapterWorker {
 public:
  AdapterWorker(Backend& backend, const std::string& base, DType dtype, bool deterministic = false)
      : base_files_(open_folder(base)),
        model_(load_model_config(*base_files_)),
        checkpoint_(open_checkpoint(*base_files_)) {
    DeviceOptions options;
    options.dtype = dtype;
    options.num_threads = 1;
    options.deterministic = deterministic;
    auto device = backend.make_device(options);
    REQUIRE(device->info().takes_adapters);
    ModelWeights weights =
        load_weights(model_, *checkpoint_, *device, {.dtype = dtype, .takes_adapters = true});
    allocate_state(*device, model_.config, one_kv_group(model_.config),
                   {.num_blocks = 16,
                    .kv_dtype = dtype,
                    .num_slots = kNumSlots,
                    .max_blocks_per_slot = 4,
                    .max_batch_tokens = kMaxTokens,
                    .max_adapters = 3});
    worker_ = std::make_unique<Worker>(model_.config, std::move(device), std::move(weights),
                                       std::make_unique<NullCommunicator>(),
                                       one_kv_group(model_.config), kMaxTokens);
  }

  void put(int32_t place, const std::string& adapter) {
    files_.push_back(open_folder(golden_models("adapters/" + adapter)));
    opened_.push_back(
        std::make_unique<AdapterFiles>(open_adapter(*files_.back(), model_, checkpoint_.get())));
    const AdapterParts parts = {adapter_parts(*opened_.back(), model_, {})};
    auto made = worker_->make_adapter(parts);
    CHECK(made->size_bytes == worker_->adapter_bytes(parts));
    worker_->set_adapter(place, made.get());
    made_.push_back(std::move(made));
  }

  // One sequence for each of `places`: tokens that are the same for all, first the prompt, then one
  // by one; the log-probability of each next token, sequence by sequence. `draws`: of the likeliest
  // next token instead, in all but the first step, which then are of the kind that is captured.
  std::vector<std::vector<float>> score(const std::vector<int32_t>& places, bool draws = false) {
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < kNumTokens; ++i) {
      ids.push_back((3 + 7 * i + i * i) % model_.config.vocab_size);
    }
    std::vector<std::vector<float>> out(places.size());
    run(places, ids, 0, 8, false, out);
    for (int32_t i = 8; i + 1 < kNumTokens; ++i) run(places, ids, i, i + 1, draws, out);
    return out;
  }

 private:
  void run(const std::vector<int32_t>& places,
           const std::vector<int32_t>& ids,
           int32_t begin,
           int32_t end,
           bool draws,
           std::vector<std::vector<float>>& out) {
    Batch batch;
    batch.clear();
    for (int32_t slot = 0; slot < static_cast<int32_t>(places.size()); ++slot) {
      if (begin == 0) {
        batch.slot_starts.push_back({.slot = slot,
                                     .sampling = {},
                                     .token_ids = ids,
                                     .num_prompt_tokens = 1,
                                     .adapter = places[static_cast<size_t>(slot)]});
      }
      for (int32_t i = begin; i < end; ++i) {
        if (i % 16 == 0) {
          batch.block_appends.push_back(
              {.slot = slot, .index = i / 16, .block = 15 - 4 * slot - i / 16});
        }
        if (draws) {
          batch.sample_rows.push_back({.row = batch.num_tokens(), .slot = slot, .position = i + 1});
        } else {
          batch.score_rows.push_back(
              {.row = batch.num_tokens(), .target_id = ids[static_cast<size_t>(i) + 1]});
        }
        batch.token_ids.push_back(ids[static_cast<size_t>(i)]);
        batch.positions.push_back(i);
      }
      batch.slots.push_back(slot);
      batch.cu_seqlens_q.push_back(batch.num_tokens());
      batch.context_lens.push_back(end);
    }
    const StepResult& result = run_step(*worker_, batch);
    const auto each = static_cast<size_t>(end - begin);
    for (size_t i = 0; i < result.scores.size(); ++i) out[i / each].push_back(result.scores[i]);
    for (size_t i = 0; i < result.sampled.size(); ++i) {
      out[i].push_back(result.sampled[i].token.logprob);
    }
  }

  const std::unique_ptr<FileSource> base_files_;
  const LoadedConfig model_;
  const std::unique_ptr<Checkpoint> checkpoint_;
  std::vector<std::unique_ptr<FileSource>> files_;
  std::vector<std::unique_ptr<AdapterFiles>> opened_;
  std::vector<std::unique_ptr<Adapter>> made_;  // outlive the steps that use them
  std::unique_ptr<Worker> worker_;
};

double worst(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double out = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    out = std::max(out, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return out;
}

}  // namespace

TEST_CASE("adapters on the CUDA device say what they say on the CPU, but for 16 bits", "[gpu]") {
  const std::string base = golden_models("models/llama");
  const std::vector<int32_t> places = {1, 0, 2, 1};
  AdapterWorker cpu(cpu_backend(), base, DType::kF32);
  cpu.put(1, "llama");
  cpu.put(2, "llama-lm-head");
  const auto wanted = cpu.score(places);
  REQUIRE(worst(wanted[0], wanted[1]) > 0.1);
  REQUIRE(worst(wanted[0], wanted[2]) > 0.1);
  cpu.put(1, "llama-all-linear-rslora");
  const auto wanted_later = cpu.score(places);
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    INFO(dtype_name(dtype));
    const double allowed = dtype == DType::kBF16 ? 0.2 : 0.03;
    AdapterWorker gpu(cuda::tested_backend(), base, dtype);
    gpu.put(1, "llama");
    gpu.put(2, "llama-lm-head");
    const auto got = gpu.score(places);
    for (size_t i = 0; i < places.size(); ++i) CHECK(worst(got[i], wanted[i]) < allowed);
    gpu.put(1, "llama-all-linear-rslora");
    const auto later = gpu.score(places);
    for (size_t i = 0; i < places.size(); ++i) CHECK(worst(later[i], wanted_later[i]) < allowed);
    // Those of the base model have the bits that they had.
    CHECK(later[1] == got[1]);
  }
}

// Kernels of adapters are in the captured steps of those alone that have one.
TEST_CASE("captured steps with adapters, and without between them, say what steps by themselves do",
          "[gpu]") {
  const std::string base = golden_models("models/llama");
  const std::vector<std::vector<int32_t>> turns = {
      {0, 0, 0, 0}, {1, 0, 2, 1}, {0, 0, 0, 0}, {2, 2}};
  AdapterWorker captured(cuda::tested_backend(), base, DType::kF16);
  AdapterWorker alone(cuda::tested_backend(), base, DType::kF16, true);
  std::vector<std::vector<std::vector<float>>> seen;
  for (AdapterWorker* const worker : {&captured, &alone}) {
    worker->put(1, "llama");
    worker->put(2, "llama-lm-head");
    for (const std::vector<int32_t>& places : turns) seen.push_back(worker->score(places, true));
  }
  REQUIRE(worst(seen[1][0], seen[1][1]) > 0.02);
  REQUIRE(worst(seen[1][2], seen[1][1]) > 0.02);
  for (size_t turn = 0; turn < turns.size(); ++turn) {
    for (size_t i = 0; i < turns[turn].size(); ++i) {
      INFO("turn " << turn << ", sequence " << i);
      CHECK(worst(seen[turn][i], seen[turn + turns.size()][i]) < 0.005);
    }
  }
  CHECK(seen[2] == seen[0]);
}

TEST_CASE("adapters of other families say on the CUDA device what they say on the CPU", "[gpu]") {
  for (const char* const name :
       {"gpt2", "falcon", "phi3-rank-1", "llama-rank-256", "lfm2", "qwen3-moe-experts",
        "gpt-oss-experts", "mixtral-experts", "llama-dora", "llama-lora-bias", "gpt2-bias-all",
        "qwen2-tied-embedding", "gemma2-embedding", "deepseek2-kv"}) {
    INFO(name);
    const auto files = open_folder(golden_models(std::string("adapters/") + name));
    const Json expected = parse_json(files->require_text("expected.json"), 16);
    const std::string base = golden_models(expected.at("base").get<std::string>());
    AdapterWorker cpu(cpu_backend(), base, DType::kF32);
    AdapterWorker gpu(cuda::tested_backend(), base, DType::kF16);
    for (AdapterWorker* const each : {&cpu, &gpu}) each->put(1, name);
    const auto wanted = cpu.score({1, 0});
    const auto got = gpu.score({1, 0});
    CHECK(worst(wanted[0], wanted[1]) > 0.05);
    for (size_t i = 0; i < 2; ++i) CHECK(worst(got[i], wanted[i]) < 0.06);
  }
}

}  // namespace tgi
