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

using Word = uint32_t;  // 4 columns, or the halves of 8, of one row: a lane of a line
constexpr int64_t kIntLineBytes = kPanelRows * static_cast<int64_t>(sizeof(Word));
constexpr int64_t kMaxGroup = 256;
constexpr int64_t kMaxWords = kMaxGroup / 4;

uint64_t look_up_eight(const int8_t* codes, const Places& places) {
  uint64_t out = 0;
  for (int i = 0; i < 8; ++i) out |= uint64_t{places[static_cast<size_t>(codes[i] + 128)]} << 8 * i;
  return out;
}

// What 8 codes are stored as, each in a byte: + an offset or, with minima, as they are.
template <PanelType kType>
uint64_t stored_eight(const int8_t* codes, const GroupHead& head) {
  if constexpr (kType == PanelType::kMxfp4) return look_up_eight(codes, kMxfp4Places);
  uint64_t eight = 0;
  std::memcpy(&eight, codes, sizeof eight);
  if constexpr (kType == PanelType::kTable4) {
    return head.table == CodeTable::kIq4 ? look_up_eight(codes, kIq4Places) : eight;
  }
  constexpr uint64_t kEach = 0x0101010101010101U;
  constexpr auto kOffset = static_cast<uint64_t>(integer_offset(kType));
  const bool is_as_it_is = head.minima && is_narrow_integer(kType);
  // The offset is the bit of the sign: adding it is flipping that.
  const uint64_t flipped = is_as_it_is ? 0 : kEach * kOffset;
  return (eight & kEach * (2 * kOffset - 1)) ^ flipped;
}

// The upper halves of the bytes are the last 4 columns.
Word join_halves(uint64_t eight) {
  return static_cast<Word>(eight) | static_cast<Word>(eight >> 32) << 4;
}

// The columns that share a line of upper bits: that, then their lower ones.
template <PanelType kType>
void put_words_with_upper(const int8_t* codes, const GroupHead& head, Word* to) {
  constexpr int kBits = upper_bits(kType);
  constexpr uint64_t kUpper = 0x0101010101010101U * ((1U << kBits) - 1);
  constexpr uint64_t kLower = 0x0f0f0f0f0f0f0f0fU;
  Word upper = 0;
  for (int i = 0; i < upper_line_cols(kType) / 8; ++i) {
    const uint64_t eight = stored_eight<kType>(codes + 8 * i, head);
    const uint64_t bits = eight >> 4 & kUpper;
    upper |= static_cast<Word>(bits) << 2 * i * kBits;
    upper |= static_cast<Word>(bits >> 32) << (2 * i + 1) * kBits;
    to[i + 1] = join_halves(eight & kLower);
  }
  to[0] = upper;
}

// One row's group, in the order of its lines.
template <PanelType kType>
void put_words(const int8_t* codes, int64_t group_size, const GroupHead& head, Word* to) {
  if constexpr (upper_bits(kType) > 0) {
    constexpr int64_t kCols = upper_line_cols(kType);
    for (int64_t i = 0; i < group_size; i += kCols, to += kCols / 8 + 1) {
      put_words_with_upper<kType>(codes + i, head, to);
    }
  } else if constexpr (kType == PanelType::kInt8) {
    for (int64_t i = 0; i < group_size; i += 8, to += 2) {
      const uint64_t eight = stored_eight<kType>(codes + i, head);
      std::memcpy(to, &eight, sizeof eight);
    }
  } else {
    for (int64_t i = 0; i < group_size; i += 8, ++to) {
      *to = join_halves(stored_eight<kType>(codes + i, head));
    }
  }
}

using FourWords [[gnu::vector_size(16)]] = Word;

FourWords load_words(const Word* from) {
  FourWords out;
  std::memcpy(&out, from, sizeof out);
  return out;
}

using GroupWords = Word[kPanelRows][kMaxWords];

// Word i of row r becomes lane r of line i.
void turn_to_lines(const GroupWords& words, int64_t num_lines, std::byte* lines) {
  for (int64_t line = 0; line < num_lines; line += 4) {
    const int64_t count = std::min<int64_t>(4, num_lines - line);
    for (int64_t row = 0; row < kPanelRows; row += 4) {
      const FourWords a = load_words(words[row] + line);
      const FourWords b = load_words(words[row + 1] + line);
      const FourWords c = load_words(words[row + 2] + line);
      const FourWords d = load_words(words[row + 3] + line);
      const FourWords ab_low = __builtin_shuffle(a, b, FourWords{0, 4, 1, 5});
      const FourWords ab_high = __builtin_shuffle(a, b, FourWords{2, 6, 3, 7});
      const FourWords cd_low = __builtin_shuffle(c, d, FourWords{0, 4, 1, 5});
      const FourWords cd_high = __builtin_shuffle(c, d, FourWords{2, 6, 3, 7});
      const FourWords turned[4] = {__builtin_shuffle(ab_low, cd_low, FourWords{0, 1, 4, 5}),
                                   __builtin_shuffle(ab_low, cd_low, FourWords{2, 3, 6, 7}),
                                   __builtin_shuffle(ab_high, cd_high, FourWords{0, 1, 4, 5}),
                                   __builtin_shuffle(ab_high, cd_high, FourWords{2, 3, 6, 7})};
      std::byte* to = lines + line * kIntLineBytes + row * static_cast<int64_t>(sizeof(Word));
      for (int64_t i = 0; i < count; ++i, to += kIntLineBytes) {
        std::memcpy(to, &turned[i], sizeof turned[i]);
      }
    }
  }
}

// The lines of one group; columns that are not there, and rows, are zeros.
template <PanelType kType>
void put_codes(std::span<const GroupedRow> rows,
               int64_t group,
               const PanelLayout& layout,
               std::byte* lines) {
  const int64_t begin = group * layout.group_size;
  const int64_t count = std::min(layout.group_size, layout.cols - begin);
  GroupWords words;
  for (int64_t row = 0; row < kPanelRows; ++row) {
    const bool is_there = row < static_cast<int64_t>(rows.size());
    const int8_t* codes = is_there ? rows[static_cast<size_t>(row)].codes + begin : nullptr;
    if (is_there && count == layout.group_size) {
      put_words<kType>(codes, layout.group_size, layout.head, words[row]);
      continue;
    }
    int8_t padded[kMaxGroup] = {};
    if (is_there) std::copy_n(codes, count, padded);
    put_words<kType>(padded, layout.group_size, layout.head, words[row]);
  }
  turn_to_lines(words, layout.group_bytes() / kIntLineBytes, lines);
}

void put_number(float value, HeadScales as, std::byte* to) {
  if (as == HeadScales::kF32) {
    std::memcpy(to, &value, sizeof value);
    return;
  }
  const uint16_t half = f32_to_f16(value);
  std::memcpy(to, &half, sizeof half);
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

// The numbers of a head lie apart by as much for each group.
int64_t group_stride(const GroupHead& head) {
  return kPanelRows * head.scale_bytes();
}

void put_bytes(const int8_t* numbers, int64_t count, std::byte* to) {
  for (int64_t i = 0; i < count; ++i, to += kPanelRows) *to = static_cast<std::byte>(numbers[i]);
}

void put_factors(const GroupedRow& row, const HeadOfRow& to) {
  const ScaleFactors& factors = row.factors;
  const int64_t block = to.first / to.shape.num_groups();
  put_number(factors.block_scales[block], HeadScales::kF16, to.place(0, 0, 2));
  put_bytes(factors.group_scales + to.first, to.count, to.scale(0));
  if (!to.shape.minima) return;
  put_number(factors.block_minima[block], HeadScales::kF16, to.place(0, 1, 2));
  put_bytes(factors.group_minima + to.first, to.count, to.minimum(0));
}

void put_exponents(const GroupedRow& row, const HeadOfRow& to) {
  for (int64_t i = 0; i < to.count; ++i) {
    // Ones below the smallest normal number become 0, as products with them do everywhere.
    *to.scale(i) = static_cast<std::byte>(std::bit_cast<uint32_t>(row.scales[to.first + i]) >> 23);
  }
}

// `divisor`: what is added to codes of this width.
void put_numbers(const GroupedRow& row, int divisor, const HeadOfRow& to) {
  // Not asked for again behind each number, which might be theirs for all that the compiler knows.
  const HeadScales as = to.shape.scales;
  const float steps = kTableSteps[static_cast<int>(to.shape.table)];
  const int64_t stride = group_stride(to.shape);
  const int64_t count = to.count;
  const float* const scales = row.scales + to.first;
  std::byte* scale = to.scale(0);
  for (int64_t i = 0; i < count; ++i, scale += stride) put_number(scales[i] / steps, as, scale);
  if (to.shape.minima) {
    const float* const minima = row.minima + to.first;
    std::byte* minimum = to.minimum(0);
    for (int64_t i = 0; i < count; ++i, minimum += stride) put_number(minima[i], as, minimum);
  }
  if (!to.shape.zero_points || row.zeros == nullptr) return;
  for (int64_t i = 0; i < count; ++i) {
    const auto zero = static_cast<float>(row.zeros[to.first + i]);
    const uint16_t half = f32_to_bf16(zero / static_cast<float>(divisor));
    std::memcpy(to.zero(i), &half, sizeof half);
  }
}

template <PanelType kType>
void put_head(const GroupedRow& row, const HeadOfRow& to) {
  if constexpr (kType == PanelType::kMxfp4) {
    put_exponents(row, to);
  } else if (to.shape.factors()) {
    put_factors(row, to);
  } else {
    put_numbers(row, integer_offset(kType), to);
  }
}

template <PanelType kType>
void put_panel(std::span<const GroupedRow> rows, const PanelLayout& layout, std::byte* panel) {
  const int64_t num_groups = layout.num_groups();
  const int64_t per_head = layout.head.num_groups();
  std::byte* head = panel;
  for (int64_t first = 0; first < num_groups; first += per_head, head += layout.head_stride()) {
    const int64_t count = std::min(per_head, num_groups - first);
    for (size_t lane = 0; lane < rows.size(); ++lane) {
      put_head<kType>(rows[lane], {.shape = layout.head,
                                   .lane = static_cast<int64_t>(lane),
                                   .first = first,
                                   .count = count,
                                   .head = head});
    }
    std::byte* lines = head + layout.head.bytes();
    for (int64_t i = 0; i < count; ++i, lines += layout.group_bytes()) {
      put_codes<kType>(rows, first + i, layout, lines);
    }
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
  int64_t num_rows = 0;
  for (const HostWeight& piece : pieces) num_rows += piece.rows;
  out.reserve(static_cast<size_t>(num_rows));
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
  for_integer_panels([&]<PanelType kType>() {
    if (layout.type == kType) put_panel<kType>(rows, layout, out);
  });
}

}  // namespace tgi
