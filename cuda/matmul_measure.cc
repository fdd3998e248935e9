// CudaDevice: which kernel multiplies each shape of the model fastest, measured on the GPU.
#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "cuda/cuda_device.h"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

// At an address that is a multiple of kMaxAlignment and of no more, as those of a step.
std::byte* measured_address(const Buffer& buffer) {
  return static_cast<std::byte*>(buffer.data()) + kMaxAlignment;
}

}  // namespace

void CudaDevice::measure_matmuls(int64_t max_rows) {
  std::erase_if(matrices_, [](const KnownMatrix& known) { return known.alive.expired(); });
  std::map<std::pair<int64_t, int64_t>, std::vector<const KnownMatrix*>> by_shape;
  int64_t widest = 0;
  for (const KnownMatrix& known : matrices_) {
    if (known.is_packed) continue;  // has kernels of its own
    by_shape[{known.launch.outputs, known.cols}].push_back(&known);
    widest = std::max(widest, known.cols);
  }
  // A bucket may be larger than the rows that it stands for.
  const auto x_bytes = static_cast<size_t>(row_bucket(max_rows) * widest) * 2 + kMaxAlignment;
  const Buffer x = allocate_device(x_bytes, "measuring matmuls");
  Buffer out;
  int64_t num_measured = 0;
  for (const auto& [shape, alike] : by_shape) {
    const auto [outputs, cols] = shape;
    if (cols % 8 != 0) continue;
    const bool is_head = outputs == slot_layout_->vocab_size;
    const DType out_dtype = is_head ? DType::kF32 : options_.dtype;
    for (const int64_t rows :
         row_buckets(is_head ? std::min<int64_t>(max_rows, kLogitTileRows) : max_rows)) {
      const size_t out_bytes =
          static_cast<size_t>(rows * outputs) * dtype_size(out_dtype) + kMaxAlignment;
      if (out.size_bytes() < out_bytes) out = allocate_device(out_bytes, "measuring matmuls");
      MatmulLaunch launch = alike[0]->launch;
      launch.x = {.data = measured_address(x),
                  .dtype = options_.dtype,
                  .rows = rows,
                  .cols = cols,
                  .stride = cols};
      launch.out = {.data = measured_address(out),
                    .dtype = out_dtype,
                    .rows = rows,
                    .cols = outputs,
                    .stride = outputs};
      if (tuner_.find(shape_of(launch)) != nullptr) continue;
      measure_matmul(launch, alike);
      ++num_measured;
    }
  }
  if (num_measured > 0) log_info("matmul kernels measured", {{"shapes", num_measured}});
  tuner_.save();
}

void CudaDevice::measure_matmul(MatmulLaunch launch, std::span<const KnownMatrix* const> alike) {
  std::vector<std::optional<CublasAlgorithm>> candidates;
  if (launch.x.rows <= kMaxStreamRows) candidates.emplace_back(std::nullopt);
  for (const CublasAlgorithm& algorithm : cublas_.propose(launch, kProposals))
    candidates.emplace_back(algorithm);
  if (candidates.empty()) candidates.emplace_back(std::nullopt);
  Event begin(cudaEventDefault);
  Event end(cudaEventDefault);
  size_t turn = 0;
  const auto run = [&](const std::optional<CublasAlgorithm>& candidate) {
    // In turns over the layers' matrices: one alone would stay in the L2 cache.
    launch.w = alike[turn++ % alike.size()]->launch.w;
    begin.record(stream_.get());
    if (!multiply_as(launch, candidate))
      throw Error(Code::kUnsupported, "an algorithm of cuBLASLt does not suit its own shape");
    end.record(stream_.get());
    end.synchronize();
    float milliseconds = 0.0F;
    check(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "timing a matmul");
    return 1000.0 * static_cast<double>(milliseconds);
  };
  const MatmulShape shape = shape_of(launch);
  try {
    tuner_.choose(shape, candidates, run);
  } catch (const Error& error) {
    if (error.code() != Code::kUnsupported) throw;
    tuner_.adopt(shape, {});  // the kernel that takes any shape
  }
}

}  // namespace tgi::cuda
