// Layers for the next tokens and EAGLE-3 draft on the CUDA device what they draft on the processor,
// and an answer is the same with them and without.
#include <memory>
#include <string>
#include <vector>

#include "base/files/file_source.h"
#include "base/json.h"
#include "base/known_names.h"
#include "engine/cpu/cpu_backend.h"
#include "engine/model/architecture.h"
#include "engine/model/model_weights.h"
#include "engine/model/state_layout.h"
#include "engine/runtime/drafters/drafter_kind.h"
#include "engine/runtime/engine.h"
#include "engine/runtime/worker.h"
#include "engine/weights/checkpoint.h"
#include "tests/catch.h"
#include "tests/cuda/emulated_backend.h"
#include "tests/cuda/golden_models.h"
#include "tests/runtime/fake_workers.h"

namespace tgi::cuda_drafters_test {
namespace {

constexpr int32_t kRequests = 4;
constexpr int32_t kNewTokens = 12;
constexpr int32_t kBatchTokens = 48;

struct Setup {
  Backend& backend;
  DeviceOptions device{};
  bool drafts = true;
  DType dtype = DType::kBF16;               // of weights and cache
  std::string_view speculator = kOwnLayer;  // or a folder of the golden drafters
};

struct Outcome {
  std::vector<std::vector<int32_t>> ids;
  int64_t num_drafted = 0;
  int64_t num_skipped = 0;  // drafts that were drawn
};

std::unique_ptr<Request> make_request(int32_t index, int32_t vocab_size) {
  auto request = std::make_unique<Request>();
  request->id = static_cast<uint64_t>(index) + 1;
  for (int32_t i = 0; i < 3 + 20 * (index % 3); ++i) {
    request->prompt_ids.push_back((index * 31 + i * 17 + 1) % vocab_size);
  }
  request->max_new_tokens = kNewTokens;
  request->ignore_eos = true;
  request->details = true;
  request->max_drafts = 3;
  request->accepted_at = Clock::now();
  return request;
}

Outcome run(const std::string& name, const Setup& setup) {
  const auto files = open_folder(golden_models("drafters") + "/" + name);
  const LoadedConfig model = load_model_config(*files);
  const ModelConfig& config = model.config;
  const ByteTokenizer tokenizer(config.vocab_size);
  ipc::ModelSettings settings;
  settings.speculator = setup.speculator;
  std::unique_ptr<FileSource> drafter_files;
  Json drafter_config;
  if (setup.speculator != kOwnLayer) {
    const std::string folder = golden_models("drafters") + "/" + std::string(setup.speculator);
    drafter_files = open_folder(folder);
    drafter_config = parse_json(drafter_files->require_text("config.json"));
  }
  const AskedDrafter asked{.settings = settings,
                           .model = model,
                           .tokenizer = tokenizer,
                           .backend = setup.backend,
                           .device = setup.device,
                           .dtype = setup.dtype,
                           .kv_dtype = setup.dtype,
                           .files = drafter_files.get(),
                           .config = drafter_files != nullptr ? &drafter_config : nullptr,
                           .model_files = files.get()};
  std::unique_ptr<PreparedDrafter> prepared;
  for (const DrafterKind* const kind : drafter_kinds()) {
    if (prepared == nullptr && kind->is_asked(asked)) prepared = kind->prepare(asked);
  }
  REQUIRE(prepared != nullptr);

  auto device = setup.backend.make_device(setup.device);
  REQUIRE(device->info().reports_rows);
  const auto checkpoint = open_checkpoint(*files);
  ModelWeights weights = load_weights(model, *checkpoint, *device, {.dtype = setup.dtype});
  constexpr int32_t kBlocks = 64;
  allocate_state(*device, config, one_kv_group(config),
                 {.num_blocks = kBlocks,
                  .kv_dtype = setup.dtype,
                  .num_slots = kRequests,
                  .max_blocks_per_slot = kBlocks,
                  .max_batch_tokens = kBatchTokens,
                  .max_drafts = 3,
                  .reported_cols = prepared->reported_rows().cols(config.hidden_size)});
  auto worker = std::make_unique<Worker>(config, std::move(device), std::move(weights),
                                         std::make_unique<NullCommunicator>(), one_kv_group(config),
                                         kBatchTokens);
  worker->report_rows(prepared->reported_rows());
  std::unique_ptr<Drafter> drafter;
  if (setup.drafts) {
    drafter = prepared->load({.sizes = {.max_running = kRequests,
                                        .max_batch_tokens = kBatchTokens,
                                        .max_total_tokens = 256,
                                        .num_blocks = kBlocks},
                              .lm_head = &worker->lm_head(),
                              .lm_head_bias = worker->lm_head_bias(),
                              .token_embedding = &worker->token_embedding()});
  }
  EngineOptions options;
  options.scheduler = {.max_running = kRequests, .max_batch_tokens = kBatchTokens};
  options.num_blocks = kBlocks;
  options.vocab_size = config.vocab_size;
  options.drafts_at_any_price = true;
  std::vector<Answer> answers(kRequests);
  Engine engine(options, std::move(worker), tokenizer, std::move(drafter));
  for (int32_t i = 0; i < kRequests; ++i) {
    engine.submit(make_request(i, config.vocab_size),
                  std::make_unique<AnswerSink>(answers[static_cast<size_t>(i)]));
  }
  Outcome out;
  for (Answer& answer : answers) {
    REQUIRE(answer.wait_for_end(400000));
    if (answer.error) FAIL(answer.error->what());
    std::vector<int32_t>& ids = out.ids.emplace_back();
    for (const ipc::TokenInfo& token : answer.done->best.tokens) ids.push_back(token.id);
  }
  out.num_drafted = engine.stats().counters.num_drafted_tokens;
  out.num_skipped = engine.stats().counters.num_skipped_tokens;
  return out;
}

struct Names {
  std::string model;
  std::string_view speculator;
};

Setup on_cuda(bool deterministic, bool drafts = true, std::string_view speculator = kOwnLayer) {
  Setup out{.backend = cuda::tested_backend(), .drafts = drafts, .speculator = speculator};
  out.device.deterministic = deterministic;
  return out;
}

}  // namespace

TEST_CASE("what drafts by hidden states drafts on the CUDA device what it drafts on the processor",
          "[gpu]") {
  const auto [model, speculator] =
      GENERATE(Names{"mtp-certain", kOwnLayer}, Names{"eagle3-certain-model", "eagle3-certain"});
  INFO(model);
  // What the next token follows from is clear: no rounding changes it.
  Setup on_cpu{.backend = cpu_backend(), .speculator = speculator};
  on_cpu.device.num_threads = 1;
  const Outcome wanted = run(model, on_cpu);
  const Outcome captured = run(model, on_cuda(false, true, speculator));
  const Outcome deterministic = run(model, on_cuda(true, true, speculator));
  CHECK(captured.ids == wanted.ids);
  CHECK(deterministic.ids == wanted.ids);
  CHECK(wanted.num_skipped > 0);
  for (const Outcome* const got : {&captured, &deterministic}) {
    CHECK(got->num_drafted > 10);
    CHECK(got->num_skipped * 10 > got->num_drafted * 7);
  }
}

TEST_CASE("deterministic: answers are the same with what drafts by hidden states and without",
          "[gpu]" TGI_NOT_UNDER_SANITIZERS) {
  // Drafts of "eagle3-speculators" are some of the model's tokens in an order of their own.
  for (const auto& [model, speculator] :
       {Names{"mtp-glm4-moe", kOwnLayer}, Names{"mtp-deepseek3", kOwnLayer},
        Names{"eagle3-model", "eagle3-plain"}, Names{"eagle3-model", "eagle3-speculators"}}) {
    INFO(model << ", " << speculator);
    const Outcome wanted = run(model, on_cuda(true, false, speculator));
    const Outcome got = run(model, on_cuda(true, true, speculator));
    CHECK(got.ids == wanted.ids);
    CHECK(wanted.num_drafted == 0);
    CHECK(got.num_drafted > 0);
  }
}

}  // namespace tgi::cuda_drafters_test
