#include "cuda/cuda_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "cuda/kernels/random_weights.h"
#include "cuda/launch.h"
#include "cuda/packed_matrix.h"
#include "engine/tensor/float8.h"
#include "engine/tensor/half.h"
#include "engine/tensor/weight_element.h"

namespace tgi::cuda {
namespace {

constexpr size_t kStagingBytes = size_t{64} << 20;
// What is worth a thread of its own: of rows that are copied, and of panels that are rounded or
// packed.
constexpr size_t kCopiedBytesPerThread = size_t{4} << 20;
constexpr size_t kPackedBytesPerThread = size_t{128} << 10;
constexpr unsigned kMaxThreads = 16;

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

// A row of a piece that is stored as integers in groups, or as 8-bit floats.
void write_grouped_row(const HostWeight& piece,
                       int64_t row,
                       const MatrixStorage& storage,
                       int64_t stride,
                       std::byte* out) {
  const GroupedPart& part = piece.grouped;
  const bool is_f8 = storage.quantization == Quantization::kF8E4M3;
  for (int64_t col = 0; col < piece.cols; ++col) {
    const int64_t group = row * part.num_groups + col / part.group_size;
    const int zero = part.zeros == nullptr ? 0 : part.zeros[group];
    const int8_t code = part.codes[row * piece.cols + col];
    float value = part.scales[group] * (is_f8 ? e4m3_to_f32(static_cast<uint8_t>(code))
                                              : static_cast<float>(code - zero));
    if (part.minima != nullptr) value += part.minima[group];
    const uint16_t bits = storage.dtype == DType::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
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

  // Copies `count` items of `item_bytes` to `to`, each written by fill(index, out), which may be
  // called from several threads at once, each with bytes_per_thread at least.
  void upload(int64_t count,
              size_t item_bytes,
              size_t bytes_per_thread,
              std::byte* to,
              std::string_view name,
              const std::function<void(int64_t index, std::byte* out)>& fill);

  cudaStream_t stream;
  std::array<Staging, 2> staging;
  size_t next = 0;
};

void MatrixLoader::State::upload(int64_t count,
                                 size_t item_bytes,
                                 size_t bytes_per_thread,
                                 std::byte* to,
                                 std::string_view name,
                                 const std::function<void(int64_t index, std::byte* out)>& fill) {
  if (item_bytes > kStagingBytes) {
    throw Error(Code::kUnsupported, fmt::format("{}: rows of {} bytes, the cuda backend loads up "
                                                "to {}",
                                                name, item_bytes, kStagingBytes));
  }
  const auto at_once = static_cast<int64_t>(std::max<size_t>(kStagingBytes / item_bytes, 1));
  for (int64_t begin = 0; begin < count; begin += at_once) {
    const int64_t part = std::min(at_once, count - begin);
    Staging& buffer = next_staging();
    auto* const host = static_cast<std::byte*>(buffer.memory.data());
    const size_t size_bytes = static_cast<size_t>(part) * item_bytes;
    const auto fill_items = [&](int64_t first, int64_t end) {
      for (int64_t i = first; i < end; ++i) {
        fill(begin + i, host + static_cast<size_t>(i) * item_bytes);
      }
    };
    const auto num_threads = static_cast<int64_t>(std::clamp<size_t>(
        size_bytes / bytes_per_thread, 1,
        std::min(kMaxThreads, std::max(1U, std::thread::hardware_concurrency()))));
    {
      std::vector<std::jthread> threads;
      for (int64_t t = 1; t < num_threads; ++t) {
        threads.emplace_back(fill_items, part * t / num_threads, part * (t + 1) / num_threads);
      }
      fill_items(0, part / num_threads);
    }
    check(cudaMemcpyAsync(to, host, size_bytes, cudaMemcpyHostToDevice, stream), "copying weights");
    buffer.copied.record(stream);
    buffer.in_use = true;
    to += size_bytes;
  }
}

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
  matrix->packed = packed_shape(storage, matrix->rows, matrix->cols);
  matrix->size_bytes = cuda_matrix_bytes(storage.format(), storage, matrix->rows, matrix->cols);
  if (matrix->packed) {
    for (const HostWeight& piece : pieces) {
      storage.stored ? check_packed_piece(piece, storage) : (void)dense_part(piece);
    }
  }
  matrix->memory = allocate_device(static_cast<size_t>(matrix->size_bytes), pieces[0].name);
  auto* to = static_cast<std::byte*>(matrix->memory.data());
  if (matrix->packed) {
    const PackedShape& shape = *matrix->packed;
    const std::vector<PackedRow> rows = packed_rows(pieces);
    state_->upload(shape.num_panels, static_cast<size_t>(shape.panel_bytes), kPackedBytesPerThread,
                   to, pieces[0].name, [&](int64_t panel, std::byte* out) {
                     const auto first = static_cast<size_t>(panel * kPanelOutputs);
                     const size_t count = std::min<size_t>(kPanelOutputs, rows.size() - first);
                     pack_panel(std::span(rows).subspan(first, count), shape, out);
                   });
    return matrix;
  }
  const auto row_bytes = static_cast<size_t>(matrix->stride) * 2;
  for (const HostWeight& piece : pieces) {
    const WeightPart* const part = storage.stored ? nullptr : &dense_part(piece);
    if (part != nullptr && part->random) {
      launch_random_weights(state_->stream, *part, matrix->dtype, matrix->stride, to);
    } else {
      state_->upload(piece.rows, row_bytes,
                     part == nullptr ? kPackedBytesPerThread : kCopiedBytesPerThread, to,
                     pieces[0].name, [&](int64_t row, std::byte* out) {
                       if (part == nullptr) {
                         write_grouped_row(piece, row, storage, matrix->stride, out);
                       } else {
                         write_row(*part, row, matrix->dtype, matrix->stride, out);
                       }
                     });
    }
    to += static_cast<size_t>(piece.rows) * row_bytes;
  }
  return matrix;
}

int64_t cuda_matrix_bytes(std::string_view format,
                          const MatrixStorage& storage,
                          int64_t rows,
                          int64_t cols) {
  require_supported(format, storage, "weights");
  if (const auto packed = packed_shape(storage, rows, cols)) return packed->size_bytes();
  if (storage.quantization != Quantization::kNone && !storage.stored) {
    throw Error(Code::kUnsupported,
                fmt::format("{} in groups of {}, rows of {} columns: the cuda backend rounds to "
                            "groups of 32 to {} and rows of up to {}; load without --quantize, or "
                            "with --backend cpu",
                            quantization_name(storage.quantization), storage.group_size, cols,
                            kMaxPackedGroup, kMaxPackedCols));
  }
  return rows * padded(cols) * 2;
}

}  // namespace tgi::cuda
