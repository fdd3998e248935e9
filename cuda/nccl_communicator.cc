#include "cuda/nccl_communicator.h"

#include <fmt/format.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"
#include "cuda/launch.h"
#include "cuda/link_watch.h"
#include "cuda/nccl_library.h"

namespace tgi::cuda {
namespace {

[[noreturn]] void fail(int rank, const char* what, ncclResult_t result) {
  throw Error(Code::kDeviceLost,
              fmt::format("rank {}: NCCL: {}: {}", rank, what, nccl().get_error_string(result)));
}

constexpr const char* kLinkError = "an error of another rank or of the link";

void check_nccl(int rank, ncclResult_t result, const char* what) {
  if (result != ncclSuccess && result != ncclInProgress) fail(rank, what, result);
}

ncclDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return ncclFloat16;
    case DType::kBF16:
      return ncclBfloat16;
    default:
      return ncclFloat32;
  }
}

class NcclCommunicator final : public Communicator, private WatchedRank {
 public:
  NcclCommunicator(CudaDevice& device,
                   int rank,
                   int world_size,
                   const LinkDeadlines& deadlines,
                   std::shared_ptr<LinkWatch> watch)
      : device_(device),
        rank_(rank),
        world_size_(world_size),
        deadlines_(deadlines),
        watch_(std::move(watch)) {
    watch_->add(this);
  }
  // Since NCCL 2.26 a communicator that goes waits until every captured step that holds it is gone.
  ~NcclCommunicator() override {
    watch_->remove(this);
    (void)cudaSetDevice(device_.index());
    device_.drop_captured_steps();
    if (ender_.joinable()) {
      ender_.join();
    } else if (communicator_ != nullptr) {
      // Abort rather than destroy: a rank that died would be waited for.
      (void)nccl().comm_abort(communicator_);
    }
  }

  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }

  void start(const ncclUniqueId& id) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    use_device(device_.index());
    const Use use(*this);
    check_nccl(rank_, nccl().comm_init_rank_config(&communicator_, world_size_, id, rank_, &config),
               "joining the other ranks");
  }

  // From now on it is watched.
  void set_joined() { joined_ = true; }

  // Waits until the library has done what it was asked. Nothing may be asked or launched before: a
  // thread of the library's own does it, and a kernel launched meanwhile would come first.
  void settle(std::chrono::steady_clock::time_point end, const char* what) {
    for (int turn = 0; !is_settled(); ++turn) {
      if (std::chrono::steady_clock::now() > end) {
        throw Error(Code::kDeviceLost,
                    fmt::format("rank {}: NCCL: {}: no answer within the deadline", rank_, what));
      }
      if (turn < 1000) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  }

  // Without waiting for it: within a group of calls for several ranks.
  void begin_all_reduce(const Tensor& tensor) {
    TGI_CHECK(tensor.stride == tensor.cols);
    const Use use(*this);
    check_nccl(
        rank_,
        nccl().all_reduce(tensor.data, tensor.data, static_cast<size_t>(tensor.rows * tensor.cols),
                          data_type(tensor.dtype), ncclSum, communicator_, device_.stream()),
        "an all-reduce");
  }

  void all_reduce_sum(const Tensor& tensor) override {
    if (tensor.rows == 0) return;
    begin_all_reduce(tensor);
    settle(std::chrono::steady_clock::now() + deadlines_.launch, "an all-reduce");
  }

  // Ends what waits for the failed rank, on the GPU too. On a thread of its own: the library
  // returns when the captured steps are gone, and they go when the ranks have given up.
  void abort(int failed_rank, const std::string& reason) override {
    device_.declare_lost(fmt::format("rank {} has failed: {}", failed_rank, reason));
    if (aborted_.exchange(true)) return;
    ender_ = std::jthread([this] {
      // Not under a call that has begun, unless that hangs.
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
      while (num_uses_ > 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      (void)cudaSetDevice(device_.index());
      if (communicator_ != nullptr) (void)nccl().comm_abort(communicator_);
    });
  }

  CudaDevice& device() { return device_; }

 private:
  // Held while the library is called: nobody else calls it for this rank, and the communicator does
  // not go meanwhile. Throws when it has gone.
  class Use {
   public:
    explicit Use(NcclCommunicator& of) : of_(of), lock_(of.call_mutex_) { begin(); }
    Use(NcclCommunicator& of, std::unique_lock<std::mutex>&& lock)
        : of_(of), lock_(std::move(lock)) {
      begin();
    }
    ~Use() { --of_.num_uses_; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    void begin() {
      ++of_.num_uses_;
      if (!of_.aborted_) return;
      --of_.num_uses_;
      of_.device_.throw_if_lost();
    }

    NcclCommunicator& of_;
    const std::unique_lock<std::mutex> lock_;
  };

  bool is_settled() {
    const Use use(*this);
    return ask();
  }

  // Whether what was asked for is done. Throws when it has failed.
  bool ask() const {
    ncclResult_t state = ncclSuccess;
    check_nccl(rank_, nccl().comm_get_async_error(communicator_, &state), "asking for errors");
    check_nccl(rank_, state, kLinkError);
    return state != ncclInProgress;
  }

  const StepClock& clock() const override { return device_.clock(); }
  std::optional<std::string> link_error() override {
    std::unique_lock lock(call_mutex_, std::try_to_lock);
    if (!joined_ || !lock) return std::nullopt;  // who calls it asks by itself
    try {
      const Use use(*this, std::move(lock));
      (void)ask();
    } catch (const Error& error) {
      return error.what();
    }
    return std::nullopt;
  }

  CudaDevice& device_;
  const int rank_;
  const int world_size_;
  const LinkDeadlines deadlines_;
  const std::shared_ptr<LinkWatch> watch_;
  ncclComm_t communicator_ = nullptr;
  std::atomic<bool> aborted_{false};
  std::atomic<int> num_uses_{0};
  std::mutex call_mutex_;
  std::jthread ender_;
  std::atomic<bool> joined_{false};
};

using Ranks = std::vector<std::unique_ptr<NcclCommunicator>>;

void join(const Ranks& ranks, std::chrono::steady_clock::time_point end) {
  ncclUniqueId id;
  check_nccl(0, nccl().get_unique_id(&id), "starting");
  check_nccl(0, nccl().group_start(), "grouping");
  for (const auto& each : ranks) each->start(id);
  check_nccl(0, nccl().group_end(), "joining the ranks");
  for (const auto& each : ranks) {
    each->settle(end, "joining the other ranks");
    each->set_joined();
  }
}

void wait_for_stream(NcclCommunicator& rank, std::chrono::steady_clock::time_point end) {
  while (true) {
    const cudaError_t status = cudaStreamQuery(rank.device().stream());
    if (status == cudaSuccess) return;
    if (status != cudaErrorNotReady) cuda::check(status, "the first all-reduce");
    if (std::chrono::steady_clock::now() > end)
      throw Error(
          Code::kDeviceLost,
          fmt::format("rank {}: the first all-reduce did not end within the deadline: the link "
                      "between the GPUs can't be trusted (see NCCL_P2P_DISABLE)",
                      rank.rank()));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Rank r gives r + 1 in every element: each must find n (n + 1) / 2.
void prove(const Ranks& ranks, std::chrono::steady_clock::time_point end) {
  constexpr int64_t kCount = 1024;
  std::vector<Buffer> buffers;
  for (const auto& each : ranks) {
    use_device(each->device().index());
    buffers.push_back(allocate_device(kCount * sizeof(float), "proof of the ranks' all-reduce"));
    const std::vector<float> values(kCount, static_cast<float>(each->rank() + 1));
    each->device().copy_to_device(buffers.back().data(), values.data(), kCount * sizeof(float));
  }
  check_nccl(0, nccl().group_start(), "grouping");
  for (size_t i = 0; i < ranks.size(); ++i) {
    ranks[i]->begin_all_reduce({.data = buffers[i].data(),
                                .dtype = DType::kF32,
                                .rows = 1,
                                .cols = kCount,
                                .stride = kCount});
  }
  check_nccl(0, nccl().group_end(), "grouping");
  for (const auto& each : ranks) each->settle(end, "the first all-reduce");
  const auto n = static_cast<float>(ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i) {
    use_device(ranks[i]->device().index());
    wait_for_stream(*ranks[i], end);
    std::vector<float> sums(kCount);
    ranks[i]->device().copy_to_host(sums.data(), buffers[i].data(), kCount * sizeof(float));
    for (const float sum : sums) {
      if (sum == n * (n + 1.0F) / 2.0F) continue;
      throw Error(
          Code::kDeviceLost,
          fmt::format(
              "rank {}: the first all-reduce gave {}, expected {}: the link between the GPUs "
              "can't be trusted (see NCCL_P2P_DISABLE)",
              i, sum, n * (n + 1.0F) / 2.0F));
    }
  }
}

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_nccl_communicators(
    std::span<CudaDevice* const> devices, const LinkDeadlines& deadlines) {
  const auto end = std::chrono::steady_clock::now() + deadlines.join;
  const auto watch = std::make_shared<LinkWatch>(deadlines.step);
  const int world_size = static_cast<int>(devices.size());
  Ranks ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    ranks.push_back(std::make_unique<NcclCommunicator>(*devices[static_cast<size_t>(rank)], rank,
                                                       world_size, deadlines, watch));
  }
  try {
    join(ranks, end);
    prove(ranks, end);
  } catch (const Error& error) {
    // All at once: one that goes may wait for the others.
    for (const auto& each : ranks) each->abort(each->rank(), error.what());
    throw;
  }
  std::vector<std::unique_ptr<Communicator>> out;
  for (auto& each : ranks) out.push_back(std::move(each));
  return out;
}

}  // namespace tgi::cuda
