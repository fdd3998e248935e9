// See panel_matrix.h.
#include "engine/cpu/panel_matrix.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/cpu/grouped_panels.h"
#include "engine/cpu/host_resources.h"
#include "engine/cpu/kernel_choice.h"
#include "engine/tensor/half.h"

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

float element_value(const PanelLayout& layout, const std::byte* panel, int64_t row, int64_t col) {
  const std::byte* from = panel + layout.offset(row, col);
  const auto half = [](const std::byte* at) {
    uint16_t bits = 0;
    std::memcpy(&bits, at, sizeof bits);
    return bits;
  };
  const int64_t group = layout.quantised() ? col / layout.group_size : 0;
  // A scale or a minimum; `block` is what it is a multiple of, if there is such a number.
  const auto head_value = [&](int64_t offset, int64_t block) {
    const std::byte* const at = panel + offset;
    switch (layout.head.scales) {
      case HeadScales::kBF16:
        return bf16_to_f32(half(at));
      case HeadScales::kF16:
        return f16_to_f32(half(at));
      case HeadScales::kExponents:
        return std::bit_cast<float>(std::to_integer<uint32_t>(*at) << 23);
      case HeadScales::kFactors:
        return f16_to_f32(half(panel + block)) *
               static_cast<float>(static_cast<int8_t>(std::to_integer<uint8_t>(*at)));
      case HeadScales::kF32:
        break;
    }
    float value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  const auto scale = [&] {
    return head_value(layout.scale_offset(row, group), layout.block_scale_offset(row, group));
  };
  // The integer as the zero point's distance from it.
  const auto centred = [&](int code, int offset) {
    if (layout.head.minima && is_narrow_integer(layout.type)) return static_cast<float>(code);
    if (!layout.head.zero_points) return static_cast<float>(code - offset);
    const std::byte* at = panel + layout.zero_offset(row, group);
    const float zero = bf16_to_f32(half(at)) * static_cast<float>(offset);
    return static_cast<float>(code - offset) - zero;
  };
  const auto minimum = [&] {
    if (!layout.head.minima) return 0.0F;
    const float value =
        head_value(layout.minimum_offset(row, group), layout.block_minimum_offset(row, group));
    return layout.head.factors() ? -value : value;
  };
  const auto half_byte = [&] {
    const int both = std::to_integer<int>(*from);
    return col % 8 < 4 ? both & 15 : both >> 4;
  };
  switch (layout.type) {
    case PanelType::kF32: {
      float value = 0;
      std::memcpy(&value, from, sizeof value);
      return value;
    }
    case PanelType::kF16:
      return f16_to_f32(half(from));
    case PanelType::kBF16:
      return bf16_to_f32(half(from));
    case PanelType::kInt8:
      return centred(std::to_integer<int>(*from), 128) * scale() + minimum();
    case PanelType::kInt4:
      return centred(half_byte(), 8) * scale() + minimum();
    case PanelType::kMxfp4:
      return static_cast<float>(kMxfp4Codes[half_byte()]) * scale();
    case PanelType::kTable4: {
      const int code = kCodeTables[static_cast<int>(layout.head.table)][half_byte()];
      return static_cast<float>(code - integer_offset(layout.type)) * scale() + minimum();
    }
    case PanelType::kInt6:
    case PanelType::kInt5: {
      const int upper =
          std::to_integer<int>(panel[layout.upper_offset(row, col)]) >> layout.upper_shift(col) &
          ((1 << upper_bits(layout.type)) - 1);
      return centred(half_byte() | upper << 4, integer_offset(layout.type)) * scale() + minimum();
    }
  }
  return 0.0F;
}

PanelType integer_panel(Quantization quantization) {
  switch (quantization) {
    case Quantization::kInt8:
      return PanelType::kInt8;
    case Quantization::kMxfp4:
      return PanelType::kMxfp4;
    case Quantization::kInt6:
      return PanelType::kInt6;
    case Quantization::kInt5:
      return PanelType::kInt5;
    case Quantization::kIq4:
    case Quantization::kNf4:
    case Quantization::kFp4:
      return PanelType::kTable4;
    default:
      return PanelType::kInt4;
  }
}

CodeTable code_table(Quantization quantization) {
  if (quantization == Quantization::kNf4) return CodeTable::kNf4;
  return quantization == Quantization::kFp4 ? CodeTable::kFp4 : CodeTable::kIq4;
}

HeadScales head_scales_of(const MatrixStorage& storage) {
  if (storage.quantization == Quantization::kMxfp4) return HeadScales::kExponents;
  if (!storage.stored) return HeadScales::kBF16;
  switch (storage.scales) {
    case ScaleForm::kF16:
      return HeadScales::kF16;
    case ScaleForm::kFactors:
      return HeadScales::kFactors;
    case ScaleForm::kF32:
      break;
  }
  return HeadScales::kF32;
}

// Calls use(col, value) along one row.
template <typename Use>
void visit_row(const PanelLayout& layout, const std::byte* panel, int64_t row, Use use) {
  for (int64_t col = 0; col < layout.cols; ++col) use(col, element_value(layout, panel, row, col));
}

}  // namespace

float panel_element(const PanelLayout& layout, const std::byte* panel, int64_t row, int64_t col) {
  return element_value(layout, panel, row, col);
}

void require_format(std::string_view format, const MatrixStorage& storage, std::string_view name) {
  if (format == storage.format()) return;
  throw Error(Code::kUnsupported,
              fmt::format("{}: the cpu backend has no kernel for weight format \"{}\", expected "
                          "\"{}\"",
                          name, format, storage.format()));
}

const WeightPart& dense_part(const HostWeight& piece) {
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

PanelLayout PanelMatrix::layout_for(const MatrixStorage& storage,
                                    PairOrder pair_order,
                                    int64_t cols) {
  PanelLayout layout{.type = panel_type(storage.dtype), .cols = cols, .pair_order = pair_order};
  if (storage.quantization == Quantization::kNone) return layout;
  layout.type = integer_panel(storage.quantization);
  layout.group_size = storage.group_size;
  layout.head = {.scales = head_scales_of(storage),
                 .zero_points = storage.zero_points,
                 .minima = storage.minima,
                 .table = code_table(storage.quantization)};
  if (layout.head.factors()) {
    // So that heads are whole lines.
    constexpr int64_t kMostColumns = 64;
    TGI_CHECK(storage.group_size > 0 && storage.group_size <= kMostColumns &&
              kFactorCols % storage.group_size == 0);
    layout.head.factor_groups = static_cast<uint8_t>(kFactorCols / storage.group_size);
  }
  const bool is_small = storage.stored && layout.group_size == 16;
  const bool is_known =
      layout.group_size > 0 && layout.group_size % 32 == 0 && layout.group_size <= 256;
  // The columns of a line of upper bits are of one group.
  const bool is_cut = layout.type == PanelType::kInt5 && layout.group_size % 32 != 0;
  if ((!is_small && !is_known) || is_cut) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("group size {}: the cpu backend takes 32, 64, 96 and so on to 256, of a "
                    "checkpoint's own integers 16 too",
                    layout.group_size));
  }
  return layout;
}

int64_t PanelMatrix::bytes(const PanelLayout& layout, int64_t rows) {
  return round_up(rows, kPanelRows) / kPanelRows * layout.bytes();
}

PanelMatrix::PanelMatrix(std::span<const HostWeight> pieces,
                         const MatrixStorage& storage,
                         const KernelTable& kernels,
                         ThreadPool& pool,
                         std::byte* memory) {
  TGI_CHECK(!pieces.empty());
  cols = pieces[0].cols;
  for (const HostWeight& piece : pieces) {
    require_format(piece.format, storage, piece.name);
    if (piece.cols != cols) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: expected {} columns as {}, got {}", piece.name, cols,
                              pieces[0].name, piece.cols));
    }
    rows += piece.rows;
  }
  layout = layout_for(storage, kernels.pair_order, cols);
  panel_bytes = layout.bytes();
  size_bytes = bytes(layout, rows);
  min_many_rows = measure_min_many_rows(kernels, layout);
  if (storage.stored) {
    for (const HostWeight& piece : pieces) check_grouped(piece, storage);
  } else {
    // Before anything is taken.
    for (const HostWeight& piece : pieces) (void)dense_part(piece);
  }
  if (memory == nullptr) data_ = map_memory(static_cast<size_t>(size_bytes), pieces[0].name);
  panels_ = memory == nullptr ? static_cast<std::byte*>(data_.data()) : memory;
  if (storage.stored) {
    pack_grouped(pieces, pool);
  } else {
    pack_dense(pieces, kernels, pool);
  }
}

void PanelMatrix::pack_dense(std::span<const HostWeight> pieces,
                             const KernelTable& kernels,
                             ThreadPool& pool) {
  const std::vector<SourceRow> sources = stack_rows(pieces, num_panels() * kPanelRows);
  const auto pack = kernels.pack[static_cast<size_t>(layout.type)];
  pool.parallel_for(num_panels(), [&](int64_t index, int /*thread*/) {
    PackPanel job;
    const SourceRow* first = sources.data() + index * kPanelRows;
    std::copy(first, first + kPanelRows, job.rows.begin());
    job.layout = layout;
    job.out = mutable_panel(index);
    pack(job);
  });
}

void PanelMatrix::pack_grouped(std::span<const HostWeight> pieces, ThreadPool& pool) {
  const std::vector<GroupedRow> sources = grouped_rows(pieces);
  pool.parallel_for(num_panels(), [&](int64_t index, int /*thread*/) {
    const auto first = static_cast<size_t>(index * kPanelRows);
    const size_t count = std::min(static_cast<size_t>(kPanelRows), sources.size() - first);
    pack_grouped_panel(std::span(sources).subspan(first, count), layout, mutable_panel(index));
  });
}

void PanelMatrix::copy_row(int64_t row, float* out) const {
  visit_row(layout, panel(row / kPanelRows), row % kPanelRows,
            [&](int64_t col, float value) { out[col] = value; });
}

void PanelMatrix::add_row(int64_t row, float multiplier, float* out) const {
  visit_row(layout, panel(row / kPanelRows), row % kPanelRows,
            [&](int64_t col, float value) { out[col] += value * multiplier; });
}

}  // namespace tgi
