// Matrices as compressed-tensors stores them, (out, in) as in a plain checkpoint:
//   pack-quantized   weight_packed I32, codes + 2^(bits-1) from the lowest bits of a word on;
//                    weight_scale (out, groups); weight_zero_point, packed along out
//   int-quantized    weight I8; weight_scale; weight_zero_point I8
//   float-quantized  weight F8_E4M3; weight_scale for all, per row or per block
//   nvfp4-pack-quantized  weight_packed U8 (out, in / 2), floats of 4 bits; weight_scale F8_E4M3
//                    (out, in / 16), all divided by weight_global_scale
//   mxfp4-pack-quantized  the same with weight_scale U8 (out, in / 32) of e8m0
// Activations are rounded as this program's kernels do it, whatever input_activations says.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/weights/formats/compressed_tensors_config.h"
#include "engine/weights/formats/dense.h"
#include "engine/weights/formats/fp4_values.h"
#include "engine/weights/formats/fp8_values.h"
#include "engine/weights/formats/quantization_fields.h"
#include "engine/weights/formats/stored_arrays.h"

namespace tgi {
namespace compressed_tensors_format {
namespace {

using Layout = CompressedScheme::Layout;
using Strategy = CompressedScheme::Strategy;

constexpr int64_t kAll = std::numeric_limits<int64_t>::max() / 2;

CompressedConfig read_config(const Json& config) {
  return read_compressed_config(JsonReader(config, ""));
}

bool claims(const JsonReader& config) {
  if (quant_method_of(config) != "compressed-tensors") return false;
  check_compressed_config(config);
  return true;
}

ScaleGrid grid_of(const CompressedScheme& scheme) {
  switch (scheme.strategy) {
    case Strategy::kTensor:
      return {.block_rows = kAll, .block_cols = kAll};
    case Strategy::kChannel:
      return {.block_rows = 1, .block_cols = kAll};
    case Strategy::kGroup:
      return {.block_rows = 1, .block_cols = scheme.group_size};
    case Strategy::kBlock:
      return {.block_rows = scheme.block_rows, .block_cols = scheme.block_cols};
  }
  return {};
}

StoredForm form_of(const Json& config, const MatrixSpec& spec) {
  const CompressedConfig read = read_config(config);
  const CompressedScheme* scheme = read.scheme_of(spec);
  if (scheme == nullptr) return {};
  const std::string what =
      fmt::format("compressed-tensors {} with {} bits", scheme->format, scheme->bits);
  if (scheme->layout == Layout::kNvfp4) return nvfp4_form(what);
  if (scheme->layout == Layout::kMxfp4) return mxfp4_form(what);
  if (scheme->layout == Layout::kFloat) return fp8_form(what, grid_of(*scheme), spec.cols);
  return {.quantised_as = what,
          .bits = scheme->scattered_groups ? 0 : scheme->bits,
          .group_size = scheme->group_size,
          .zero_points = !scheme->symmetric};
}

int64_t words_for(int64_t count, int32_t bits) {
  return (count * bits + 31) / 32;
}

void collect_zero_points(const CompressedScheme& scheme,
                         const MatrixSpec& spec,
                         ArrayCollector& arrays) {
  const std::vector<int64_t> grid = grid_of(scheme).shape(spec.rows, spec.cols);
  if (scheme.layout == Layout::kPacked && scheme.strategy != Strategy::kTensor) {
    // Packed today, bytes in checkpoints of the first years.
    arrays.require("weight_zero_point", {"I32", "I8"},
                   {{words_for(spec.rows, scheme.bits), grid[1]}, grid});
  } else if (scheme.strategy == Strategy::kTensor) {
    arrays.require("weight_zero_point", {"I8"}, {{}, {1}, {1, 1}});
  } else {
    arrays.require("weight_zero_point", {"I8"}, {grid});
  }
}

void collect_fp4(const CompressedScheme& scheme,
                 const MatrixSpec& spec,
                 ArrayCollector& arrays,
                 WeightProblems& problems) {
  if (spec.cols % scheme.group_size != 0) {
    problems.misshapen.push_back(fmt::format("{}: {} columns can't be in groups of {}", spec.name,
                                             spec.cols, scheme.group_size));
    return;
  }
  arrays.require("weight_packed", {"U8"}, {{spec.rows, spec.cols / 2}});
  arrays.require("weight_scale", {scheme.layout == Layout::kNvfp4 ? "F8_E4M3" : "U8"},
                 {{spec.rows, spec.cols / scheme.group_size}});
  if (scheme.layout == Layout::kMxfp4) return;
  const std::initializer_list<std::string_view> numbers = {"F32", "F16", "BF16"};
  if (scheme.needs_matrix_scale) {
    arrays.require("weight_global_scale", numbers, {{}, {1}, {1, 1}});
  } else {
    arrays.allow("weight_global_scale", numbers, {{}, {1}, {1, 1}});
  }
}

bool is_plain(const CompressedScheme* scheme,
              const Checkpoint& checkpoint,
              const MatrixSpec& spec) {
  return scheme == nullptr ||
         is_plain_choice(checkpoint, spec,
                         {"weight_packed", "weight_scale", "weight_zero_point", "weight_g_idx",
                          "weight_shape", "weight_global_scale"});
}

std::vector<const StoredTensor*> collect(const Json& config,
                                         const Checkpoint& checkpoint,
                                         const MatrixSpec& spec,
                                         WeightProblems& problems) {
  const CompressedConfig read = read_config(config);
  const CompressedScheme* scheme = read.scheme_of(spec);
  if (is_plain(scheme, checkpoint, spec)) return collect_dense(checkpoint, spec, problems);
  ArrayCollector arrays(checkpoint, spec, problems);
  if (scheme->is_fp4()) {
    collect_fp4(*scheme, spec, arrays, problems);
    return arrays.take();
  }
  if (scheme->layout == Layout::kPacked) {
    arrays.require("weight_packed", {"I32"}, {{spec.rows, words_for(spec.cols, scheme->bits)}});
    arrays.allow("weight_shape", {"I64", "I32"}, {{2}});
  } else {
    const bool is_float = scheme->layout == Layout::kFloat;
    arrays.require("weight", {is_float ? "F8_E4M3" : "I8"}, {{spec.rows, spec.cols}});
  }
  const std::vector<int64_t> grid = grid_of(*scheme).shape(spec.rows, spec.cols);
  if (scheme->strategy == Strategy::kTensor) {
    arrays.require("weight_scale", {"F32", "F16", "BF16"}, {{}, {1}, {1, 1}});
  } else if (scheme->strategy == Strategy::kChannel) {
    arrays.require("weight_scale", {"F32", "F16", "BF16"}, {grid, {spec.rows}});
  } else {
    arrays.require("weight_scale", {"F32", "F16", "BF16"}, {grid});
  }
  if (!scheme->symmetric) collect_zero_points(*scheme, spec, arrays);
  if (scheme->scattered_groups) arrays.require("weight_g_idx", {"I32", "I64"}, {{spec.cols}});
  return arrays.take();
}

// Integers of one matrix by their place in it.
class Codes {
 public:
  Codes(const Checkpoint& checkpoint, const StoredTensor& tensor, int32_t bits)
      : reader_(checkpoint, tensor), bits_(bits), packed_(tensor.dtype_name == "I32") {}

  // Element `index` of the line that begins at word or byte `line`: of a run of packed integers, or
  // of bytes.
  int8_t at(int64_t line, int64_t stride, int64_t index) const {
    if (!packed_) return static_cast<int8_t>(reader_.byte(line + index));
    const int64_t per_word = 32 / bits_;
    const uint32_t word = reader_.word(line + index / per_word * stride);
    const uint32_t code = (word >> (index % per_word * bits_)) & ((1U << bits_) - 1);
    return static_cast<int8_t>(static_cast<int32_t>(code) - (1 << (bits_ - 1)));
  }
  bool packed() const { return packed_; }

 private:
  ArrayReader reader_;
  int32_t bits_;
  bool packed_;
};

void read_scattered_groups(
    const ArrayReader& g_idx, bool is_wide, int64_t num_groups, Range cols, DecodedBlock& block) {
  for (int64_t col = 0; col < cols.count; ++col) {
    const int64_t index = cols.begin + col;
    const auto group = static_cast<int32_t>(g_idx.word(is_wide ? 2 * index : index));
    if (group < 0 || group >= num_groups) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("tensor {}: column {} belongs to group {}, but there are {}",
                              g_idx.name(), index, group, num_groups));
    }
    block.group_of[static_cast<size_t>(col)] = group;
  }
  block.num_groups = num_groups;
  block.scales.resize(static_cast<size_t>(block.rows * num_groups));
}

void read_scales(const CompressedScheme& scheme,
                 const MatrixSpec& spec,
                 const Checkpoint& checkpoint,
                 std::span<const StoredTensor* const> tensors,
                 Range rows,
                 int64_t first_group,
                 DecodedBlock& block) {
  const ArrayReader scales(checkpoint, *find_array(tensors, "weight_scale"));
  const bool is_single = scheme.strategy == Strategy::kTensor;
  const int64_t groups = grid_of(scheme).shape(spec.rows, spec.cols)[1];
  const auto for_each = [&](const auto& use) {
    for (int64_t row = 0; row < rows.count; ++row) {
      for (int64_t group = 0; group < block.num_groups; ++group) {
        use(static_cast<size_t>(row * block.num_groups + group), rows.begin + row,
            first_group + group);
      }
    }
  };
  for_each([&](size_t to, int64_t row, int64_t group) {
    block.scales[to] = scales.number(is_single ? 0 : row * groups + group);
  });
  if (scheme.symmetric) return;
  block.zeros.resize(block.scales.size());
  const Codes zeros(checkpoint, *find_array(tensors, "weight_zero_point"), scheme.bits);
  for_each([&](size_t to, int64_t row, int64_t group) {
    if (is_single) {
      block.zeros[to] = zeros.at(0, 1, 0);
    } else {
      block.zeros[to] =
          zeros.packed() ? zeros.at(group, groups, row) : zeros.at(row * groups, 1, group);
    }
  });
}

HostWeight slice_groups_of_fp4(const CompressedScheme& scheme,
                               const MatrixSpec& spec,
                               const Checkpoint& checkpoint,
                               std::span<const StoredTensor* const> tensors,
                               Range rows,
                               Range cols,
                               const MatrixStorage& storage) {
  MatrixScale matrix_scale;
  if (const StoredTensor* of_all = find_array(tensors, "weight_global_scale")) {
    matrix_scale = read_matrix_scale(checkpoint, *of_all, true);
  }
  const Fp4Matrix matrix = {.codes = *find_array(tensors, "weight_packed"),
                            .scales = *find_array(tensors, "weight_scale"),
                            .cols = spec.cols,
                            .group_size = scheme.group_size,
                            .matrix_scale = matrix_scale};
  return slice_fp4(checkpoint, spec, matrix, rows, cols, storage);
}

HostWeight slice(const Json& config,
                 const Checkpoint& checkpoint,
                 const MatrixSpec& spec,
                 std::span<const StoredTensor* const> tensors,
                 Range rows,
                 Range cols,
                 const MatrixStorage& storage) {
  const CompressedConfig read = read_config(config);
  const CompressedScheme* scheme = read.scheme_of(spec);
  if (is_plain(scheme, checkpoint, spec)) {
    return slice_dense(checkpoint, spec, *tensors.front(), rows, cols);
  }
  if (scheme->layout == Layout::kFloat) {
    return slice_fp8(checkpoint, spec, *find_array(tensors, "weight"),
                     *find_array(tensors, "weight_scale"), grid_of(*scheme), rows, cols, storage);
  }
  if (scheme->is_fp4()) {
    return slice_groups_of_fp4(*scheme, spec, checkpoint, tensors, rows, cols, storage);
  }
  DecodedBlock block(spec.name, rows, cols);
  int64_t first_group = block.cut_groups(cols, scheme->group_size, false);
  if (scheme->scattered_groups) {
    const StoredTensor& g_idx = *find_array(tensors, "weight_g_idx");
    read_scattered_groups(ArrayReader(checkpoint, g_idx), g_idx.dtype_name == "I64",
                          grid_of(*scheme).shape(spec.rows, spec.cols)[1], cols, block);
    first_group = 0;
  }
  read_scales(*scheme, spec, checkpoint, tensors, rows, first_group, block);
  const bool is_packed = scheme->layout == Layout::kPacked;
  const Codes codes(checkpoint, *find_array(tensors, is_packed ? "weight_packed" : "weight"),
                    scheme->bits);
  const int64_t line = is_packed ? words_for(spec.cols, scheme->bits) : spec.cols;
  decode_parallel(rows.count, cols.count, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int8_t* to = block.codes.data() + row * cols.count;
      for (int64_t col = 0; col < cols.count; ++col) {
        to[col] = codes.at((rows.begin + row) * line, 1, cols.begin + col);
      }
    }
  });
  return to_host_weight(std::move(block), storage);
}

}  // namespace
}  // namespace compressed_tensors_format

template <>
const WeightFormat& weight_format<"compressed-tensors">() {
  static constexpr WeightFormat kThis = {
      .name = "compressed-tensors",
      .claims = compressed_tensors_format::claims,
      .form_of = compressed_tensors_format::form_of,
      .collect = compressed_tensors_format::collect,
      .slice = compressed_tensors_format::slice,
      .may_ignore = is_activation_scale,
  };
  return kThis;
}

}  // namespace tgi
