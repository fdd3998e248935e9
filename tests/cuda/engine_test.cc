// The engine over the CUDA device on an emulated GPU: two steps in flight, captured steps, tokens
// that stay on the device, preemption, and a GPU that is lost.
#include <cuda_emulation.h>
#include <chrono>
#include <string_view>
#include <thread>

#include "base/files/file_source.h"
#include "engine/cpu/cpu_backend.h"
#include "engine/model/architecture.h"
#include "engine/model/model_weights.h"
#include "engine/model/state_layout.h"
#include "engine/runtime/demo_model.h"
#include "engine/weights/checkpoint.h"
#include "tests/catch.h"
#include "tests/cuda/emulated_backend.h"
#include "tests/cuda/golden_models.h"
#include "tests/damaged_model.h"
#include "tests/runtime/fake_workers.h"
#include "tests/runtime/parity_guidance.h"
#include "tests/temp_folder.h"

namespace tgi {
namespace {

struct Setup {
  bool deterministic = false;
  int32_t num_blocks = 64;
  int32_t max_running = 12;
  std::string folder{};  // (optional) of another model
  int32_t max_id = 255;
};

// The demo model, in bf16. Answers are declared before it: they outlive it when a check fails, too.
class Served {
 public:
  explicit Served(const Setup& setup)
      : files_(setup.folder.empty() ? open_demo_model() : open_folder(setup.folder)),
        model_(load_model_config(*files_)) {
    DeviceOptions device_options;
    device_options.deterministic = setup.deterministic;
    auto device = cuda::tested_backend().make_device(device_options);
    const auto checkpoint = open_checkpoint(*files_);
    const ModelConfig& config = model_.config;
    ModelWeights weights = load_weights(model_, *checkpoint, *device, {.dtype = DType::kBF16});
    allocate_state(*device, config, one_kv_group(config),
                   {.num_blocks = setup.num_blocks,
                    .num_slots = setup.max_running,
                    .max_blocks_per_slot = setup.num_blocks,
                    .max_batch_tokens = 48});
    auto worker =
        std::make_unique<Worker>(config, std::move(device), std::move(weights),
                                 std::make_unique<NullCommunicator>(), one_kv_group(config), 48);
    CHECK(worker->max_steps_in_flight() == 2);
    EngineOptions engine;
    engine.scheduler = {.max_running = setup.max_running,
                        .max_batch_tokens = 48,
                        .shares_prefixes = !has_state(config)};
    engine.num_blocks = setup.num_blocks;
    engine.vocab_size = config.vocab_size;
    tokenizer_ = std::make_unique<ByteTokenizer>(config.vocab_size);
    engine_ = std::make_unique<Engine>(engine, std::move(worker), *tokenizer_);
  }

  void ask(Answer& answer,
           std::vector<int32_t> prompt_ids,
           int32_t count,
           const SamplingParams& sampling = {},
           std::shared_ptr<const Guidance> guidance = nullptr) {
    auto request = std::make_unique<Request>();
    request->id = ++last_id_;
    request->prompt_ids = std::move(prompt_ids);
    request->max_new_tokens = count;
    request->sampling = sampling;
    request->guidance = std::move(guidance);
    request->ignore_eos = true;
    request->details = true;
    request->accepted_at = Clock::now();
    engine_->submit(std::move(request), std::make_unique<AnswerSink>(answer));
  }

  Engine& engine() { return *engine_; }

 private:
  std::unique_ptr<FileSource> files_;
  LoadedConfig model_;
  std::unique_ptr<ByteTokenizer> tokenizer_;
  std::unique_ptr<Engine> engine_;
  uint64_t last_id_ = 0;
};

std::vector<int32_t> prompt(int32_t which, int32_t max_id = 255) {
  std::vector<int32_t> out;
  for (int32_t i = 0; i < 5 + 7 * (which % 5); ++i)
    out.push_back((10 + (which * 31 + i * 17) % 200) % (max_id + 1));
  return out;
}

SamplingParams sampling(int32_t which) {
  if (which % 3 == 0) return {};
  if (which % 3 == 1)
    return {.do_sample = true,
            .temperature = 0.8F,
            .top_p = 0.9F,
            .seed = static_cast<uint64_t>(which)};
  return {.repetition_penalty = 1.2F, .logit_bias = {{.id = 30, .bias = 2.0F}}};
}

std::vector<int32_t> ids_of(Answer& answer) {
  REQUIRE(answer.wait_for_end(400000));
  if (answer.error) FAIL(answer.error->what());
  std::vector<int32_t> out;
  for (const ipc::TokenInfo& token : answer.done->best.tokens) out.push_back(token.id);
  return out;
}

constexpr int32_t kRequests = 7;
constexpr int32_t kNewTokens = 9;

// With `guided`, every other request has guidance.
std::vector<std::vector<int32_t>> answers(const Setup& setup, bool at_once, bool guided = false) {
  const auto guidance = std::make_shared<ParityGuidance>(0, 250);
  std::vector<Answer> told(kRequests);
  Served served(setup);
  std::vector<std::vector<int32_t>> out;
  for (int32_t i = 0; i < kRequests; ++i) {
    served.ask(told[static_cast<size_t>(i)], prompt(i, setup.max_id), kNewTokens, sampling(i),
               guided && i % 2 == 0 ? guidance : nullptr);
    if (!at_once) (void)ids_of(told[static_cast<size_t>(i)]);
  }
  for (Answer& each : told) out.push_back(ids_of(each));
  return out;
}

}  // namespace

// The test below runs the same steps, with guidance and without.
TEST_CASE("deterministic: the same tokens alone, all at once, and with too few blocks for all",
          "[gpu]" TGI_NOT_UNDER_SANITIZERS) {
  const auto alone = answers({.deterministic = true}, false);
  CHECK(answers({.deterministic = true}, true) == alone);
  CHECK(answers({.deterministic = true, .num_blocks = 8}, true) == alone);
}

TEST_CASE(
    "guided answers keep to their masks in captured steps and others, and free ones notice "
    "nothing",
    "[gpu]") {
  const auto free = answers({.deterministic = true}, true);
  const auto guided = answers({.deterministic = true}, true, true);
  const auto captured = answers({}, true, true);
  CHECK(answers({.deterministic = true, .num_blocks = 8}, true, true) == guided);
  for (size_t i = 0; i < guided.size(); ++i) {
    if (i % 2 != 0) {
      CHECK(guided[i] == free[i]);
      continue;
    }
    CHECK(guided[i] != free[i]);
    for (const auto& answer : {guided[i], captured[i]}) {
      std::vector<int32_t> taken;
      for (const int32_t id : answer) {
        CHECK(ParityGuide::allows(taken, id));
        CHECK(id <= 250);
        taken.push_back(id);
      }
      CHECK(taken.size() == kNewTokens);
    }
  }
}

TEST_CASE("captured steps give what steps by themselves give, up to the order of sums",
          "[gpu]" TGI_NOT_UNDER_SANITIZERS) {
  const auto by_themselves = answers({.deterministic = true}, true);
  const auto captured = answers({}, true);
  // Another order of sums may tip a close choice, after which an answer goes its own way; most
  // never meet one.
  int num_same = 0;
  for (size_t i = 0; i < captured.size(); ++i) {
    CHECK(captured[i].front() == by_themselves[i].front());
    num_same += captured[i] == by_themselves[i] ? 1 : 0;
  }
  CHECK(num_same >= kRequests / 2);
}

static void check_captured(const std::string& folder) {
  INFO(folder);
  const auto one_by_one = answers({.deterministic = true, .folder = folder, .max_id = 60}, false);
  CHECK(answers({.deterministic = true, .folder = folder, .max_id = 60}, true) == one_by_one);
  const auto captured = answers({.folder = folder, .max_id = 60}, true);
  int num_same = 0;
  for (size_t i = 0; i < captured.size(); ++i) num_same += captured[i] == one_by_one[i] ? 1 : 0;
  CHECK(num_same >= kRequests - 2);
}

// Seven requests are padded to eight rows; each chooses other experts at every replay.
TEST_CASE("captured steps send rows to their experts as steps by themselves do",
          "[gpu]" TGI_NOT_UNDER_SANITIZERS) {
  for (const char* model : {"mixtral", "qwen2-moe", "glm4-moe"}) {
    check_captured(golden_models("families") + "/" + model);
  }
}

TEST_CASE("captured steps multiply with packed weights as steps by themselves do",
          "[gpu]" TGI_NOT_UNDER_SANITIZERS) {
  for (const char* model : {"awq", "ct-fp8", "gpt-oss-mxfp4"}) {
    check_captured(golden_models("quantised") + "/" + model);
  }
}

// States and positions of a slot come from device memory at every replay; a slot's next sequence
// begins with nothing. With too few blocks sequences are preempted and computed again.
TEST_CASE("captured steps carry on each slot's state as steps by themselves do",
          "[gpu]" TGI_NOT_UNDER_SANITIZERS) {
  for (const char* model : {"mamba-f32", "mamba2", "lfm2", "qwen3-next", "falcon-h1", "jamba",
                            "olmo-hybrid", "kimi-linear", "bloom-six-heads"}) {
    INFO(model);
    Setup setup = {.deterministic = true,
                   .max_running = 5,
                   .folder = golden_models("families") + "/" + model,
                   .max_id = 60};
    const auto one_by_one = answers(setup, false);
    CHECK(answers(setup, true) == one_by_one);
    setup.num_blocks = 8;
    CHECK(answers(setup, true) == one_by_one);
    setup.deterministic = false;
    const auto captured = answers(setup, true);
    int num_same = 0;
    for (size_t i = 0; i < captured.size(); ++i) num_same += captured[i] == one_by_one[i] ? 1 : 0;
    CHECK(num_same >= kRequests - 2);
  }
}

// Streams of hidden states, cuts of gates, rows for each layer; heads that differ, experts with a
// scale each, and layers that read the keys and values of others.
TEST_CASE("captured steps of layers that differ give what steps by themselves do",
          "[gpu]" TGI_NOT_UNDER_SANITIZERS) {
  for (const char* model : {"gemma3n-shared-kv", "gemma4-everything", "gemma4-experts"}) {
    check_captured(golden_models("families") + "/" + model);
  }
}

TEST_CASE("an idle engine captures every bucket, and a deterministic one none") {
  Answer told, other;
  Served served({});
  const std::vector<int32_t> all = {1, 2, 4, 8, 12};  // of up to max_running rows
  const auto deadline = Clock::now() + std::chrono::seconds(60);
  while (served.engine().stats().prepared_rows != all && Clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(served.engine().stats().prepared_rows == all);
  served.ask(told, prompt(2), 6);
  const std::vector<int32_t> ids = ids_of(told);

  Served deterministic({.deterministic = true});
  deterministic.ask(other, prompt(2), 6);
  CHECK(ids_of(other).front() == ids.front());
  CHECK(deterministic.engine().stats().prepared_rows.empty());
}

TEST_CASE("weights with a NaN on a GPU end every request with that, and the engine goes on") {
  const TempFolder folder;
  for (const char* tensor :
       {"model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.k_proj.weight",
        "model.layers.1.self_attn.v_proj.weight", "model.layers.2.mlp.up_proj.weight",
        "model.norm.weight"}) {
    for (const uint16_t bits : {kBf16Nan, kBf16Infinity}) {
      // Where the number lies changes nothing about what runs.
      if (kUnderSanitizers && std::string_view(tensor) != "model.norm.weight") continue;
      INFO(tensor << (bits == kBf16Nan ? ", NaN" : ", infinity"));
      write_damaged_demo(folder.file("m"), tensor, 70, bits);
      std::vector<Answer> told(6);
      Served served({.folder = folder.file("m")});
      for (size_t i = 0; i < told.size(); ++i) {
        const auto which = static_cast<int32_t>(i);
        SamplingParams asked = sampling(which);
        asked.top_n_tokens = which % 2 * 3;
        served.ask(told[i], prompt(which), 3, asked);
      }
      for (Answer& each : told) {
        REQUIRE(each.wait_for_end(400000));
        REQUIRE(each.error);
        CHECK(each.error->code() == Code::kNotFinite);
      }
      CHECK_FALSE(served.engine().has_failed());
    }
  }
}

TEST_CASE("no kernel is launched for the first time within a capture") {
  cuda_emulation::forget_kernels();
  std::vector<Answer> told(3);  // some sizes are met before the engine was idle
  Served served({});
  for (size_t i = 0; i < told.size(); ++i) served.ask(told[i], prompt(static_cast<int32_t>(i)), 6);
  for (Answer& each : told) (void)ids_of(each);
  const auto deadline = Clock::now() + std::chrono::seconds(60);
  while (served.engine().stats().prepared_rows.size() < 5 && Clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(served.engine().stats().prepared_rows.size() == 5);
  CHECK_FALSE(served.engine().has_failed());
}

TEST_CASE("steps copy from pinned memory alone, biases and prompts with penalties too") {
  Answer first;
  std::vector<Answer> told(6);
  Served served({});
  served.ask(first, prompt(1), 2);
  (void)ids_of(first);
  const auto before = cuda_emulation::counters().pageable_copies;
  for (size_t i = 0; i < told.size(); ++i) {
    const auto which = static_cast<int32_t>(i);
    served.ask(told[i], prompt(which), kNewTokens, sampling(which));
  }
  for (Answer& each : told) (void)ids_of(each);
  CHECK(cuda_emulation::counters().pageable_copies == before);
}

TEST_CASE("a GPU that is lost ends every request with its reason, and the engine takes no more") {
  std::vector<Answer> told(3);
  Answer late;
  Served served({});
  for (size_t i = 0; i < told.size(); ++i)
    served.ask(told[i], prompt(static_cast<int32_t>(i)), 500);
  cuda_emulation::lose_devices(cudaErrorLaunchFailure, 200);
  for (Answer& each : told) {
    REQUIRE(each.wait_for_end(400000));
    REQUIRE(each.error);
    CHECK(each.error->code() == Code::kDeviceLost);
    CHECK_THAT(each.error->what(), Catch::Contains("GPU"));
  }
  CHECK(served.engine().has_failed());
  served.ask(late, prompt(1), 4);
  REQUIRE(late.wait_for_end(400000));
  CHECK(late.error);
  cuda_emulation::restore_devices();
}

TEST_CASE("an allocation that fails says what for and how much, and gives back what was taken") {
  const size_t before = cuda_emulation::allocated_bytes();
  for (int after = 0; after < 40; after += 3) {
    cuda_emulation::fail_allocations(1, after);
    try {
      Served served({});
    } catch (const Error& error) {
      CHECK(error.code() == Code::kOutOfMemory);
      CHECK_THAT(error.what(), Catch::Contains("MiB"));
    }
    cuda_emulation::fail_allocations(0);
    CHECK(cuda_emulation::allocated_bytes() == before);
  }
}

}  // namespace tgi
