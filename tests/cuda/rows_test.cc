// Steps of more rows than the second number of a grid may be, and copies from pinned memory.
#include <cuda_emulation.h>

#include <algorithm>

#include "cuda/kernels/matmul.h"
#include "cuda/kernels/rows.h"
#include "cuda/pinned_staging.h"
#include "engine/tensor/half.h"
#include "tests/catch.h"
#include "tests/cuda/emulated_backend.h"

namespace tgi::cuda {
namespace {

constexpr int64_t kRows = 65537;
constexpr int64_t kCols = 8;

// Memory of the GPU with bf16 in it.
class Rows {
 public:
  explicit Rows(float value)
      : memory_(allocate_device(static_cast<size_t>(kRows * kCols) * 2, "rows")) {
    const std::vector<uint16_t> bits(static_cast<size_t>(kRows * kCols), f32_to_bf16(value));
    REQUIRE(cudaMemcpy(memory_.data(), bits.data(), bits.size() * 2, cudaMemcpyHostToDevice) ==
            cudaSuccess);
  }
  Tensor tensor() const {
    return {.data = memory_.data(),
            .dtype = DType::kBF16,
            .rows = kRows,
            .cols = kCols,
            .stride = kCols};
  }
  // Whether all elements are `value`.
  bool are(float value) const {
    std::vector<uint16_t> bits(static_cast<size_t>(kRows * kCols));
    REQUIRE(cudaMemcpy(bits.data(), memory_.data(), bits.size() * 2, cudaMemcpyDeviceToHost) ==
            cudaSuccess);
    return std::all_of(bits.begin(), bits.end(),
                       [&](uint16_t each) { return bf16_to_f32(each) == value; });
  }

 private:
  Buffer memory_;
};

}  // namespace

TEST_CASE("a step may have more than 65,535 rows") {
  const Stream stream;
  const Rows ones(1.0F), twos(2.0F), out(0.0F);
  launch_add(stream.get(), {.x = ones.tensor(), .y = twos.tensor(), .out = out.tensor()});
  stream.synchronize();
  CHECK(out.are(3.0F));
  launch_activation(
      stream.get(),
      {.kind = Activation::kReluSquared, .gated = false, .in = twos.tensor(), .out = out.tensor()});
  stream.synchronize();
  CHECK(out.are(4.0F));
  launch_copy_heads(stream.get(), ones.tensor(), 8, out.tensor(), 8);
  stream.synchronize();
  CHECK(out.are(1.0F));
  launch_matmul_plain(stream.get(), {.x = ones.tensor(),
                                     .w = twos.tensor().data,
                                     .w_stride = kCols,
                                     .outputs = kCols,
                                     .bias = nullptr,
                                     .out = out.tensor()});
  stream.synchronize();
  CHECK(out.are(16.0F));
}

TEST_CASE("lists longer than the pinned memory that they are copied from arrive whole") {
  const Stream stream;
  PinnedStaging staging(1000);
  std::vector<int32_t> wanted(900);
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = static_cast<int32_t>(i * 7);
  const size_t size_bytes = wanted.size() * sizeof(int32_t);
  const Buffer to = allocate_device(size_bytes + 16, "lists");
  const auto before = cuda_emulation::counters().pageable_copies;
  std::vector<int32_t> from = wanted;
  staging.copy(stream.get(), static_cast<std::byte*>(to.data()) + 16, from.data(), size_bytes);
  std::fill(from.begin(), from.end(), -1);  // it was read
  staging.copy(stream.get(), to.data(), wanted.data(), 16);
  stream.synchronize();
  CHECK(cuda_emulation::counters().pageable_copies == before);
  std::vector<int32_t> got(wanted.size() + 4);
  REQUIRE(cudaMemcpy(got.data(), to.data(), size_bytes + 16, cudaMemcpyDeviceToHost) ==
          cudaSuccess);
  CHECK(std::equal(wanted.begin(), wanted.end(), got.begin() + 4));
  CHECK(std::equal(got.begin(), got.begin() + 4, wanted.begin()));
}

}  // namespace tgi::cuda
