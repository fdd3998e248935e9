// See packed_matrix.h.
#include "cuda/packed_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>

#include "base/error.h"
#include "cuda/rounded_row.h"
#include "engine/tensor/half.h"

namespace tgi::cuda {
namespace {

// A value + 128 to its place in a table of 16.
using Places = std::array<uint8_t, 256>;

Places places_of(const PackedShape& shape) {
  Places out{};
  for (uint32_t place = 16; place-- > 0;) {
    const uint32_t value = shape.table[place / 4] >> place % 4 * 8 & 255;
    out[value] = static_cast<uint8_t>(place);
  }
  return out;
}

void set_table(const int8_t (&values)[16], PackedShape& shape) {
  for (uint32_t place = 0; place < 16; ++place) {
    const auto value = static_cast<uint32_t>(values[place] + 128);
    shape.table[place / 4] |= value << place % 4 * 8;
  }
}

PackedCodes codes_of(Quantization quantization) {
  switch (quantization) {
    case Quantization::kInt4:
      return PackedCodes::kInt4;
    case Quantization::kMxfp4:
      return PackedCodes::kFp4;
    case Quantization::kIq4:
      return PackedCodes::kTable4;
    case Quantization::kF8E4M3:
      return PackedCodes::kF8E4M3;
    default:
      return PackedCodes::kInt8;
  }
}

PackedScales scales_of(const MatrixStorage& storage) {
  if (!storage.stored) return PackedScales::kBF16;
  if (storage.quantization == Quantization::kMxfp4) return PackedScales::kE8M0;
  // What zero points give needs more than f16 has.
  if (storage.zero_points) return PackedScales::kF32;
  switch (storage.scales) {
    case ScaleForm::kF16:
      return PackedScales::kF16;
    case ScaleForm::kFactors:
      return PackedScales::kFactors;
    case ScaleForm::kF32:
      break;
  }
  return PackedScales::kF32;
}

// codes: (shape.cols).
void put_codes(const int8_t* codes,
               int row,
               const PackedShape& shape,
               const Places& places,
               std::byte* panel) {
  const int num_bytes = unit_bytes(shape.codes);
  const int32_t num_units = (shape.cols + kUnitCols - 1) / kUnitCols;
  for (int32_t unit = 0; unit < num_units; ++unit) {
    // Of what is past the end: 0, or whatever the table begins with, times x, which is 0.
    int8_t of_unit[kUnitCols] = {};
    const int32_t begin = unit * kUnitCols;
    std::memcpy(of_unit, codes + begin,
                static_cast<size_t>(std::min(kUnitCols, shape.cols - begin)));
    const int32_t units = units_of_chunk(shape.codes);
    std::byte* const chunk = panel + int64_t{unit / units} * kChunkBytes * kPanelOutputs +
                             row * kChunkBytes + unit % units * num_bytes;
    for (int lane = 0; lane < 4; ++lane) {
      uint64_t bits = 0;
      for (int code = 0; code < 8; ++code) {
        const int8_t value = of_unit[16 * (code / 4) + 4 * lane + code % 4];
        if (code_bits(shape.codes) == 8) {
          const int offset = shape.codes == PackedCodes::kInt8 ? 128 : 0;
          bits |= uint64_t{static_cast<uint8_t>(value + offset)} << 8 * code;
          continue;
        }
        const auto place = shape.codes == PackedCodes::kInt4
                               ? static_cast<uint8_t>(value + shape.offset) & 15U
                               : places[static_cast<uint8_t>(value + 128)];
        bits |= uint64_t{place} << 4 * (code % 2 * 4 + code / 2);
      }
      std::memcpy(chunk + lane * 16, &bits, static_cast<size_t>(num_bytes));
    }
  }
}

void put_number(float value, PackedScales as, int64_t at, std::byte* to) {
  if (as == PackedScales::kE8M0) {
    to[at] = static_cast<std::byte>(std::bit_cast<uint32_t>(value) >> 23);
  } else if (as == PackedScales::kF16 || as == PackedScales::kBF16) {
    const uint16_t half = as == PackedScales::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
    std::memcpy(to + at * 2, &half, sizeof half);
  } else {
    std::memcpy(to + at * 4, &value, sizeof value);
  }
}

// Of one row: integers for each group, numbers for each 256 columns.
void put_factors(const int8_t* group_numbers,
                 const float* block_numbers,
                 int row,
                 const PackedShape& shape,
                 std::byte* to) {
  for (int64_t group = 0; group < shape.num_groups; ++group) {
    to[group * kPanelOutputs + row] = static_cast<std::byte>(group_numbers[group]);
  }
  for (int64_t block = 0; block < shape.num_factors; ++block) {
    put_number(block_numbers[block], PackedScales::kF16, block * kPanelOutputs + row,
               to + shape.factors_at);
  }
}

void put_scales(const PackedRow& from, int row, const PackedShape& shape, std::byte* panel) {
  const GroupedPart& part = from.piece->grouped;
  const int64_t first = from.row * part.num_groups;
  if (shape.scales == PackedScales::kFactors) {
    const int64_t first_block = from.row * shape.num_factors;
    put_factors(part.factors.group_scales + first, part.factors.block_scales + first_block, row,
                shape, panel + shape.scales_at);
    if (!shape.has_minima) return;
    put_factors(part.factors.group_minima + first, part.factors.block_minima + first_block, row,
                shape, panel + shape.minima_at);
    return;
  }
  for (int64_t group = 0; group < part.num_groups; ++group) {
    const int64_t at = group * kPanelOutputs + row;
    const float scale = part.scales[first + group];
    put_number(scale, shape.scales, at, panel + shape.scales_at);
    if (!shape.has_minima) continue;
    const int zero = part.zeros == nullptr ? 0 : part.zeros[first + group];
    const float minimum =
        part.minima == nullptr ? -scale * static_cast<float>(zero) : part.minima[first + group];
    put_number(minimum, shape.scales, at, panel + shape.minima_at);
  }
}

}  // namespace

std::optional<PackedShape> packed_shape(const MatrixStorage& storage, int64_t rows, int64_t cols) {
  const bool is_plain = storage.quantization == Quantization::kNone;
  if (is_plain || value_table(storage.quantization) != nullptr) return std::nullopt;
  const bool is_known = storage.group_size == kFineGroup ||
                        (storage.group_size > 0 && storage.group_size % kUnitCols == 0 &&
                         storage.group_size <= kMaxPackedGroup);
  if (!is_known || cols > kMaxPackedCols) return std::nullopt;
  PackedShape shape;
  shape.codes = codes_of(storage.quantization);
  shape.scales = scales_of(storage);
  shape.has_minima = storage.zero_points || storage.minima;
  shape.offset = storage.minima ? 0 : 8;
  shape.outputs = static_cast<int32_t>(rows);
  shape.cols = static_cast<int32_t>(cols);
  shape.group_size = storage.group_size;
  shape.plan();
  if (storage.quantization == Quantization::kMxfp4) set_table(kMxfp4Codes, shape);
  if (storage.quantization == Quantization::kIq4) set_table(kIq4Codes, shape);
  return shape;
}

void check_packed_piece(const HostWeight& piece, const MatrixStorage& storage) {
  const auto refuse = [&](const std::string& what) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: {}", piece.name, what));
  };
  const GroupedPart& part = piece.grouped;
  if (part.codes == nullptr || part.scales == nullptr) {
    refuse("a grouped matrix needs codes and scales");
  }
  const int64_t num_groups =
      (piece.cols + part.group_size - 1) / std::max<int64_t>(1, part.group_size);
  if (part.group_size != storage.group_size || part.num_groups != num_groups) {
    refuse(fmt::format("expected groups of {} of {} columns, got {} groups of {}",
                       storage.group_size, piece.cols, part.num_groups, part.group_size));
  }
  if (part.zeros != nullptr && !storage.zero_points) {
    refuse("has zero points that were not planned for");
  }
  if ((part.minima != nullptr) != storage.minima) {
    refuse(storage.minima ? "expected minima" : "has minima that were not planned for");
  }
  const ScaleFactors& factors = part.factors;
  const bool lacks_minima = factors.block_minima == nullptr || factors.group_minima == nullptr;
  if (storage.scales == ScaleForm::kFactors &&
      (factors.block_scales == nullptr || factors.group_scales == nullptr ||
       (storage.minima && lacks_minima))) {
    refuse("expected the factors of scales");
  }
}

std::vector<PackedRow> packed_rows(std::span<const HostWeight> pieces) {
  std::vector<PackedRow> out;
  for (const HostWeight& piece : pieces) {
    for (int64_t row = 0; row < piece.rows; ++row) out.push_back({.piece = &piece, .row = row});
  }
  return out;
}

void pack_panel(std::span<const PackedRow> rows, const PackedShape& shape, std::byte* out) {
  std::memset(out, 0, static_cast<size_t>(shape.panel_bytes));
  const Places places = places_of(shape);
  RoundedRow rounded;
  for (size_t i = 0; i < rows.size(); ++i) {
    const PackedRow& from = rows[i];
    const auto row = static_cast<int>(i);
    if (from.piece->format == "grouped") {
      put_codes(from.piece->grouped.codes + from.row * shape.cols, row, shape, places, out);
      put_scales(from, row, shape, out);
      continue;
    }
    round_row(from.piece->parts.front(), from.row, code_bits(shape.codes), shape.group_size,
              rounded);
    put_codes(rounded.codes.data(), row, shape, places, out);
    for (size_t group = 0; group < rounded.scales.size(); ++group) {
      put_number(rounded.scales[group], shape.scales,
                 static_cast<int64_t>(group) * kPanelOutputs + row, out + shape.scales_at);
    }
  }
}

}  // namespace tgi::cuda
