#include "cuda/nccl_communicator.h"

#include <fmt/format.h>

#include <atomic>
#include <string>
#include <thread>

#include "base/error.h"
#include "cuda/launch.h"
#include "cuda/nccl_library.h"

namespace tgi::cuda {
namespace {

[[noreturn]] void fail(int rank, const char* what, ncclResult_t result) {
  throw Error(Code::kDeviceLost,
              fmt::format("rank {}: NCCL: {}: {}", rank, what, nccl().get_error_string(result)));
}

void check(int rank, ncclResult_t result, const char* what) {
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

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(CudaDevice& device, int rank, int world_size)
      : device_(device), rank_(rank), world_size_(world_size) {}
  ~NcclCommunicator() override {
    if (communicator_ == nullptr || aborted_) return;
    (void)cudaSetDevice(device_.index());
    // Abort rather than destroy: a rank that died would be waited for.
    (void)nccl().comm_abort(communicator_);
  }

  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }

  void start(const ncclUniqueId& id) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    use_device(device_.index());
    check(rank_, nccl().comm_init_rank_config(&communicator_, world_size_, id, rank_, &config),
          "joining the other ranks");
  }

  // Whether what was asked of the library has ended. Throws when it failed.
  bool is_settled() const {
    if (aborted_) throw Error(Code::kDeviceLost, has_reason_ ? reason_ : "another rank has failed");
    ncclResult_t state = ncclSuccess;
    check(rank_, nccl().comm_get_async_error(communicator_, &state), "asking for errors");
    check(rank_, state, "an error of another rank or of the link");
    return state != ncclInProgress;
  }

  void all_reduce_sum(const Tensor& tensor) override {
    if (tensor.rows == 0) return;
    TGI_CHECK(tensor.stride == tensor.cols);
    (void)is_settled();
    check(
        rank_,
        nccl().all_reduce(tensor.data, tensor.data, static_cast<size_t>(tensor.rows * tensor.cols),
                          data_type(tensor.dtype), ncclSum, communicator_, device_.stream()),
        "an all-reduce");
  }

  // Ends what waits for the failed rank, on the GPU too.
  void abort(int failed_rank, const std::string& reason) override {
    if (aborted_.exchange(true)) return;
    reason_ = fmt::format("rank {} has failed: {}", failed_rank, reason);
    if (communicator_ != nullptr) (void)nccl().comm_abort(communicator_);
    has_reason_ = true;
  }

  CudaDevice& device() { return device_; }

 private:
  CudaDevice& device_;
  const int rank_;
  const int world_size_;
  ncclComm_t communicator_ = nullptr;
  std::atomic<bool> aborted_{false};
  std::atomic<bool> has_reason_{false};  // reason_ may be read
  std::string reason_;
};

void wait_until_settled(const NcclCommunicator& communicator,
                        std::chrono::steady_clock::time_point end,
                        const char* what) {
  while (!communicator.is_settled()) {
    if (std::chrono::steady_clock::now() > end) {
      throw Error(Code::kDeviceLost, fmt::format("rank {}: NCCL: {}: no answer within the deadline",
                                                 communicator.rank(), what));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Rank r gives r + 1 in every element: each must find n (n + 1) / 2.
void prove(std::span<const std::unique_ptr<NcclCommunicator>> ranks,
           std::chrono::steady_clock::time_point end) {
  constexpr int64_t kCount = 1024;
  std::vector<Buffer> buffers;
  for (const auto& each : ranks) {
    use_device(each->device().index());
    buffers.push_back(allocate_device(kCount * sizeof(float), "proof of the ranks' all-reduce"));
    const std::vector<float> values(kCount, static_cast<float>(each->rank() + 1));
    each->device().copy_to_device(buffers.back().data(), values.data(), kCount * sizeof(float));
  }
  check(0, nccl().group_start(), "grouping");
  for (size_t i = 0; i < ranks.size(); ++i) {
    ranks[i]->all_reduce_sum({.data = buffers[i].data(),
                              .dtype = DType::kF32,
                              .rows = 1,
                              .cols = kCount,
                              .stride = kCount});
  }
  check(0, nccl().group_end(), "grouping");
  const auto n = static_cast<float>(ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i) {
    wait_until_settled(*ranks[i], end, "the first all-reduce");
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
    std::span<CudaDevice* const> devices, std::chrono::seconds deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  const int world_size = static_cast<int>(devices.size());
  ncclUniqueId id;
  check(0, nccl().get_unique_id(&id), "starting");
  std::vector<std::unique_ptr<NcclCommunicator>> ranks;
  check(0, nccl().group_start(), "grouping");
  for (int rank = 0; rank < world_size; ++rank) {
    ranks.push_back(
        std::make_unique<NcclCommunicator>(*devices[static_cast<size_t>(rank)], rank, world_size));
    ranks.back()->start(id);
  }
  check(0, nccl().group_end(), "joining the ranks");
  for (const auto& each : ranks) wait_until_settled(*each, end, "joining the other ranks");
  prove(ranks, end);
  std::vector<std::unique_ptr<Communicator>> out;
  for (auto& each : ranks) out.push_back(std::move(each));
  return out;
}

}  // namespace tgi::cuda
