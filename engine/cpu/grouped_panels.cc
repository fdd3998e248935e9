// See grouped_panels.h.
#include "engine/cpu/grouped_panels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>

#include "base/error.h"
#include "engine/tensor/half.h"

namespace tgi {
namespace {

[[noreturn]] void refuse_piece(const HostWeight& piece, const std::string& what) {
  throw Error(Code::kInvalidArgument, fmt::format("{}: {}", piece.name, what));
}

// A code + 128 to its place in a table of 16.
using Places = std::array<uint8_t, 256>;

constexpr Places places_in(const int8_t (&codes)[16]) {
  Places out{};
  for (size_t i = 0; i < out.size(); ++i) {
    while (out[i] < 15 && codes[out[i]] + 128 != static_cast<int>(i)) ++out[i];
  }
  return out;
}

constexpr Places kMxfp4Places = places_in(kMxfp4Codes);
constexpr Places kIq4Places = places_in(kIq4Codes);

uint32_t look_up_four(const int8_t* codes, const Places& places) {
  uint32_t out = 0;
  for (int i = 0; i < 4; ++i) out |= uint32_t{places[static_cast<size_t>(codes[i] + 128)]} << 8 * i;
  return out;
}

uint32_t load_four(const int8_t* codes) {
  uint32_t four = 0;
  std::memcpy(&four, codes, sizeof four);
  return four;
}

// What 4 codes are stored as, each in a byte: + an offset or, with minima, as they are.
template <PanelType kType>
uint32_t stored_four(const int8_t* codes, const GroupHead& head) {
  if constexpr (kType == PanelType::kMxfp4) return look_up_four(codes, kMxfp4Places);
  if constexpr (kType == PanelType::kTable4) {
    return head.table == CodeTable::kIq4 ? look_up_four(codes, kIq4Places) : load_four(codes);
  }
  constexpr uint32_t kEach = 0x01010101U;
  constexpr auto kOffset = static_cast<uint32_t>(integer_offset(kType));
  const uint32_t four = load_four(codes);
  // The offset is the bit of the sign: adding it is flipping that.
  const bool is_as_it_is = head.minima && is_narrow_integer(kType);
  return is_as_it_is ? four : (four & kEach * (2 * kOffset - 1)) ^ kEach * kOffset;
}

// 4 or 8 columns of one row where a lane of the panel wants them.
template <PanelType kType>
void put_line(const int8_t* codes, const GroupHead& head, std::byte* to) {
  uint32_t bytes = stored_four<kType>(codes, head);
  if constexpr (kType != PanelType::kInt8) {
    bytes |= stored_four<kType>(codes + 4, head) << 4;
  }
  std::memcpy(to, &bytes, sizeof bytes);
}

// The same of the columns that share a line of upper bits.
template <PanelType kType>
void put_lines(const int8_t* codes, const GroupHead& head, std::byte* to) {
  constexpr int kBits = upper_bits(kType);
  constexpr uint32_t kUpper = 0x01010101U * ((1U << kBits) - 1);
  constexpr uint32_t kLower = 0x0f0f0f0fU;
  uint32_t upper = 0;
  for (int i = 0; i < upper_line_cols(kType) / 8; ++i) {
    const uint32_t first = stored_four<kType>(codes + 8 * i, head);
    const uint32_t second = stored_four<kType>(codes + 8 * i + 4, head);
    upper |= (first >> 4 & kUpper) << 2 * i * kBits | (second >> 4 & kUpper) << (2 * i + 1) * kBits;
    const uint32_t lower = (first & kLower) | (second & kLower) << 4;
    std::memcpy(to + 64 * (i + 1), &lower, sizeof lower);
  }
  std::memcpy(to, &upper, sizeof upper);
}

void put_number(float value, HeadScales as, std::byte* to) {
  if (as == HeadScales::kF32) {
    std::memcpy(to, &value, sizeof value);
    return;
  }
  const uint16_t half = f32_to_f16(value);
  std::memcpy(to, &half, sizeof half);
}

// The lines of one group; columns that are not there, and rows, are zeros.
template <PanelType kType>
void put_codes(const GroupedRow& row, int64_t group, const PanelLayout& layout, std::byte* line) {
  constexpr bool kHasUpper = upper_bits(kType) > 0;
  constexpr int64_t kPutCols = kHasUpper                   ? upper_line_cols(kType)
                               : kType == PanelType::kInt8 ? 4
                                                           : 8;
  constexpr int64_t kPutBytes = kHasUpper ? (kPutCols / 8 + 1) * 64 : 64;
  const auto put = [&](const int8_t* codes) {
    if constexpr (kHasUpper) {
      put_lines<kType>(codes, layout.head, line);
    } else {
      put_line<kType>(codes, layout.head, line);
    }
  };
  const int64_t begin = group * layout.group_size;
  const int64_t count = row.codes == nullptr ? 0 : std::min(layout.group_size, layout.cols - begin);
  int64_t i = 0;
  for (; i + kPutCols <= count; i += kPutCols, line += kPutBytes) put(row.codes + begin + i);
  for (; i < layout.group_size; i += kPutCols, line += kPutBytes) {
    int8_t rest[kPutCols] = {};
    for (int64_t j = i; j < count; ++j) rest[j - i] = row.codes[begin + j];
    put(rest);
  }
}

// One row's part of a head: what belongs to its groups, each kPanelRows numbers behind the last.
struct HeadOfRow {
  const GroupHead& shape;
  int64_t lane;
  int64_t first;  // group
  int64_t count;  // of groups
  std::byte* head;

  std::byte* scale(int64_t i) const { return place(shape.scales_at(), i, shape.scale_bytes()); }
  std::byte* minimum(int64_t i) const { return place(shape.minima_at(), i, shape.scale_bytes()); }
  std::byte* zero(int64_t i) const { return place(shape.zeros_at(), i, 2); }
  std::byte* place(int64_t begin, int64_t i, int64_t bytes) const {
    return head + GroupHead::place(begin, i, lane, bytes);
  }
};

void put_factors(const GroupedRow& row, const HeadOfRow& to) {
  if (row.codes == nullptr) return;
  const ScaleFactors& factors = row.factors;
  const int64_t block = to.first / to.shape.num_groups();
  put_number(factors.block_scales[block], HeadScales::kF16, to.place(0, 0, 2));
  for (int64_t i = 0; i < to.count; ++i) {
    *to.scale(i) = static_cast<std::byte>(factors.group_scales[to.first + i]);
  }
  if (!to.shape.minima) return;
  put_number(factors.block_minima[block], HeadScales::kF16, to.place(0, 1, 2));
  for (int64_t i = 0; i < to.count; ++i) {
    *to.minimum(i) = static_cast<std::byte>(factors.group_minima[to.first + i]);
  }
}

void put_exponents(const GroupedRow& row, const HeadOfRow& to) {
  for (int64_t i = 0; i < to.count; ++i) {
    // Ones below the smallest normal number become 0, as products with them do everywhere.
    const float scale = row.codes == nullptr ? 0.0F : row.scales[to.first + i];
    *to.scale(i) = static_cast<std::byte>(std::bit_cast<uint32_t>(scale) >> 23);
  }
}

// `divisor`: what is added to codes of this width.
void put_numbers(const GroupedRow& row, int divisor, const HeadOfRow& to) {
  const HeadScales as = to.shape.scales;
  const float steps = kTableSteps[static_cast<int>(to.shape.table)];
  for (int64_t i = 0; i < to.count; ++i) {
    const int64_t group = to.first + i;
    put_number(row.codes == nullptr ? 0.0F : row.scales[group] / steps, as, to.scale(i));
    if (to.shape.minima) {
      put_number(row.minima == nullptr ? 0.0F : row.minima[group], as, to.minimum(i));
    }
    if (!to.shape.zero_points) continue;
    const auto zero = static_cast<float>(row.zeros == nullptr ? 0 : row.zeros[group]);
    const uint16_t half = f32_to_bf16(zero / static_cast<float>(divisor));
    std::memcpy(to.zero(i), &half, sizeof half);
  }
}

template <PanelType kType>
void put_row(const GroupedRow& row, int64_t lane, const PanelLayout& layout, std::byte* panel) {
  const int64_t num_groups = layout.num_groups();
  const int64_t per_head = layout.head.num_groups();
  const int64_t group_bytes = layout.group_bytes();
  const int64_t head_stride = layout.head_stride();
  std::byte* head = panel;
  for (int64_t first = 0; first < num_groups; first += per_head) {
    const HeadOfRow to{.shape = layout.head,
                       .lane = lane,
                       .first = first,
                       .count = std::min(per_head, num_groups - first),
                       .head = head};
    if constexpr (kType == PanelType::kMxfp4) {
      put_exponents(row, to);
    } else if (layout.head.factors()) {
      put_factors(row, to);
    } else {
      put_numbers(row, integer_offset(kType), to);
    }
    std::byte* lines = head + layout.head.bytes() + lane * 4;
    for (int64_t i = 0; i < to.count; ++i, lines += group_bytes) {
      put_codes<kType>(row, first + i, layout, lines);
    }
    head += head_stride;
  }
}

bool is_f16(float number) {
  const uint32_t bits = std::bit_cast<uint32_t>(number);
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  // Most are normal numbers of f16.
  constexpr uint32_t kSmallest = 0x38800000U;
  constexpr uint32_t kEnd = 0x47800000U;
  if ((bits & 0x1FFFU) == 0 && magnitude >= kSmallest && magnitude < kEnd) return true;
  return std::bit_cast<uint32_t>(f16_to_f32(f32_to_f16(number))) == bits;
}

// Whether none of the numbers is another one in f16.
bool all_are_f16(const float* numbers, int64_t count) {
  return std::all_of(numbers, numbers + count, is_f16);
}

// Scales that are divided by the steps of a table are held as f32.
void check_table(const HostWeight& piece, const MatrixStorage& storage) {
  const float* const table = value_table(storage.quantization);
  if (piece.grouped.table != table) {
    refuse_piece(piece, table == nullptr ? "has a table that was not planned for"
                                         : "expected the codes of another table");
  }
  if (table != nullptr && (storage.scales != ScaleForm::kF32 || storage.zero_points)) {
    refuse_piece(piece, "codes of a table have scales of f32 and no zero points");
  }
}

void check_scale_form(const HostWeight& piece, const MatrixStorage& storage) {
  const GroupedPart& part = piece.grouped;
  if (storage.scales == ScaleForm::kF16) {
    const int64_t count = piece.rows * part.num_groups;
    if (!all_are_f16(part.scales, count) || (storage.minima && !all_are_f16(part.minima, count))) {
      refuse_piece(piece, "expected scales and minima of f16");
    }
  }
  if (storage.scales == ScaleForm::kFactors) {
    const ScaleFactors& factors = part.factors;
    if (factors.block_scales == nullptr || factors.group_scales == nullptr ||
        (storage.minima && (factors.block_minima == nullptr || factors.group_minima == nullptr))) {
      refuse_piece(piece, "expected the factors of scales");
    }
  }
}

ScaleFactors factors_of_row(const GroupedPart& part, int64_t cols, int64_t row) {
  const ScaleFactors& all = part.factors;
  if (all.block_scales == nullptr) return {};
  const int64_t first_block = row * ((cols + kFactorCols - 1) / kFactorCols);
  const int64_t first_group = row * part.num_groups;
  ScaleFactors out{.block_scales = all.block_scales + first_block,
                   .group_scales = all.group_scales + first_group};
  if (all.block_minima == nullptr) return out;
  out.block_minima = all.block_minima + first_block;
  out.group_minima = all.group_minima + first_group;
  return out;
}

}  // namespace

void check_grouped(const HostWeight& piece, const MatrixStorage& storage) {
  const GroupedPart& part = piece.grouped;
  if (part.codes == nullptr || part.scales == nullptr) {
    refuse_piece(piece, "a grouped matrix needs codes and scales");
  }
  const int64_t num_groups =
      (piece.cols + part.group_size - 1) / std::max<int64_t>(1, part.group_size);
  if (part.group_size != storage.group_size || part.num_groups != num_groups) {
    refuse_piece(piece,
                 fmt::format("expected groups of {} of {} columns, got {} groups of {}",
                             storage.group_size, piece.cols, part.num_groups, part.group_size));
  }
  if (part.zeros != nullptr && !storage.zero_points) {
    refuse_piece(piece, "has zero points that were not planned for");
  }
  if ((part.minima != nullptr) != storage.minima) {
    refuse_piece(piece,
                 storage.minima ? "expected minima" : "has minima that were not planned for");
  }
  check_scale_form(piece, storage);
  check_table(piece, storage);
}

std::vector<GroupedRow> grouped_rows(std::span<const HostWeight> pieces) {
  std::vector<GroupedRow> out;
  for (const HostWeight& piece : pieces) {
    const GroupedPart& part = piece.grouped;
    for (int64_t row = 0; row < piece.rows; ++row) {
      const int64_t first_group = row * part.num_groups;
      out.push_back({.codes = part.codes + row * piece.cols,
                     .scales = part.scales + first_group,
                     .zeros = part.zeros == nullptr ? nullptr : part.zeros + first_group,
                     .minima = part.minima == nullptr ? nullptr : part.minima + first_group,
                     .factors = factors_of_row(part, piece.cols, row),
                     .table = part.table});
    }
  }
  return out;
}

void dequantise_row(const GroupedRow& row, int64_t cols, int64_t group_size, float* out) {
  for (int64_t col = 0; col < cols; ++col) {
    const int64_t group = col / group_size;
    const int zero = row.zeros == nullptr ? 0 : row.zeros[group];
    const float value = row.table == nullptr ? static_cast<float>(row.codes[col] - zero)
                                             : row.table[row.codes[col]];
    out[col] = row.scales[group] * value;
    if (row.minima != nullptr) out[col] += row.minima[group];
  }
}

void pack_grouped_panel(std::span<const GroupedRow> rows,
                        const PanelLayout& layout,
                        std::byte* out) {
  for (int64_t lane = 0; lane < kPanelRows; ++lane) {
    const bool is_there = lane < static_cast<int64_t>(rows.size());
    const GroupedRow row = is_there ? rows[static_cast<size_t>(lane)] : GroupedRow{};
    for_integer_panels([&]<PanelType kType>() {
      if (layout.type == kType) put_row<kType>(row, lane, layout, out);
    });
  }
}

}  // namespace tgi
