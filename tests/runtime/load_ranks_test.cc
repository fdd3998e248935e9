// Loading on several ranks: shares, plans, and what happens when one of them can't.
#include "engine/runtime/load_ranks.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "base/log.h"
#include "engine/cpu/cpu_backend.h"
#include "engine/cpu/host_communicator.h"
#include "engine/cpu/kernel_sets.h"
#include "engine/runtime/served_model.h"
#include "tests/catch.h"
#include "tests/model/model_files.h"

namespace tgi {
namespace {

class TwoDevices final : public Backend {
 public:
  void check_storage(const MatrixStorage& /*weights*/, DType /*kv_cache*/) const override {}
  std::string_view name() const override { return "test"; }
  int num_devices() override { return 2; }
  std::unique_ptr<Device> make_device(const DeviceOptions& options) override {
    if (options.rank == failing_rank) throw Error(Code::kUnsupported, "this device is too old");
    return make_cpu_device({.num_threads = 1,
                            .may_oversubscribe = true,
                            .rank = options.rank,
                            .world_size = options.world_size,
                            .chooser = chooser});
  }
  std::vector<std::unique_ptr<Communicator>> make_communicators(
      std::span<Device* const> ranks) override {
    if (cannot_join) throw Error(Code::kDeviceLost, "rank 1 could not join");
    return make_host_communicators(static_cast<int>(ranks.size()));
  }

  int failing_rank = -1;
  bool cannot_join = false;
  KernelChooser* chooser = nullptr;
};

struct CheckpointCounts {
  std::atomic<int> num_opened = 0;
  std::atomic<int> num_alive = 0;
  std::atomic<int> num_read = 0;
  int stop_after = -1;
  std::stop_source stop{};
};

// Random weights; the first that is opened may fail, the others are slow then. Asks for a stop when
// so many tensors were read.
class CountedCheckpoint final : public Checkpoint {
 public:
  CountedCheckpoint(const LoadedConfig& model, CheckpointCounts& counts, bool has_fault)
      : counts_(counts),
        has_fault_(has_fault),
        is_first_(counts.num_opened++ == 0),
        checkpoint_(make_dummy_checkpoint(model, 0)) {
    ++counts_.num_alive;
  }
  ~CountedCheckpoint() override { --counts_.num_alive; }

  const StoredTensor* find(std::string_view name) const override { return checkpoint_->find(name); }
  std::vector<std::string_view> names() const override { return checkpoint_->names(); }
  std::span<const std::byte> bytes(const StoredTensor& tensor) const override {
    if (has_fault_ && is_first_) throw Error(Code::kNotFound, "the disk is gone");
    if (has_fault_) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (++counts_.num_read == counts_.stop_after) counts_.stop.request_stop();
    return checkpoint_->bytes(tensor);
  }
  void release(const StoredTensor& tensor) const override { checkpoint_->release(tensor); }

 private:
  CheckpointCounts& counts_;
  const bool has_fault_;
  const bool is_first_;
  const std::unique_ptr<Checkpoint> checkpoint_;
};

LoadRanksOptions small_options(int32_t num_ranks) {
  LoadRanksOptions options;
  options.num_ranks = num_ranks;
  options.weights.dtype = DType::kF32;
  options.max_running = 4;
  options.max_batch_tokens = 32;
  options.max_total_tokens = 64;
  options.kv_cache_bytes = 1 << 20;
  return options;
}

LoadedRanks load(Backend& backend,
                 const LoadedConfig& model,
                 CheckpointCounts& counts,
                 int32_t num_ranks,
                 bool has_fault = false) {
  const auto open = [&](const DeviceInfo&) {
    return std::make_unique<CountedCheckpoint>(model, counts, has_fault);
  };
  LoadRanksOptions options = small_options(num_ranks);
  options.stop = counts.stop.get_token();
  return load_ranks(backend, model, open, options);
}

template <typename Fn>
std::string error_of(Code code, Fn fn) {
  try {
    fn();
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "";
}

const LoadedConfig& small_model() {
  static const LoadedConfig model = load_config(small_llama());
  return model;
}

}  // namespace

TEST_CASE("two ranks share the KV cache and the memory, and each reads the checkpoint once") {
  TwoDevices backend;
  CheckpointCounts counts;
  const LoadedRanks one = load(backend, small_model(), counts, 1);
  CHECK(counts.num_opened == 1);
  const LoadedRanks two = load(backend, small_model(), counts, 2);
  CHECK(counts.num_opened == 3);
  CHECK(counts.num_alive == 0);
  CHECK(two.num_params == one.num_params);
  CHECK(two.num_threads == 2 * one.num_threads);
  CHECK(two.block_bytes == one.block_bytes);
  // The wish is for all ranks together: as many tokens fit.
  CHECK(two.plan.num_blocks == one.plan.num_blocks);
  CHECK(two.kv_bytes == one.kv_bytes);
  CHECK(two.plan.kv_bytes * 2 == one.plan.kv_bytes);
  CHECK(two.available_bytes > one.available_bytes / 2);
  CHECK(two.available_bytes < one.available_bytes * 2);
  // The layers are cut, the embedding and the head are held twice.
  CHECK(two.weight_bytes > one.weight_bytes);
  CHECK(two.weight_bytes < 2 * one.weight_bytes);
  CHECK(two.workers->max_steps_in_flight() == 1);
}

TEST_CASE("a rank that can't load ends the load of all soon, with its error, and nothing is kept") {
  TwoDevices backend;
  CheckpointCounts counts;
  const std::string error =
      error_of(Code::kNotFound, [&] { load(backend, small_model(), counts, 2, true); });
  CHECK_THAT(error, Catch::Matches("rank [01]: the disk is gone"));
  CHECK(counts.num_opened == 2);
  CHECK(counts.num_alive == 0);
  CHECK(counts.num_read <= 2);  // of some twenty
}

TEST_CASE("a load that is to stop ends before its next tensor, and nothing is kept") {
  TwoDevices backend;
  for (const int num_ranks : {1, 2}) {
    CheckpointCounts counts;
    counts.stop_after = 3;
    const std::string error =
        error_of(Code::kCancelled, [&] { load(backend, small_model(), counts, num_ranks); });
    CHECK_THAT(error, Catch::Contains("was stopped"));
    CHECK(counts.num_read <= 3 + num_ranks - 1);  // of some twenty
    CHECK(counts.num_alive == 0);
    CHECK(counts.num_opened == num_ranks);
    CHECK(error_of(Code::kCancelled, [&] { load(backend, small_model(), counts, num_ranks); }) ==
          "the load of the model was stopped");
    CHECK(counts.num_opened == num_ranks);  // not even begun
  }
}

TEST_CASE("a rank without a device or a way to the others is told before or after the load") {
  CheckpointCounts counts;
  TwoDevices backend;
  backend.failing_rank = 1;
  CHECK(error_of(Code::kUnsupported, [&] { load(backend, small_model(), counts, 2); }) ==
        "rank 1: this device is too old");
  CHECK(counts.num_opened == 0);
  backend.failing_rank = -1;
  backend.cannot_join = true;
  CHECK(error_of(Code::kDeviceLost, [&] { load(backend, small_model(), counts, 2); }) ==
        "rank 1 could not join");
  CHECK(counts.num_alive == 0);
}

TEST_CASE("numbers of ranks that can't be are refused before anything is made") {
  TwoDevices backend;
  backend.failing_rank = 0;
  CheckpointCounts counts;
  CHECK(error_of(Code::kInvalidArgument, [&] { load(backend, small_model(), counts, 0); }) ==
        "num_shard must be at least 1, got 0");
  CHECK(error_of(Code::kInvalidArgument, [&] { load(backend, small_model(), counts, 3); }) ==
        "num_shard is 3, but the test backend has 2 devices; each rank needs one");
  Json json = small_llama();
  json["num_attention_heads"] = 3;
  json["num_key_value_heads"] = 3;
  const LoadedConfig odd = load_config(json);
  CHECK(error_of(Code::kInvalidArgument, [&] { load(backend, odd, counts, 2); }) ==
        "num_heads of the model is 3, which can't be dealt out to 2 ranks evenly");
}

TEST_CASE("a model is loaded where kernels fail their trial, and says which") {
  static const KernelTable broken = [] {
    KernelTable out = generic_kernels();
    out.add = [](const float*, const float*, float, float*, int64_t) {};
    return out;
  }();
  const KernelSet sets[] = {
      {"broken", [] { return true; }, []() -> const KernelTable& { return broken; }},
      {"generic", [] { return true; }, generic_kernels}};
  KernelChooser chooser(sets);
  TwoDevices backend;
  backend.chooser = &chooser;
  CheckpointCounts counts;
  const LoadedRanks ranks = load(backend, small_model(), counts, 2);
  CHECK(ranks.isa == "generic");
  REQUIRE(ranks.left_out.size() == 1);
  CHECK(ranks.left_out[0].isa == "broken");
  CHECK(ranks.left_out[0].kernel == "add");
}

TEST_CASE("ranks of the cpu backend share its processors and its memory") {
  Backend& backend = cpu_backend();
  const int num_cores = backend.make_device({})->info().num_threads;
  const auto half = backend.make_device({.rank = 1, .world_size = 2});
  CHECK(half->info().num_threads == std::max(1, num_cores / 2));
  // One thread each is always granted, more only within the processors.
  const auto many = backend.make_device({.rank = 1, .world_size = 1000, .num_threads = 1});
  CHECK(many->info().num_threads == 1);
  CHECK(many->info().memory_bytes < half->info().memory_bytes);
  CHECK_THAT(error_of(Code::kInvalidArgument,
                      [&] { (void)backend.make_device({.world_size = 1000, .num_threads = 2}); }),
             Catch::StartsWith("2000 threads are asked for, but this process may use"));
}

TEST_CASE("what other models have planned for is not there, where ranks share memory") {
  CheckpointCounts counts;
  const auto open = [&](const DeviceInfo&) {
    return std::make_unique<CountedCheckpoint>(small_model(), counts, false);
  };
  LoadRanksOptions options = small_options(2);
  options.promised_bytes = int64_t{1} << 45;
  CHECK_THAT(error_of(Code::kOutOfMemory,
                      [&] { (void)load_ranks(cpu_backend(), small_model(), open, options); }),
             Catch::Contains("the model does not fit"));
  TwoDevices apart;
  CHECK_NOTHROW(load_ranks(apart, small_model(), open, options));
}

TEST_CASE("a model that can't be served by so many ranks is refused by the check of its files") {
  ModelOptions options;
  options.backend = "cpu";
  for (const int32_t num_shard : {1, 2, 4}) {
    options.num_shard = num_shard;
    CHECK_NOTHROW(ServedModel::check(options));
  }
  options.num_shard = 3;
  CHECK(error_of(Code::kInvalidArgument, [&] { ServedModel::check(options); }) ==
        "num_heads of the model is 8, which can't be dealt out to 3 ranks evenly");
  options.num_shard = 0;
  CHECK_THAT(error_of(Code::kInvalidArgument, [&] { ServedModel::check(options); }),
             Catch::StartsWith("num_shard: expected a whole number of at least 1, got \"0\""));
  // 128 columns of the intermediate size on each rank.
  options.num_shard = 4;
  options.quantize = "int8";
  options.quantize_group_size = 96;
  CHECK_THAT(error_of(Code::kInvalidArgument, [&] { ServedModel::check(options); }),
             Catch::Contains("quantize group size 96 does not divide the"));
  options.quantize_group_size = 128;
  CHECK_THAT(error_of(Code::kInvalidArgument, [&] { ServedModel::check(options); }),
             Catch::Contains("does not divide the 64 columns of") &&
                 Catch::Contains("on each of 4 ranks"));
}

TEST_CASE("a served model says how many ranks it has, and what they take together") {
  ModelOptions options;
  options.backend = "cpu";
  options.num_shard = 2;
  options.kv_cache_bytes = 4 << 20;
  const auto model = ServedModel::load(options);
  const ipc::ModelStatus status = model->status();
  CHECK(status.num_shard == 2);
  CHECK(status.num_threads >= 2);
  CHECK(status.memory.kv_cache ==
        status.num_blocks * status.block_size * status.kv_bytes_per_token);
  CHECK(status.memory.kv_cache <= 4 << 20);
}

}  // namespace tgi
