// Heads, layers for the next tokens and EAGLE-3 draft on the CUDA device what they draft on the
// processor, and an answer is the same with them and without.
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
constexpr int32_t kBlocks = 64;

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

// A model and what drafts for it.
class Pair {
 public:
  Pair(const std::string& name, const Setup& setup)
      : setup_(setup),
        files_(open_folder(golden_models(name))),
        model_(load_model_config(*files_)),
        tokenizer_(model_.config.vocab_size) {
    settings_.speculator = setup.speculator;
    if (setup.speculator != kOwnLayer) {
      drafter_files_ = open_folder(golden_models(setup.speculator));
      drafter_config_ = parse_json(drafter_files_->require_text("config.json"));
    }
    const AskedDrafter asked{.settings = settings_,
                             .model = model_,
                             .tokenizer = tokenizer_,
                             .backend = setup.backend,
                             .device = setup.device,
                             .dtype = setup.dtype,
                             .kv_dtype = setup.dtype,
                             .files = drafter_files_.get(),
                             .config = drafter_files_ != nullptr ? &drafter_config_ : nullptr,
                             .model_files = files_.get()};
    for (const DrafterKind* const kind : drafter_kinds()) {
      if (prepared_ == nullptr && kind->is_asked(asked)) prepared_ = kind->prepare(asked);
    }
    REQUIRE(prepared_ != nullptr);
  }

  const ModelConfig& config() const { return model_.config; }
  const Tokenizer& tokenizer() const { return tokenizer_; }

  std::unique_ptr<Worker> load_model() {
    auto device = setup_.backend.make_device(setup_.device);
    REQUIRE(device->info().reports_rows);
    const auto checkpoint = open_checkpoint(*files_);
    ModelWeights weights = load_weights(model_, *checkpoint, *device, {.dtype = setup_.dtype});
    const KvPlan kv_plan = one_kv_group(config());
    allocate_state(*device, config(), kv_plan,
                   {.num_blocks = kBlocks,
                    .kv_dtype = setup_.dtype,
                    .num_slots = kRequests,
                    .max_blocks_per_slot = kBlocks,
                    .max_batch_tokens = kBatchTokens,
                    .max_drafts = 3,
                    .reported_cols = prepared_->reported_rows().cols(config().hidden_size),
                    .pools_rows = prepared_->reads_hidden()});
    auto out =
        std::make_unique<Worker>(config(), std::move(device), std::move(weights),
                                 std::make_unique<NullCommunicator>(), kv_plan, kBatchTokens);
    if (prepared_->reads_hidden()) out->report_hidden();
    out->report_rows(prepared_->reported_rows());
    return out;
  }

  std::unique_ptr<Drafter> load_drafter(const Worker& worker) {
    return prepared_->load({.sizes = {.max_running = kRequests,
                                      .max_batch_tokens = kBatchTokens,
                                      .max_total_tokens = 256,
                                      .num_blocks = kBlocks},
                            .lm_head = &worker.lm_head(),
                            .lm_head_bias = worker.lm_head_bias(),
                            .token_embedding = &worker.token_embedding()});
  }

 private:
  const Setup setup_;
  const std::unique_ptr<FileSource> files_;
  const LoadedConfig model_;
  const ByteTokenizer tokenizer_;
  ipc::ModelSettings settings_;
  std::unique_ptr<FileSource> drafter_files_;
  Json drafter_config_;
  std::unique_ptr<PreparedDrafter> prepared_;
};

Outcome run(const std::string& name, const Setup& setup) {
  Pair pair(name, setup);
  const int32_t vocab_size = pair.config().vocab_size;
  auto worker = pair.load_model();
  std::unique_ptr<Drafter> drafter;
  if (setup.drafts) drafter = pair.load_drafter(*worker);
  EngineOptions options;
  options.scheduler = {.max_running = kRequests, .max_batch_tokens = kBatchTokens};
  options.num_blocks = kBlocks;
  options.vocab_size = vocab_size;
  options.drafts_at_any_price = true;
  std::vector<Answer> answers(kRequests);
  Engine engine(options, std::move(worker), pair.tokenizer(), std::move(drafter));
  for (int32_t i = 0; i < kRequests; ++i) {
    engine.submit(make_request(i, vocab_size),
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
      GENERATE(Names{"drafters/mtp-certain", kOwnLayer},
               Names{"drafters/eagle3-certain-model", "drafters/eagle3-certain"});
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
  // Drafts of "drafters/eagle3-speculators" are some of the model's tokens in an order of their
  // own.
  for (const auto& [model, speculator] :
       {Names{"drafters/mtp-glm4-moe", kOwnLayer}, Names{"drafters/mtp-deepseek3", kOwnLayer},
        Names{"models/llama", "drafters/medusa1"}, Names{"models/llama", "drafters/mlp"},
        Names{"drafters/eagle3-model", "drafters/eagle3-plain"},
        Names{"drafters/eagle3-model", "drafters/eagle3-speculators"}}) {
    INFO(model << ", " << speculator);
    const Outcome wanted = run(model, on_cuda(true, false, speculator));
    const Outcome got = run(model, on_cuda(true, true, speculator));
    CHECK(got.ids == wanted.ids);
    CHECK(wanted.num_drafted == 0);
    CHECK(got.num_drafted > 0);
  }
}

TEST_CASE("heads draft on the CUDA device what torch computes in double precision", "[gpu]") {
  const std::string name = GENERATE("medusa1", "medusa2", "mlp", "mlp-tied");
  INFO(name);
  const std::string folder = "drafters/" + name;
  Pair pair("models/llama", on_cuda(false, true, folder));
  const auto worker = pair.load_model();
  const auto drafter = pair.load_drafter(*worker);
  const auto memory = drafter->start();
  const Json rows = parse_json(open_folder(golden_models(folder))->require_text("golden.json"));
  size_t num_drafts = 0;
  size_t num_right = 0;
  for (size_t first = 0; first < rows.size(); first += kRequests) {
    std::vector<std::vector<float>> hidden;
    std::vector<std::vector<int32_t>> texts;
    std::vector<std::vector<int32_t>> drafts(kRequests);
    for (size_t i = first; i < first + kRequests; ++i) {
      hidden.push_back(rows[i].at("hidden").get<std::vector<float>>());
      texts.push_back({7, rows[i].at("token").get<int32_t>()});
    }
    std::vector<Drafter::Wanted> wanted;
    for (size_t i = 0; i < kRequests; ++i) {
      wanted.push_back({.memory = memory.get(),
                        .token_ids = texts[i],
                        .max_tokens = 2,
                        .draft_ids = &drafts[i],
                        .hidden = hidden[i]});
    }
    drafter->draft(wanted);
    for (size_t i = 0; i < kRequests; ++i) {
      const auto golden = rows[first + i].at("drafts").get<std::vector<int32_t>>();
      REQUIRE(drafts[i].size() == 2);
      for (size_t k = 0; k < 2; ++k) num_right += drafts[i][k] == golden[k] ? 1 : 0;
      num_drafts += 2;
    }
  }
  // The numbers are random: where two logits are next to each other, rounding decides.
  INFO(num_right << " of " << num_drafts);
  CHECK(num_right * 10 >= num_drafts * 9);
}

}  // namespace tgi::cuda_drafters_test
