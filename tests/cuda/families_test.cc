// Every tiny checkpoint of tests/golden/models, tests/golden/families and tests/golden/quantised
// computed on an emulated GPU in 16 bits: the log-probabilities of transformers' greedy tokens,
// prompt in one chunk and answer token by token (captured steps), against the CPU in f32, or the
// exact values of what is quantised.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <span>

#include "base/files/file_source.h"
#include "base/json.h"
#include "engine/cpu/cpu_backend.h"
#include "engine/model/architecture.h"
#include "engine/model/model_weights.h"
#include "engine/model/state_layout.h"
#include "engine/runtime/worker.h"
#include "engine/weights/checkpoint.h"
#include "tests/catch.h"
#include "tests/cuda/emulated_backend.h"
#include "tests/cuda/golden_models.h"
#include "tests/model/model_files.h"

namespace tgi {
namespace {

constexpr int32_t kMaxTokens = 64;

// Under sanitizers every eighth.
std::vector<std::filesystem::path> model_folders(const char* kind) {
  std::set<std::filesystem::path> all;
  for (const auto& entry : std::filesystem::directory_iterator(golden_models(kind))) {
    const char* const only = std::getenv("TGI_GOLDEN_FAMILY");
    const bool is_asked = only == nullptr || entry.path().filename() == only;
    if (entry.is_directory() && is_asked) all.insert(entry.path());
  }
  std::vector<std::filesystem::path> out;
  int index = 0;
  for (const std::filesystem::path& folder : all) {
    if (!kUnderSanitizers || index++ % 8 == 0) out.push_back(folder);
  }
  return out;
}

std::unique_ptr<Device> make_device(Backend& backend, DType dtype) {
  DeviceOptions options;
  options.dtype = dtype;
  options.num_threads = 1;
  return backend.make_device(options);
}

std::unique_ptr<Worker> load_worker(std::unique_ptr<Device> device,
                                    const LoadedConfig& model,
                                    const Checkpoint& checkpoint,
                                    DType dtype) {
  ModelWeights weights = load_weights(model, checkpoint, *device, {.dtype = dtype});
  const ModelConfig& config = model.config;
  allocate_state(*device, config, one_kv_group(config),
                 {.num_blocks = 16,
                  .kv_dtype = dtype,
                  .num_slots = 2,
                  .max_blocks_per_slot = 16,
                  .max_batch_tokens = kMaxTokens});
  return std::make_unique<Worker>(config, std::move(device), std::move(weights),
                                  std::make_unique<NullCommunicator>(), one_kv_group(config),
                                  kMaxTokens);
}

// Tokens [begin, end) of `ids` in slot 1; appends the log-probability of each next token.
void run_chunk(Worker& worker,
               const std::vector<int32_t>& ids,
               size_t begin,
               size_t end,
               std::vector<float>& logprobs) {
  Batch batch;
  batch.clear();
  if (begin == 0)
    batch.slot_starts.push_back(
        {.slot = 1, .sampling = {}, .token_ids = ids, .num_prompt_tokens = 1});
  for (size_t i = begin; i < end; ++i) {
    const auto position = static_cast<int32_t>(i);
    batch.token_ids.push_back(ids[i]);
    batch.positions.push_back(position);
    if (position % 16 == 0)
      batch.block_appends.push_back(
          {.slot = 1, .index = position / 16, .block = 15 - position / 16});
    if (i + 1 < ids.size()) {
      batch.score_rows.push_back({.row = static_cast<int32_t>(i - begin), .target_id = ids[i + 1]});
    }
  }
  batch.slots.push_back(1);
  batch.cu_seqlens_q.push_back(batch.num_tokens());
  batch.context_lens.push_back(static_cast<int32_t>(end));
  const StepResult& result = run_step(worker, batch);
  logprobs.insert(logprobs.end(), result.scores.begin(), result.scores.end());
}

std::vector<float> score(Worker& worker, const std::vector<int32_t>& ids, size_t num_prompt) {
  std::vector<float> out;
  run_chunk(worker, ids, 0, num_prompt, out);
  for (size_t i = num_prompt; i + 1 < ids.size(); ++i) run_chunk(worker, ids, i, i + 1, out);
  return out;
}

void check_folder(const std::filesystem::path& folder, std::span<const DType> dtypes) {
  const auto files = open_folder(folder.string());
  LoadedConfig model = load_model_config(*files);
  // The CUDA device can't make entries of tokens, nor choose tokens.
  if (has_entries(model.config)) return;
  leave_out_indexer(model.config);
  const auto checkpoint = open_checkpoint(*files);
  const Json golden = parse_json(files->require_text("golden.json"), 16).at("cases").at(0);
  auto ids = golden.at("prompt_ids").get<std::vector<int32_t>>();
  const auto context = static_cast<size_t>(model.config.max_positions);
  const size_t num_prompt = std::min({ids.size(), size_t{24}, context});
  const auto greedy_ids = golden.at("greedy_ids").get<std::vector<int32_t>>();
  ids.resize(num_prompt);
  ids.insert(ids.end(), greedy_ids.begin(),
             greedy_ids.begin() + std::min<long>(10, static_cast<long>(greedy_ids.size())));
  ids.resize(std::min(ids.size(), context));
  const auto score_on = [&](std::unique_ptr<Device> device, DType dtype) {
    return score(*load_worker(std::move(device), model, *checkpoint, dtype), ids, num_prompt);
  };
  // The processor's kernels round what they multiply integers with.
  const std::vector<float> wanted =
      score_on(model.weight_format->is_quantised ? make_reference_device()
                                                 : make_device(cpu_backend(), DType::kF32),
               DType::kF32);
  for (const DType dtype : dtypes) {
    INFO(folder.filename().string() << " in " << dtype_name(dtype));
    const std::vector<float> got = score_on(make_device(cuda::tested_backend(), dtype), dtype);
    REQUIRE(got.size() == wanted.size());
    // Roundings of activations around 1, layer by layer: measured up to 0.13 (of weights that were
    // f16) and 0.023. Where two experts are nearly as good, those of bf16 may choose the other:
    // then the token, and those that attend to it, say something else. Gates that multiply gates
    // amplify some roundings: torch's bf16 is 0.77 off at one of ten tokens of an LFM2. So do gates
    // of which few numbers are kept: of a Gemma 3n with 10 such layers the processor, in f32, is
    // 0.53 off at one of ten tokens with weights rounded to bf16, 0.011 with f16.
    const double allowed = dtype == DType::kBF16 ? 0.2 : 0.03;
    const bool may_be_far_off = cuts_gates(model.config) ||
                                (dtype == DType::kBF16 &&
                                 (model.config.experts.num_experts > 0 || has_state(model.config)));
    std::vector<double> off;
    for (size_t i = 0; i < got.size(); ++i) {
      off.push_back(std::abs(static_cast<double>(got[i]) - static_cast<double>(wanted[i])));
    }
    std::ranges::sort(off);
    CHECK(off[may_be_far_off ? off.size() / 2 : off.size() - 1] < allowed);
  }
}

}  // namespace

TEST_CASE(
    "tiny checkpoints of every trait and family on the CUDA device say what they say on the CPU, "
    "but for 16 bits",
    "[gpu]") {
  constexpr DType kBoth[] = {DType::kBF16, DType::kF16};
  const auto traits = model_folders("models");
  for (const std::filesystem::path& folder : traits) check_folder(folder, kBoth);
  // In 16 bits a router that wavers between two experts may choose the other: bf16 alone.
  const auto families = model_folders("families");
  for (const std::filesystem::path& folder : families) {
    const ModelConfig config = load_model_config(*open_folder(folder.string())).config;
    const bool is_strict =
        (has_state(config) || cuts_gates(config)) && config.experts.num_experts == 0;
    check_folder(folder, {kBoth, is_strict ? 2U : 1U});
  }
  if (std::getenv("TGI_GOLDEN_FAMILY") != nullptr) return;
  CHECK(traits.size() + families.size() >= (kUnderSanitizers ? 15 : 120));
}

TEST_CASE(
    "tiny quantised checkpoints on the CUDA device say what their exact values say, but for 16 "
    "bits",
    "[gpu]") {
  constexpr DType kBF16Only[] = {DType::kBF16};
  const auto folders = model_folders("quantised");
  for (const std::filesystem::path& folder : folders) check_folder(folder, kBF16Only);
  if (std::getenv("TGI_GOLDEN_FAMILY") != nullptr) return;
  CHECK(folders.size() >= (kUnderSanitizers ? 6 : 48));
}

// transformers does not have it; heads that are no power of two have slopes of two kinds.
TEST_CASE("random weights of Baichuan 13B's kind say on the CUDA device what they say on the CPU",
          "[gpu]") {
  const LoadedConfig model = load_config({{"architectures", {"BaichuanForCausalLM"}},
                                          {"model_max_length", 256},
                                          {"vocab_size", 61},
                                          {"hidden_size", 96},
                                          {"intermediate_size", 160},
                                          {"num_hidden_layers", 3},
                                          {"num_attention_heads", 6},
                                          {"torch_dtype", "bfloat16"}});
  REQUIRE(model.config.alibi_slopes.size() == 6);
  const auto checkpoint = make_dummy_checkpoint(model, 7);
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 60; ++i) ids.push_back(1 + (i * i + 5 * i) % 60);
  constexpr size_t kPrompt = 45;
  const std::vector<float> wanted =
      score(*load_worker(make_device(cpu_backend(), DType::kF32), model, *checkpoint, DType::kF32),
            ids, kPrompt);
  const std::vector<float> got =
      score(*load_worker(make_device(cuda::tested_backend(), DType::kBF16), model, *checkpoint,
                         DType::kBF16),
            ids, kPrompt);
  REQUIRE(got.size() == ids.size() - 1);
  double worst = 0.0;
  for (size_t i = 0; i < got.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(got[i]) - static_cast<double>(wanted[i])));
  }
  CHECK(worst < 0.2);
}

}  // namespace tgi
