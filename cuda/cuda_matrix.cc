#include "cuda/cuda_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "base/error.h"
#include "cuda/kernels/random_weights.h"
#include "cuda/launch.h"
#include "engine/tensor/half.h"
#include "engine/tensor/weight_element.h"

namespace tgi::cuda {
namespace {

constexpr size_t kStagingBytes = size_t{64} << 20;
constexpr size_t kBytesPerThread = size_t{4} << 20;
constexpr unsigned kMaxThreads = 8;

int64_t padded(int64_t cols) {
  return (cols + 7) / 8 * 8;
}

void require_supported(std::string_view format,
                       const MatrixStorage& storage,
                       std::string_view name) {
  if (format != storage.format()) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: the cuda backend has no kernel for weight format \"{}\", expected "
                            "\"{}\"",
                            name, format, storage.format()));
  }
  // A checkpoint's own integers are held as what they stand for.
  if (storage.quantization != Quantization::kNone && !storage.stored) {
    throw Error(
        Code::kUnsupported,
        fmt::format(
            "{}: the cuda backend has no kernel for {} weights yet; load without --quantize, "
            "or with --backend cpu",
            name, quantization_name(storage.quantization)));
  }
  if (storage.dtype != DType::kBF16 && storage.dtype != DType::kF16) {
    throw Error(
        Code::kUnsupported,
        fmt::format("{}: the cuda backend computes in bf16 or f16, got {}; give --dtype bf16, or "
                    "--backend cpu",
                    name, dtype_name(storage.dtype)));
  }
}

void write_row(const WeightPart& part, int64_t row, DType dtype, int64_t stride, std::byte* out) {
  write_rounded_row(part, row, dtype, out);
  std::memset(out + part.cols * 2, 0, static_cast<size_t>(stride - part.cols) * 2);
}

// A row of a piece that is stored as integers in groups.
void write_grouped_row(
    const HostWeight& piece, int64_t row, DType dtype, int64_t stride, std::byte* out) {
  const GroupedPart& part = piece.grouped;
  for (int64_t col = 0; col < piece.cols; ++col) {
    const int64_t group = row * part.num_groups + col / part.group_size;
    const int zero = part.zeros == nullptr ? 0 : part.zeros[group];
    float value =
        part.scales[group] * static_cast<float>(part.codes[row * piece.cols + col] - zero);
    if (part.minima != nullptr) value += part.minima[group];
    const uint16_t bits = dtype == DType::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
    std::memcpy(out + col * 2, &bits, sizeof bits);
  }
  std::memset(out + piece.cols * 2, 0, static_cast<size_t>(stride - piece.cols) * 2);
}

const WeightPart& dense_part(const HostWeight& piece) {
  TGI_CHECK(piece.parts.size() == 1 && (piece.parts[0].data != nullptr || piece.parts[0].random));
  const WeightPart& part = piece.parts[0];
  if (part.rows != piece.rows || part.cols != piece.cols) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected ({}, {}), got ({}, {})", piece.name, piece.rows,
                            piece.cols, part.rows, part.cols));
  }
  return part;
}

}  // namespace

void write_rounded_row(const WeightPart& part, int64_t row, DType dtype, std::byte* out) {
  if (part.dtype == dtype && part.col_stride == 1) {
    std::memcpy(out, part.data + row * part.row_stride * 2, static_cast<size_t>(part.cols) * 2);
    return;
  }
  for (int64_t col = 0; col < part.cols; ++col) {
    const float value = weight_element(part, row, col);
    const uint16_t bits = dtype == DType::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
    std::memcpy(out + col * 2, &bits, sizeof bits);
  }
}

struct MatrixLoader::State {
  struct Staging {
    Buffer memory;
    Event copied;
    bool in_use = false;
  };

  explicit State(cudaStream_t on) : stream(on) {}

  Staging& next_staging() {
    Staging& out = staging[next++ % staging.size()];
    if (!out.memory) out.memory = allocate_pinned(kStagingBytes, "buffer for loading weights");
    if (out.in_use) out.copied.synchronize();
    return out;
  }

  cudaStream_t stream;
  std::array<Staging, 2> staging;
  size_t next = 0;
};

MatrixLoader::MatrixLoader(cudaStream_t stream) : state_(std::make_unique<State>(stream)) {}

MatrixLoader::~MatrixLoader() {
  (void)cudaStreamSynchronize(state_->stream);  // the pinned buffers are still being read
}

std::unique_ptr<CudaMatrix> MatrixLoader::load(std::span<const HostWeight> pieces,
                                               const MatrixStorage& storage) {
  TGI_CHECK(!pieces.empty());
  auto matrix = std::make_unique<CudaMatrix>();
  matrix->cols = pieces[0].cols;
  for (const HostWeight& piece : pieces) {
    require_supported(piece.format, storage, piece.name);
    if (piece.cols != matrix->cols) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: expected {} columns as {}, got {}", piece.name, matrix->cols,
                              pieces[0].name, piece.cols));
    }
    matrix->rows += piece.rows;
  }
  matrix->dtype = storage.dtype;
  matrix->stride = padded(matrix->cols);
  matrix->size_bytes = cuda_matrix_bytes(storage.format(), storage, matrix->rows, matrix->cols);
  matrix->memory = allocate_device(static_cast<size_t>(matrix->size_bytes), pieces[0].name);

  const auto row_bytes = static_cast<size_t>(matrix->stride) * 2;
  const auto rows_at_once = static_cast<int64_t>(std::max<size_t>(kStagingBytes / row_bytes, 1));
  if (row_bytes > kStagingBytes) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: rows of {} bytes, the cuda backend loads up to {}", pieces[0].name,
                            row_bytes, kStagingBytes));
  }
  auto* to = static_cast<std::byte*>(matrix->memory.data());
  for (const HostWeight& piece : pieces) {
    const WeightPart* const part = storage.stored ? nullptr : &dense_part(piece);
    if (part != nullptr && part->random) {
      launch_random_weights(state_->stream, *part, matrix->dtype, matrix->stride, to);
      to += static_cast<size_t>(piece.rows) * row_bytes;
      continue;
    }
    for (int64_t begin = 0; begin < piece.rows; begin += rows_at_once) {
      const int64_t count = std::min(rows_at_once, piece.rows - begin);
      State::Staging& staging = state_->next_staging();
      auto* const host = static_cast<std::byte*>(staging.memory.data());
      const size_t size_bytes = static_cast<size_t>(count) * row_bytes;
      const auto fill = [&](int64_t first, int64_t end) {
        for (int64_t row = first; row < end; ++row) {
          std::byte* const out = host + static_cast<size_t>(row) * row_bytes;
          if (part == nullptr) {
            write_grouped_row(piece, begin + row, matrix->dtype, matrix->stride, out);
          } else {
            write_row(*part, begin + row, matrix->dtype, matrix->stride, out);
          }
        }
      };
      const auto num_threads = static_cast<int64_t>(std::clamp<size_t>(
          size_bytes / kBytesPerThread, 1,
          std::min(kMaxThreads, std::max(1U, std::thread::hardware_concurrency()))));
      {
        std::vector<std::jthread> threads;
        for (int64_t t = 1; t < num_threads; ++t) {
          threads.emplace_back(fill, count * t / num_threads, count * (t + 1) / num_threads);
        }
        fill(0, count / num_threads);
      }
      check(cudaMemcpyAsync(to, host, size_bytes, cudaMemcpyHostToDevice, state_->stream),
            "copying weights");
      staging.copied.record(state_->stream);
      staging.in_use = true;
      to += size_bytes;
    }
  }
  return matrix;
}

int64_t cuda_matrix_bytes(std::string_view format,
                          const MatrixStorage& storage,
                          int64_t rows,
                          int64_t cols) {
  require_supported(format, storage, "weights");
  return rows * padded(cols) * 2;
}

}  // namespace tgi::cuda
