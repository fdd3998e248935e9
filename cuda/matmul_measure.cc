// CudaDevice: which kernel multiplies each shape of the model fastest, measured on the GPU.
#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "cuda/cuda_device.h"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

// Fewer rows of x are not worth weights that become plain numbers first.
constexpr int64_t kLeastUnpackedRows = 16;

// At an address that is a multiple of kMaxAlignment and of no more, as those of a step.
std::byte* measured_address(const Buffer& buffer) {
  return static_cast<std::byte*>(buffer.data()) + kMaxAlignment;
}

// x or out of so many rows, in memory that grows.
class MeasuredRows {
 public:
  Tensor of(int64_t rows, int64_t cols, DType dtype) {
    const size_t bytes = static_cast<size_t>(rows * cols) * dtype_size(dtype) + kMaxAlignment;
    if (memory_.size_bytes() < bytes) memory_ = allocate_device(bytes, "measuring matmuls");
    return {.data = measured_address(memory_),
            .dtype = dtype,
            .rows = rows,
            .cols = cols,
            .stride = cols};
  }

 private:
  Buffer memory_;
};

class Stopwatch {
 public:
  explicit Stopwatch(cudaStream_t stream) : stream_(stream) {}

  double microseconds(const std::function<void()>& launch) {
    begin_.record(stream_);
    launch();
    end_.record(stream_);
    end_.synchronize();
    float milliseconds = 0.0F;
    check(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()), "timing a matmul");
    return 1000.0 * static_cast<double>(milliseconds);
  }

 private:
  cudaStream_t stream_;
  Event begin_{cudaEventDefault};
  Event end_{cudaEventDefault};
};

}  // namespace

void CudaDevice::measure_matmuls(int64_t max_rows) {
  std::erase_if(matrices_, [](const KnownMatrix& known) { return known.alive.expired(); });
  using Alike = std::vector<const KnownMatrix*>;
  std::map<std::pair<int64_t, int64_t>, Alike> dense;
  std::map<std::tuple<uint32_t, int64_t, int64_t>, Alike> packed;
  std::deque<KnownMatrix> unpacked;  // which `dense` points into
  for (const KnownMatrix& known : matrices_) {
    const int64_t outputs = known.launch.outputs;
    if (!known.packed) {
      dense[{outputs, known.cols}].push_back(&known);
      continue;
    }
    if (outputs == slot_layout_->vocab_size || known.cols % 8 != 0 || !unpacked_) continue;
    Alike& alike = packed[{known.packed->kind(), outputs, known.cols}];
    alike.push_back(&known);
    if (alike.size() > 1) continue;
    // Its parts, as multiply_unpacked cuts it.
    const int64_t at_once = unpacked_outputs(*known.packed);
    for (const int64_t count : {std::min(at_once, outputs), outputs % at_once}) {
      if (count == 0) continue;
      KnownMatrix& part = unpacked.emplace_back(known);
      part.launch.w = unpacked_.data();
      part.launch.w_stride = known.cols;
      part.launch.outputs = count;
      dense[{count, known.cols}].push_back(&part);
    }
  }
  MeasuredRows x;
  MeasuredRows out;
  int64_t num_measured = 0;
  for (const auto& [shape, alike] : dense) {
    const auto [outputs, cols] = shape;
    if (cols % 8 != 0) continue;
    const bool is_head = outputs == slot_layout_->vocab_size;
    const DType out_dtype = is_head ? DType::kF32 : options_.dtype;
    for (const int64_t rows :
         row_buckets(is_head ? std::min<int64_t>(max_rows, kLogitTileRows) : max_rows)) {
      if (alike[0]->packed && rows < kLeastUnpackedRows) continue;
      MatmulLaunch launch = alike[0]->launch;
      launch.x = x.of(rows, cols, options_.dtype);
      launch.out = out.of(rows, outputs, out_dtype);
      if (tuner_.find(shape_of(launch)) != nullptr) continue;
      measure_matmul(launch, alike);
      ++num_measured;
    }
  }
  for (const auto& [shape, alike] : packed) {
    const KnownMatrix& known = *alike[0];
    for (const int64_t rows : row_buckets(max_rows)) {
      if (rows < kLeastUnpackedRows) continue;
      const PackedLaunch launch = {.shape = *known.packed,
                                   .w = known.launch.w,
                                   .x = x.of(rows, known.cols, options_.dtype),
                                   .out = out.of(rows, known.launch.outputs, options_.dtype),
                                   .partials = partials_of(*known.packed)};
      if (tuner_.find(packed_matmul_shape(launch)) != nullptr) continue;
      measure_packed(launch, alike);
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
  Stopwatch watch(stream_.get());
  size_t turn = 0;
  const auto run = [&](const std::optional<CublasAlgorithm>& candidate) {
    // In turns over the layers' matrices: one alone would stay in the L2 cache.
    launch.w = alike[turn++ % alike.size()]->launch.w;
    return watch.microseconds([&] {
      if (!multiply_as(launch, candidate)) {
        throw Error(Code::kUnsupported, "an algorithm of cuBLASLt does not suit its own shape");
      }
    });
  };
  const MatmulShape shape = shape_of(launch);
  try {
    tuner_.choose(shape, candidates, run);
  } catch (const Error& error) {
    if (error.code() != Code::kUnsupported) throw;
    tuner_.adopt(shape, {});  // the kernel that takes any shape
  }
}

void CudaDevice::measure_packed(const PackedLaunch& launch,
                                std::span<const KnownMatrix* const> alike) {
  Stopwatch watch(stream_.get());
  size_t turn = 0;
  const auto run = [&](const std::optional<CublasAlgorithm>& unpacked) {
    PackedLaunch one = launch;
    one.w = alike[turn++ % alike.size()]->launch.w;
    return watch.microseconds([&] {
      if (unpacked) {
        multiply_unpacked(one);
      } else {
        launch_packed_matmul(stream_.get(), one);
      }
    });
  };
  tuner_.choose(packed_matmul_shape(launch), {std::nullopt, CublasAlgorithm{}}, run);
}

}  // namespace tgi::cuda
