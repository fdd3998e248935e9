// Source: quantize_4bit, dequantize_4bit and Linear4bit of bitsandbytes 0.41 to 0.50. Where the
// columns are no multiple of a block, its kernels for CUDA and in plain PyTorch are meant; those
// for processors of 0.50 begin a block with each row, which quantize_4bit does not.
#include "engine/weights/formats/bitsandbytes_4bit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/weights/formats/bitsandbytes_state.h"
#include "engine/weights/formats/dense.h"
#include "engine/weights/formats/stored_arrays.h"

namespace tgi {
namespace {

constexpr int64_t kNestedCodes = 256;
constexpr int64_t kTableSize = 16;
constexpr std::string_view kStates[] = {"quant_state.bitsandbytes__nf4",
                                        "quant_state.bitsandbytes__fp4"};

// What bnb_4bit_quant_storage says the bytes are stored as.
struct StorageType {
  std::string_view name;
  int64_t bytes;
};
constexpr auto kStorageTypes = std::to_array<StorageType>(
    {{"U8", 1}, {"I8", 1}, {"F16", 2}, {"BF16", 2}, {"F32", 4}, {"F64", 8}});

int64_t bytes_of_type(std::string_view name) {
  for (const StorageType& type : kStorageTypes) {
    if (type.name == name) return type.bytes;
  }
  return 1;  // reported as a type that can't be used
}

const StoredTensor* find_beside(const Checkpoint& checkpoint,
                                const MatrixSpec& spec,
                                std::string_view suffix) {
  return find_by_any_name(checkpoint, fmt::format("{}.{}", spec.name, suffix), spec.prefix);
}

// A module's weight is stored (out, in), also that of GPT-2's Conv1D; a parameter of three
// dimensions as the model has it.
bool is_transposed(const MatrixSpec& spec) {
  return spec.transposed && spec.stack.count > 0 && !spec.stack.is_flat;
}

std::vector<int64_t> whole_shape(const MatrixSpec& spec) {
  const int64_t rows = spec.rows * spec.turns.count;
  return spec.stack.shape_of_all(is_transposed(spec) ? std::vector{spec.cols, rows}
                                                     : std::vector{rows, spec.cols});
}

int64_t count_of(const std::vector<int64_t>& shape) {
  int64_t out = 1;
  for (const int64_t size : shape) out *= size;
  return out;
}

int64_t blocks_in(int64_t count, int64_t size) {
  return (count + size - 1) / size;
}

// Where the elements of the matrix lie among those of the whole tensor.
struct Places {
  int64_t first = 0;
  int64_t row_stride = 0;
  int64_t col_stride = 1;

  explicit Places(const MatrixSpec& spec) {
    const int64_t all_rows = spec.rows * spec.turns.count;
    const int64_t row_step = is_transposed(spec) ? 1 : spec.cols;
    first = spec.stack.index * all_rows * spec.cols + spec.turns.index * row_step;
    row_stride = row_step * spec.turns.count;
    col_stride = is_transposed(spec) ? all_rows : 1;
  }
  int64_t at(int64_t row, int64_t col) const { return first + row * row_stride + col * col_stride; }
};

// The library goes by the name of the table and not by what is stored of it.
void check_table(const ArrayReader& table, bool is_nf4) {
  constexpr float kRounding = 1e-5F;
  const float* const expected = value_table(table_kind(is_nf4));
  for (int64_t i = 0; i < kTableSize; ++i) {
    const float got = table.number(i);
    if (std::fabs(got - expected[i]) <= kRounding) continue;
    throw Error(
        Code::kUnsupported,
        fmt::format("tensor {}: code {} stands for {}, expected {} as of {}; other tables "
                    "can't be loaded",
                    table.name(), i, got, expected[i], quantization_name(table_kind(is_nf4))));
  }
}

// The scales of blocks [begin, end).
std::vector<float> read_scales(const Checkpoint& checkpoint,
                               std::span<const StoredTensor* const> tensors,
                               const BitsAndBytesState& state,
                               int64_t begin,
                               int64_t end) {
  const ArrayReader absmax(checkpoint, *find_array(tensors, "absmax"));
  std::vector<float> out(static_cast<size_t>(end - begin));
  if (!state.nested) {
    for (int64_t i = begin; i < end; ++i) out[static_cast<size_t>(i - begin)] = absmax.number(i);
    return out;
  }
  const ArrayReader scales(checkpoint, *find_array(tensors, "nested_absmax"));
  const ArrayReader table(checkpoint, *find_array(tensors, "nested_quant_map"));
  for (int64_t i = begin; i < end; ++i) {
    const float value = table.number(absmax.byte(i)) * scales.number(i / state.nested->block_size) +
                        state.nested->offset;
    if (!std::isfinite(value)) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("tensor {}: element {} stands for {}, expected a finite number; is "
                              "the file damaged?",
                              absmax.name(), i, value));
    }
    out[static_cast<size_t>(i - begin)] = value;
  }
  return out;
}

// Calls visit(row, col, code, scale) for each element of the block, rows of it on several threads.
template <typename Visit>
void visit_codes(const Checkpoint& checkpoint,
                 const MatrixSpec& spec,
                 std::span<const StoredTensor* const> tensors,
                 const BitsAndBytesState& state,
                 const Block4Bit& wanted,
                 const Visit& visit) {
  const Range rows = wanted.rows;
  const Range cols = wanted.cols;
  if (rows.count == 0 || cols.count == 0) return;
  const ArrayReader codes(checkpoint, *tensors[0]);
  const Places places(spec);
  const int shift = std::countr_zero(static_cast<uint64_t>(state.block_size));
  const int64_t last = places.at(rows.begin + rows.count - 1, cols.begin + cols.count - 1);
  const int64_t first_block = places.at(rows.begin, cols.begin) >> shift;
  const std::vector<float> scales =
      read_scales(checkpoint, tensors, state, first_block, (last >> shift) + 1);
  decode_parallel(rows.count, cols.count, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t col = 0; col < cols.count; ++col) {
        const int64_t place = places.at(rows.begin + row, cols.begin + col);
        const uint8_t both = codes.byte(place / 2);
        visit(row, col, place % 2 == 0 ? both >> 4 : both & 15,
              scales[static_cast<size_t>((place >> shift) - first_block)]);
      }
    }
  });
}

void collect_scales(ArrayCollector& arrays, const BitsAndBytesState& state, int64_t num_blocks) {
  arrays.require("quant_map", {"F32"}, {{kTableSize}});
  if (!state.nested) return arrays.require("absmax", {"F32"}, {{num_blocks}});
  arrays.require("absmax", {"U8"}, {{num_blocks}});
  arrays.require("nested_absmax", {"F32"}, {{blocks_in(num_blocks, state.nested->block_size)}});
  arrays.require("nested_quant_map", {"F32"}, {{kNestedCodes}});
}

}  // namespace

bool is_stored_in_4bit(const Checkpoint& checkpoint, const MatrixSpec& spec) {
  for (const std::string_view suffix :
       {kStates[0], kStates[1], std::string_view("quant_map"), std::string_view("absmax")}) {
    if (find_beside(checkpoint, spec, suffix) != nullptr) return true;
  }
  // Codes alone.
  const StoredTensor* tensor = find_by_any_name(checkpoint, spec.name, spec.prefix);
  return tensor != nullptr && tensor->dtype_name == "U8";
}

std::vector<const StoredTensor*> collect_4bit(const Checkpoint& checkpoint,
                                              const MatrixSpec& spec,
                                              bool is_nf4,
                                              WeightProblems& problems) {
  const StoredTensor* stored_state = nullptr;
  for (const std::string_view suffix : kStates) {
    if (stored_state == nullptr) stored_state = find_beside(checkpoint, spec, suffix);
  }
  const StoredTensor* codes = find_by_any_name(checkpoint, spec.name, spec.prefix);
  if (codes == nullptr) problems.missing.push_back(spec.name);
  if (stored_state == nullptr) {
    problems.missing.push_back(fmt::format("{}.{}", spec.name, kStates[is_nf4 ? 0 : 1]));
  }
  if (codes == nullptr || stored_state == nullptr) return {};
  const BitsAndBytesState state =
      parse_bitsandbytes_state(checkpoint.bytes(*stored_state), stored_state->name);

  const std::vector<int64_t> shape = whole_shape(spec);
  if (state.shape != shape) {
    problems.misshapen.push_back(fmt::format("{}: expected the shape {}, got {}",
                                             stored_state->name, shape_text(shape),
                                             shape_text(state.shape)));
    return {};
  }
  const int64_t num_bytes = blocks_in(count_of(shape), 2);
  const int64_t bytes_each = bytes_of_type(codes->dtype_name);
  // Names below it are "X.absmax" whether or not X ends in ".weight".
  MatrixSpec whole = spec;
  whole.name = codes->name + ".weight";
  ArrayCollector arrays(checkpoint, whole, problems);
  const std::vector<int64_t> packed = {num_bytes / bytes_each, 1};
  if (num_bytes % bytes_each != 0) {
    problems.misshapen.push_back(fmt::format("{}: {} bytes can't be stored as {}", codes->name,
                                             num_bytes, codes->dtype_name));
  } else if (codes->shape != packed) {
    problems.misshapen.push_back(fmt::format("{}: expected {}, got {}", codes->name,
                                             shape_text(packed), shape_text(codes->shape)));
  }
  const bool is_storage = std::ranges::any_of(
      kStorageTypes, [&](const StorageType& type) { return type.name == codes->dtype_name; });
  if (!is_storage) {
    problems.unsupported.push_back(
        fmt::format("{}: expected U8 or what bnb_4bit_quant_storage names, got {}", codes->name,
                    codes->dtype_name));
  }
  collect_scales(arrays, state, blocks_in(count_of(shape), state.block_size));
  std::vector<const StoredTensor*> out = {codes, stored_state};
  const std::vector<const StoredTensor*> scales = arrays.take();
  out.insert(out.end(), scales.begin(), scales.end());
  return out;
}

namespace {

// The codes and the scales of their blocks as they are.
HostWeight keep_4bit(const Checkpoint& checkpoint,
                     const MatrixSpec& spec,
                     std::span<const StoredTensor* const> tensors,
                     const BitsAndBytesState& state,
                     const Block4Bit& wanted) {
  if (wanted.storage.quantization != table_kind(state.is_nf4)) {
    throw Error(Code::kInvalidArgument,
                fmt::format("tensor {}: is {}, and quantization_config.bnb_4bit_quant_type says {}",
                            tensors[1]->name, quantization_name(table_kind(state.is_nf4)),
                            quantization_name(wanted.storage.quantization)));
  }
  if (state.block_size % kKeptBlock != 0) {
    throw Error(Code::kUnsupported,
                fmt::format("tensor {}: blocks of {} elements, expected a multiple of {}, as "
                            "transformers writes them; quantise the model anew with those",
                            tensors[1]->name, state.block_size, kKeptBlock));
  }
  DecodedBlock block(spec.name, wanted.rows, wanted.cols);
  block.cut_groups(wanted.cols, kKeptBlock, false);
  visit_codes(checkpoint, spec, tensors, state, wanted,
              [&](int64_t row, int64_t col, int code, float scale) {
                const auto group = block.group_of[static_cast<size_t>(col)];
                block.codes[static_cast<size_t>(row * wanted.cols.count + col)] =
                    static_cast<int8_t>(code);
                block.scales[static_cast<size_t>(row * block.num_groups + group)] = scale;
              });
  HostWeight out = to_host_weight(std::move(block), wanted.storage);
  out.grouped.table = value_table(wanted.storage.quantization);
  return out;
}

}  // namespace

bool has_whole_blocks(const MatrixSpec& spec) {
  return spec.stack.count == 0 && !is_transposed(spec) && spec.cols % kKeptBlock == 0;
}

HostWeight slice_4bit(const Checkpoint& checkpoint,
                      const MatrixSpec& spec,
                      std::span<const StoredTensor* const> tensors,
                      const Block4Bit& wanted) {
  const int64_t num_rows = wanted.rows.count;
  const int64_t num_cols = wanted.cols.count;
  const BitsAndBytesState state =
      parse_bitsandbytes_state(checkpoint.bytes(*tensors[1]), tensors[1]->name);
  check_table(ArrayReader(checkpoint, *find_array(tensors, "quant_map")), state.is_nf4);
  if (wanted.storage.stored) return keep_4bit(checkpoint, spec, tensors, state, wanted);
  ScratchVector<float> values(static_cast<size_t>(num_rows * num_cols));
  const float* const table = value_table(table_kind(state.is_nf4));
  visit_codes(checkpoint, spec, tensors, state, wanted,
              [&](int64_t row, int64_t col, int code, float scale) {
                values[static_cast<size_t>(row * num_cols + col)] = table[code] * scale;
              });
  return to_host_weight(spec.name, num_rows, num_cols, std::move(values));
}

}  // namespace tgi
