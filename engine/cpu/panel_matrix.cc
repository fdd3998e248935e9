// See panel_matrix.h.
#include "engine/cpu/panel_matrix.h"

#include <fmt/format.h>

#include "base/error.h"
#include "engine/cpu/half.h"
#include "engine/cpu/host_resources.h"

namespace tgi {
namespace {

SourceRow source_row(const WeightPart& part, int64_t row) {
  const auto offset = row * part.row_stride * static_cast<int64_t>(dtype_size(part.dtype));
  return {.data = part.data + offset, .dtype = part.dtype, .col_stride = part.col_stride};
}

// All rows of the stacked pieces; missing ones at the end of the last panel stay null.
std::vector<SourceRow> stack_rows(std::span<const HostWeight> pieces, int64_t padded_rows) {
  std::vector<SourceRow> rows;
  rows.reserve(static_cast<size_t>(padded_rows));
  for (const HostWeight& piece : pieces) {
    const WeightPart& part = dense_part(piece);
    for (int64_t row = 0; row < piece.rows; ++row) rows.push_back(source_row(part, row));
  }
  rows.resize(static_cast<size_t>(padded_rows));
  return rows;
}

// Calls use(col, value) along one row.
template <typename Use>
void visit_row(const std::byte* panel, DType dtype, int64_t lane, int64_t cols, Use use) {
  const auto visit = [&]<typename Element, DType kDType>(auto convert) {
    for (int64_t col = 0; col < cols; ++col) {
      Element element;
      __builtin_memcpy(&element, panel + panel_offset_bytes(kDType, lane, col), sizeof element);
      use(col, convert(element));
    }
  };
  switch (dtype) {
    case DType::kF32:
      return visit.template operator()<float, DType::kF32>([](float x) { return x; });
    case DType::kF16:
      return visit.template operator()<uint16_t, DType::kF16>(f16_to_f32);
    case DType::kBF16:
      return visit.template operator()<uint16_t, DType::kBF16>(bf16_to_f32);
  }
}

}  // namespace

void require_dense(std::string_view format, std::string_view name) {
  if (format == "dense") return;
  throw Error(Code::kUnsupported,
              fmt::format("{}: the cpu backend has no kernel for weight format \"{}\", expected "
                          "\"dense\"",
                          name, format));
}

const WeightPart& dense_part(const HostWeight& piece) {
  require_dense(piece.format, piece.name);
  if (piece.parts.size() != 1 || piece.parts[0].role != "weight") {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: a dense matrix has one part named weight, got {} parts",
                            piece.name, piece.parts.size()));
  }
  const WeightPart& part = piece.parts[0];
  if (part.rows != piece.rows || part.cols != piece.cols || part.data == nullptr) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected ({}, {}), got ({}, {})", piece.name, piece.rows,
                            piece.cols, part.rows, part.cols));
  }
  return part;
}

int64_t PanelMatrix::bytes(DType dtype, int64_t rows, int64_t cols) {
  return round_up(rows, kPanelRows) / kPanelRows * tgi::panel_bytes(dtype, cols);
}

PanelMatrix::PanelMatrix(std::span<const HostWeight> pieces,
                         DType matrix_dtype,
                         const KernelTable& kernels,
                         ThreadPool& pool)
    : dtype(matrix_dtype) {
  TGI_CHECK(!pieces.empty());
  cols = pieces[0].cols;
  for (const HostWeight& piece : pieces) {
    if (piece.cols != cols) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: expected {} columns as {}, got {}", piece.name, cols,
                              pieces[0].name, piece.cols));
    }
    rows += piece.rows;
  }
  panel_bytes = tgi::panel_bytes(dtype, cols);
  size_bytes = bytes(dtype, rows, cols);
  const std::vector<SourceRow> sources = stack_rows(pieces, num_panels() * kPanelRows);
  data_ = map_memory(static_cast<size_t>(size_bytes), pieces[0].name);

  const auto pack = kernels.pack[static_cast<size_t>(dtype)];
  pool.parallel_for(num_panels(), [&](int64_t index, int /*thread*/) {
    PackPanel job;
    const SourceRow* first = sources.data() + index * kPanelRows;
    std::copy(first, first + kPanelRows, job.rows.begin());
    job.cols = cols;
    job.out = static_cast<std::byte*>(data_.data()) + index * panel_bytes;
    pack(job);
  });
}

void PanelMatrix::copy_row(int64_t row, float* out) const {
  visit_row(panel(row / kPanelRows), dtype, row % kPanelRows, cols,
            [&](int64_t col, float value) { out[col] = value; });
}

void PanelMatrix::add_row(int64_t row, float multiplier, float* out) const {
  visit_row(panel(row / kPanelRows), dtype, row % kPanelRows, cols,
            [&](int64_t col, float value) { out[col] += value * multiplier; });
}

}  // namespace tgi
