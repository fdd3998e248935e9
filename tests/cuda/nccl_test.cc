// Two emulated GPUs through NCCL's stub: what it does by itself, order of its calls, captured steps
// that hold a communicator, links that break and ranks that hang, up to what each request is told.
#include <cuda_emulation.h>

#include <chrono>
#include <thread>

#include "base/files/file_source.h"
#include "cuda/nccl_communicator.h"
#include "cuda/nccl_library.h"
#include "engine/model/architecture.h"
#include "engine/runtime/demo_model.h"
#include "engine/runtime/load_ranks.h"
#include "engine/weights/checkpoint.h"
#include "tests/catch.h"
#include "tests/cuda/emulated_backend.h"
#include "tests/cuda/golden_models.h"
#include "tests/cuda/nccl_stub.h"
#include "tests/runtime/fake_workers.h"

namespace tgi {
namespace {

using namespace std::chrono_literals;

constexpr int32_t kMaxRunning = 4;

// The CUDA backend, but for the deadlines of its links.
class Gpus final : public Backend {
 public:
  explicit Gpus(const cuda::LinkDeadlines& deadlines) : deadlines_(deadlines) {}
  std::string_view name() const override { return "cuda"; }
  int num_devices() override { return plugin_.num_devices(); }
  void check_storage(const MatrixStorage& weights, DType kv_cache) const override {
    plugin_.check_storage(weights, kv_cache);
  }
  std::unique_ptr<Device> make_device(const DeviceOptions& options) override {
    return plugin_.make_device(options);
  }
  std::vector<std::unique_ptr<Communicator>> make_communicators(
      std::span<Device* const> ranks) override {
    std::vector<cuda::CudaDevice*> devices;
    for (Device* const device : ranks) devices.push_back(static_cast<cuda::CudaDevice*>(device));
    return cuda::make_nccl_communicators(devices, deadlines_);
  }

 private:
  Backend& plugin_ = cuda::emulated_backend();
  const cuda::LinkDeadlines deadlines_;
};

class TwoGpus {
 public:
  // folder: of another model than the demo's.
  explicit TwoGpus(const cuda::LinkDeadlines& deadlines = {},
                   int32_t num_ranks = 2,
                   const std::string& folder = {})
      : gpus_(deadlines),
        files_(folder.empty() ? open_demo_model() : open_folder(folder)),
        model_(load_model_config(*files_)) {
    LoadRanksOptions options;
    options.num_ranks = num_ranks;
    options.weights.dtype = DType::kBF16;
    options.max_running = kMaxRunning;
    options.max_batch_tokens = 48;
    options.max_total_tokens = 256;
    options.kv_cache_bytes = int64_t{8} << 20;
    LoadedRanks loaded = load_ranks(
        gpus_, model_, [this](const DeviceInfo&) { return open_checkpoint(*files_); }, options);
    EngineOptions engine;
    engine.scheduler = {.max_running = kMaxRunning, .max_batch_tokens = 48};
    engine.num_blocks = static_cast<int32_t>(loaded.plan.num_blocks);
    engine.vocab_size = model_.config.vocab_size;
    tokenizer_ = std::make_unique<ByteTokenizer>(model_.config.vocab_size);
    engine_ = std::make_unique<Engine>(engine, std::move(loaded.workers), *tokenizer_);
  }

  void ask(Answer& answer, int32_t count) {
    auto request = std::make_unique<Request>();
    request->id = ++last_id_;
    for (int32_t i = 0; i < 9; ++i)
      request->prompt_ids.push_back(20 + i * static_cast<int32_t>(last_id_));
    request->max_new_tokens = count;
    request->ignore_eos = true;
    request->details = true;
    request->accepted_at = Clock::now();
    engine_->submit(std::move(request), std::make_unique<AnswerSink>(answer));
  }

  Engine& engine() { return *engine_; }

 private:
  Gpus gpus_;
  std::unique_ptr<FileSource> files_;
  LoadedConfig model_;
  std::unique_ptr<ByteTokenizer> tokenizer_;
  std::unique_ptr<Engine> engine_;
  uint64_t last_id_ = 0;
};

// Two GPUs and a link without faults; afterwards one GPU, as the other tests have it.
class Machine {
 public:
  Machine() {
    cuda_emulation::set_devices(2);
    cuda::set_nccl_faults({});
  }
  ~Machine() {
    cuda::set_nccl_faults({});
    cuda_emulation::set_devices(1);
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
};

// `told` outlives what it is told by, when a check fails as well.
std::vector<int32_t> first_tokens(TwoGpus& served, std::vector<Answer>& told) {
  for (Answer& each : told) served.ask(each, 5);
  std::vector<int32_t> out;
  for (Answer& each : told) {
    REQUIRE(each.wait_for_end(60000));
    if (each.error) FAIL(each.error->what());
    out.push_back(each.done->best.tokens.front().id);
  }
  return out;
}

// Requests that are cut short by `faults`; what each is told.
std::string told_after(const cuda::NcclFaults& faults, const cuda::LinkDeadlines& deadlines) {
  std::vector<Answer> told(3);  // outlives what it is told by, when a check fails as well
  TwoGpus served(deadlines);
  for (Answer& each : told) served.ask(each, 200);
  REQUIRE(told[0].wait_for_events(0));
  cuda::set_nccl_faults(faults);
  std::string out;
  for (Answer& each : told) {
    REQUIRE(each.wait_for_end(60000));
    REQUIRE(each.error);
    CHECK(each.error->code() == Code::kDeviceLost);
    if (out.empty()) out = each.error->what();
    CHECK(out == each.error->what());
  }
  CHECK(served.engine().has_failed());
  return out;
}

}  // namespace

TEST_CASE("each call of NCCL waits for the one before, and captured steps go before it does") {
  const Machine machine;
  const auto before = cuda::nccl_counts();
  cuda::set_nccl_faults({.polls_in_progress = 3});
  std::vector<Answer> told_alone(3), told(3);
  std::vector<int32_t> alone;
  {
    TwoGpus one({}, 1);
    alone = first_tokens(one, told_alone);
  }
  {
    TwoGpus served;
    CHECK(first_tokens(served, told) == alone);
    const auto deadline = Clock::now() + 60s;
    while (served.engine().stats().prepared_rows.empty() && Clock::now() < deadline)
      std::this_thread::sleep_for(5ms);
    CHECK_FALSE(served.engine().stats().prepared_rows.empty());
  }
  const auto after = cuda::nccl_counts();
  CHECK(after.num_all_reduces > before.num_all_reduces);
  CHECK(after.num_misused == before.num_misused);
  CHECK(after.num_hung == before.num_hung);
  CHECK(after.num_alive == before.num_alive);
}

TEST_CASE("two GPUs share packed weights in whole groups and say what one says") {
  const Machine machine;
  for (const char* model : {"ct-int4", "awq", "ct-fp8"}) {
    INFO(model);
    const std::string folder = golden_models("quantised") + "/" + model;
    std::vector<Answer> told_alone(2), told(2);
    std::vector<int32_t> alone;
    {
      TwoGpus one({}, 1, folder);
      alone = first_tokens(one, told_alone);
    }
    TwoGpus served({}, 2, folder);
    CHECK(first_tokens(served, told) == alone);
  }
}

TEST_CASE("whoever waits for one rank waits for nothing else, however far ahead another one is") {
  const Machine machine;
  const cuda::NcclLibrary& nccl = cuda::nccl();
  constexpr int kRounds = 4;
  const auto hung = cuda::nccl_counts().num_hung;
  ncclUniqueId id;
  REQUIRE(nccl.get_unique_id(&id) == ncclSuccess);
  struct Rank {
    ncclComm_t communicator = nullptr;
    cudaStream_t stream = nullptr;
    float* value = nullptr;
    void settle(const cuda::NcclLibrary& library) const {
      ncclResult_t state = ncclInProgress;
      while (state == ncclInProgress)
        REQUIRE(library.comm_get_async_error(communicator, &state) == ncclSuccess);
      REQUIRE(state == ncclSuccess);
    }
  };
  Rank ranks[2];
  for (int i = 0; i < 2; ++i) {
    Rank& rank = ranks[i];
    REQUIRE(cudaSetDevice(i) == cudaSuccess);
    REQUIRE(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking) == cudaSuccess);
    REQUIRE(cudaMalloc(reinterpret_cast<void**>(&rank.value), sizeof(float)) == cudaSuccess);
    const float first = static_cast<float>(i + 1);
    REQUIRE(cudaMemcpy(rank.value, &first, sizeof first, cudaMemcpyHostToDevice) == cudaSuccess);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    (void)nccl.comm_init_rank_config(&rank.communicator, 2, id, i, &config);
  }
  for (const Rank& rank : ranks) {
    for (int round = 0; round < kRounds; ++round) {
      rank.settle(nccl);
      (void)nccl.all_reduce(rank.value, rank.value, 1, ncclFloat32, ncclSum, rank.communicator,
                            rank.stream);
    }
    rank.settle(nccl);
  }
  for (const Rank& rank : ranks) {
    CHECK(cudaStreamSynchronize(rank.stream) == cudaSuccess);
    float sum = 0;
    CHECK(cudaMemcpy(&sum, rank.value, sizeof sum, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(sum == 24.0F);  // 1 + 2, and twice that in every round after the first
  }
  for (const Rank& rank : ranks) {
    CHECK(nccl.comm_abort(rank.communicator) == ncclSuccess);
    CHECK(cudaFree(rank.value) == cudaSuccess);
    CHECK(cudaStreamDestroy(rank.stream) == cudaSuccess);
  }
  CHECK(cuda::nccl_counts().num_hung == hung);
}

TEST_CASE("an error of the link ends all requests, naming the rank") {
  const Machine machine;
  const std::string told = told_after({.failing_rank = 1, .error = ncclRemoteError}, {});
  CHECK_THAT(told, Catch::Contains("rank 1") && Catch::Contains("remote process exited"));
  CHECK(cuda::nccl_counts().num_hung == 0);
}

TEST_CASE("an all-reduce that hangs on the GPU ends all requests at the deadline") {
  const Machine machine;
  const std::string told = told_after({.hanging_rank = 1}, {.step = 1500ms});
  CHECK_THAT(told, Catch::Contains("rank") && Catch::Contains("did not end within 1.5 s"));
  CHECK(cuda::nccl_counts().num_hung == 0);
}

TEST_CASE("a call of NCCL that is in progress for ever ends all requests at the deadline") {
  const Machine machine;
  const std::string told = told_after({.stuck_rank = 1}, {.launch = 500ms});
  CHECK_THAT(told, Catch::Contains("rank 1") && Catch::Contains("no answer within the deadline"));
  CHECK(cuda::nccl_counts().num_hung == 0);
}

TEST_CASE("ranks that can't join within the deadline are no ranks") {
  const Machine machine;
  cuda::set_nccl_faults({.stuck_rank = 1, .good_all_reduces = -1});
  const auto before = cuda::nccl_counts();
  CHECK_THROWS_WITH(TwoGpus({.join = 300ms}),
                    Catch::Contains("rank 1") && Catch::Contains("joining the other ranks"));
  CHECK(cuda::nccl_counts().num_alive == before.num_alive);
}

}  // namespace tgi
