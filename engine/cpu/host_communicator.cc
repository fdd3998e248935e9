#include "engine/cpu/host_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "base/error.h"
#include "engine/cpu/rank_barrier.h"
#include "engine/tensor/half.h"

namespace tgi {
namespace {

// Ranks write to borders of this many elements: no two of them to one line of the cache.
constexpr int64_t kSliceElements = 64;
constexpr int64_t kBlock = 512;  // elements; sums of a block stay in the first-level cache

struct F32 {
  using Element = float;
  static float load(float value) { return value; }
  static float store(float value) { return value; }
};
struct F16 {
  using Element = uint16_t;
  static float load(uint16_t bits) { return f16_to_f32(bits); }
  static uint16_t store(float value) { return f32_to_f16(value); }
};
struct BF16 {
  using Element = uint16_t;
  static float load(uint16_t bits) { return bf16_to_f32(bits); }
  static uint16_t store(float value) { return f32_to_bf16(value); }
};

// Elements [begin, end) of all tensors become their sum.
template <typename Format>
void sum_range(std::span<const Tensor> tensors, int64_t begin, int64_t end) {
  using Element = typename Format::Element;
  float sums[kBlock];
  Element rounded[kBlock];
  for (int64_t from = begin; from < end; from += kBlock) {
    const int64_t count = std::min(kBlock, end - from);
    const Element* first = tensors[0].as<const Element>() + from;
    for (int64_t i = 0; i < count; ++i) sums[i] = Format::load(first[i]);
    for (const Tensor& tensor : tensors.subspan(1)) {
      const Element* next = tensor.as<const Element>() + from;
      for (int64_t i = 0; i < count; ++i) sums[i] += Format::load(next[i]);
    }
    for (int64_t i = 0; i < count; ++i) rounded[i] = Format::store(sums[i]);
    for (const Tensor& tensor : tensors) {
      std::memcpy(tensor.as<Element>() + from, rounded,
                  static_cast<size_t>(count) * sizeof(Element));
    }
  }
}

using SumRange = void (*)(std::span<const Tensor> tensors, int64_t begin, int64_t end);

SumRange find_sum(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return sum_range<F32>;
    case DType::kF16:
      return sum_range<F16>;
    case DType::kBF16:
      return sum_range<BF16>;
    case DType::kF8E4M3:
    case DType::kInt8:
      break;  // only ever held in a cache
  }
  throw Error(Code::kInternal, "unknown element type");
}

// What the communicators of a group share.
struct HostGroup {
  HostGroup(int world_size, std::chrono::milliseconds timeout)
      : barrier(world_size, timeout), tensors(static_cast<size_t>(world_size)) {}

  RankBarrier barrier;
  // (world_size): of the reduction under way. A rank writes its own before the first barrier, all
  // are read until the second.
  std::vector<Tensor> tensors;
};

class HostCommunicator final : public Communicator {
 public:
  // The group lives until its last rank is gone: which that is nobody knows.
  HostCommunicator(std::shared_ptr<HostGroup> group, int rank)
      : group_(std::move(group)), rank_(rank) {}

  int rank() const override { return rank_; }
  int world_size() const override { return static_cast<int>(group_->tensors.size()); }

  void all_reduce_sum(const Tensor& tensor) override {
    TGI_CHECK(tensor.stride == tensor.cols || tensor.rows <= 1);
    group_->tensors[static_cast<size_t>(rank_)] = tensor;
    group_->barrier.arrive_and_wait(rank_);
    check_same(tensor);
    const int64_t size = tensor.rows * tensor.cols;
    const int64_t share = (size + world_size() - 1) / world_size();
    const int64_t slice = (share + kSliceElements - 1) / kSliceElements * kSliceElements;
    const int64_t begin = std::min(size, slice * rank_);
    const int64_t end = std::min(size, begin + slice);
    find_sum(tensor.dtype)(group_->tensors, begin, end);
    group_->barrier.arrive_and_wait(rank_);
  }

  void abort(int failed_rank, const std::string& reason) override {
    group_->barrier.abort(failed_rank, reason);
  }

 private:
  void check_same(const Tensor& tensor) const {
    for (size_t other = 0; other < group_->tensors.size(); ++other) {
      const Tensor& theirs = group_->tensors[other];
      if (theirs.rows == tensor.rows && theirs.cols == tensor.cols &&
          theirs.dtype == tensor.dtype) {
        continue;
      }
      throw Error(Code::kDeviceLost,
                  fmt::format("ranks are out of step: rank {} reduces ({}, {}) of {}, rank {} ({}, "
                              "{}) of {}",
                              rank_, tensor.rows, tensor.cols, dtype_name(tensor.dtype), other,
                              theirs.rows, theirs.cols, dtype_name(theirs.dtype)));
    }
  }

  const std::shared_ptr<HostGroup> group_;
  const int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_host_communicators(
    int world_size, std::chrono::milliseconds timeout) {
  TGI_CHECK(world_size >= 1);
  std::vector<std::unique_ptr<Communicator>> out;
  if (world_size == 1) {
    out.push_back(std::make_unique<NullCommunicator>());
    return out;
  }
  const auto group = std::make_shared<HostGroup>(world_size, timeout);
  for (int rank = 0; rank < world_size; ++rank) {
    out.push_back(std::make_unique<HostCommunicator>(group, rank));
  }
  return out;
}

}  // namespace tgi
