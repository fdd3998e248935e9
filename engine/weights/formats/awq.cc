// 4-bit integers as AutoAWQ stores them for its kernels. For "gemm":
//   qweight  I32 (in, out / 8)      eight outputs of one input a word, in awq_layout.h's order
//   qzeros   I32 (groups, out / 8)  the same
//   scales   (groups, out)
// For "gemv", which reads a row at a time:
//   qweight  I32 (out, in / 8)      eight inputs of one output a word, in order
//   qzeros   I32 (out, width)       eight groups of one output a word, in order
//   scales   (out, width * 8)
// where the width is that of the groups, rounded up to whole words, and to what the kernel reads at
// once of small groups.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "base/ascii.h"
#include "base/error.h"
#include "base/known_fields.h"
#include "engine/weights/formats/auto_round.h"
#include "engine/weights/formats/awq_layout.h"
#include "engine/weights/formats/dense.h"
#include "engine/weights/formats/module_names.h"
#include "engine/weights/formats/quantization_fields.h"
#include "engine/weights/formats/stored_arrays.h"

namespace tgi {
namespace awq_format {
namespace {

constexpr int64_t kPerWord = 8;
constexpr int32_t kOffset = 8;  // of a stored code to a signed one

struct AwqConfig {
  int64_t group_size = 128;  // 0: one per row
  bool by_outputs = false;   // the layout of gemv
  std::vector<std::string> dense_modules{};
};

constexpr std::string_view kLayers = "all matrices of the layers are quantised, and no others";

constexpr auto kFields = std::to_array<KnownField>({
    read_or_null("bits"),
    read_or_null("w_bit"),
    read_or_null("group_size"),
    read_or_null("q_group_size"),
    read_or_null("version"),
    read_or_null("format"),
    read_or_null("checkpoint_format"),
    read_or_null("modules_to_not_convert"),
    harmless("zero_point", "zero points are stored either way"),
    harmless("sym", "zero points are stored either way"),
    harmless("do_fuse", "chooses how the same sums are computed"),
    harmless("fuse_max_seq_len", "chooses how the same sums are computed"),
    harmless("modules_to_fuse", "chooses how the same sums are computed"),
    harmless_if("backend",
                R"(["autoawq", "auto", "auto_trainable", "machete", "marlin", "exllama_v2",
                    "exllama_v1", "gemm", "gemm_triton", "torch_awq", "torch_fused_awq"])",
                "another layout of the weights is asked for"),
    harmless_if("desc_act", "[false]", "the columns of a group lie beside each other"),
    harmless_if("lm_head", "[false]", kLayers),
    harmless_if("modules_in_block_to_quantize", "[[]]", kLayers),
});

AwqConfig read_awq(const JsonReader& quantization) {
  const auto unsupported = [&](std::string_view key, const std::string& message) {
    throw Error(Code::kUnsupported, fmt::format("{}: awq {}", quantization.path_of(key), message));
  };
  // AutoAWQ's own file has other names than config.json, and GPTQModel names of its own for the
  // version.
  const std::string_view bits_key = name_in_use(quantization, {"bits", "w_bit"});
  const int64_t bits = quantization.integer_or(bits_key, 4);
  if (bits != 4) {
    unsupported(bits_key, fmt::format("with {} bits can't be loaded; supported: 4", bits));
  }
  const std::string_view version_key =
      name_in_use(quantization, {"version", "format", "checkpoint_format"});
  const std::string version = ascii_lower(quantization.string_or(version_key, "gemm"));
  if (version != "gemm" && version != "gemv") {
    unsupported(version_key,
                fmt::format("version '{}' can't be loaded; supported: gemm, gemv", version));
  }
  AwqConfig out;
  const std::string_view size_key = name_in_use(quantization, {"group_size", "q_group_size"});
  out.group_size = read_group_size(quantization, size_key, 128);
  out.by_outputs = version == "gemv";
  const bool has_width =
      out.group_size == 0 || out.group_size == 32 || out.group_size == 64 || out.group_size >= 128;
  if (out.by_outputs && !has_width) {
    unsupported(size_key, fmt::format("of the version gemv has groups of 32, 64, 128 or more "
                                      "columns, got {}",
                                      out.group_size));
  }
  out.dense_modules = quantization.strings_or_empty("modules_to_not_convert");
  return out;
}

AwqConfig read_awq(const Json& config) {
  const JsonReader quantization = quantization_of(config);
  AwqConfig out = read_awq(quantization);
  if (is_auto_round(JsonReader(config, ""))) {
    out.dense_modules = read_auto_round(quantization).plain_modules;
  }
  return out;
}

bool claims_auto_round(const JsonReader& quantization) {
  if (read_auto_round(quantization).format != "awq") return false;
  (void)read_awq(quantization);
  check_auto_round(quantization);
  return true;
}

bool claims(const JsonReader& config) {
  if (is_auto_round(config)) return claims_auto_round(quantization_of(config));
  if (quant_method_of(config) != "awq") return false;
  const JsonReader quantization = quantization_of(config);
  check_left_plain(read_awq(quantization).dense_modules);
  check_quantization(quantization, kFields, "awq");
  return true;
}

bool is_quantised(const AwqConfig& awq, const MatrixSpec& spec) {
  return spec.kind == MatrixKind::kLayer && !is_left_plain(awq.dense_modules, module_name(spec));
}

bool is_plain(const AwqConfig& awq, const Checkpoint& checkpoint, const MatrixSpec& spec) {
  return !is_quantised(awq, spec) ||
         is_plain_choice(checkpoint, spec, {"qweight", "qzeros", "scales"});
}

StoredForm form_of(const Json& config, const MatrixSpec& spec) {
  const AwqConfig awq = read_awq(config);
  if (!is_quantised(awq, spec)) return {};
  return {.quantised_as = "awq with 4 bits",
          .bits = 4,
          .group_size = awq.group_size,
          .zero_points = true};
}

// Words of zero points of an output, for gemv.
int64_t zeros_width(const AwqConfig& awq, int64_t groups) {
  const int64_t words = (groups + kPerWord - 1) / kPerWord;
  const int64_t at_once = awq.group_size == 32 ? 4 : awq.group_size == 64 ? 2 : 1;
  return (words + at_once - 1) / at_once * at_once;
}

std::vector<const StoredTensor*> collect(const Json& config,
                                         const Checkpoint& checkpoint,
                                         const MatrixSpec& spec,
                                         WeightProblems& problems) {
  const AwqConfig awq = read_awq(config);
  if (is_plain(awq, checkpoint, spec)) return collect_dense(checkpoint, spec, problems);
  const int64_t group_size = awq.group_size == 0 ? spec.cols : awq.group_size;
  const int64_t packed = awq.by_outputs ? spec.cols : spec.rows;
  if (spec.cols % group_size != 0 || packed % kPerWord != 0) {
    problems.misshapen.push_back(fmt::format(
        "{}: ({}, {}) can't be cut into groups of {} columns and words of {} {}", spec.name,
        spec.rows, spec.cols, group_size, kPerWord, awq.by_outputs ? "columns" : "rows"));
    return {};
  }
  const int64_t groups = spec.cols / group_size;
  ArrayCollector arrays(checkpoint, spec, problems);
  if (awq.by_outputs) {
    const int64_t width = zeros_width(awq, groups);
    arrays.require("qweight", {"I32", "U32"}, {{spec.rows, spec.cols / kPerWord}});
    arrays.require("qzeros", {"I32", "U32"}, {{spec.rows, width}});
    arrays.require("scales", {"F16", "BF16", "F32"}, {{spec.rows, width * kPerWord}});
    return arrays.take();
  }
  arrays.require("qweight", {"I32", "U32"}, {{spec.cols, spec.rows / kPerWord}});
  arrays.require("qzeros", {"I32", "U32"}, {{groups, spec.rows / kPerWord}});
  arrays.require("scales", {"F16", "BF16", "F32"}, {{groups, spec.rows}});
  return arrays.take();
}

int8_t code_at(const ArrayReader& words, int64_t line, int64_t row, int64_t num_rows) {
  const uint32_t word = words.word(line * (num_rows / kPerWord) + row / kPerWord);
  const uint32_t code = (word >> awq_shift(row % kPerWord)) & 15U;
  return static_cast<int8_t>(static_cast<int32_t>(code) - kOffset);
}

void read_by_outputs(const AwqConfig& awq,
                     const MatrixSpec& spec,
                     const ArrayReader& weights,
                     const ArrayReader& zeros,
                     const ArrayReader& scales,
                     Range rows,
                     Range cols,
                     int64_t first_group,
                     DecodedBlock& block) {
  const auto code = [](const ArrayReader& words, int64_t line, int64_t width, int64_t at) {
    const uint32_t word = words.word(line * width + at / kPerWord);
    return static_cast<int8_t>(static_cast<int32_t>((word >> (at % kPerWord * 4)) & 15U) - kOffset);
  };
  const int64_t groups = awq.group_size == 0 ? 1 : spec.cols / awq.group_size;
  const int64_t width = zeros_width(awq, groups);
  decode_parallel(rows.count, cols.count, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t line = rows.begin + row;
      for (int64_t group = 0; group < block.num_groups; ++group) {
        const auto to = static_cast<size_t>(row * block.num_groups + group);
        block.scales[to] = scales.number(line * width * kPerWord + first_group + group);
        block.zeros[to] = code(zeros, line, width, first_group + group);
      }
      for (int64_t col = 0; col < cols.count; ++col) {
        block.codes[static_cast<size_t>(row * cols.count + col)] =
            code(weights, line, spec.cols / kPerWord, cols.begin + col);
      }
    }
  });
}

HostWeight slice(const Json& config,
                 const Checkpoint& checkpoint,
                 const MatrixSpec& spec,
                 std::span<const StoredTensor* const> tensors,
                 Range rows,
                 Range cols,
                 const MatrixStorage& storage) {
  const AwqConfig awq = read_awq(config);
  if (is_plain(awq, checkpoint, spec)) {
    return slice_dense(checkpoint, spec, *tensors.front(), rows, cols);
  }
  DecodedBlock block(spec.name, rows, cols);
  const int64_t first_group = block.cut_groups(cols, awq.group_size, true);
  const ArrayReader weights(checkpoint, *find_array(tensors, "qweight"));
  const ArrayReader zeros(checkpoint, *find_array(tensors, "qzeros"));
  const ArrayReader scales(checkpoint, *find_array(tensors, "scales"));
  if (awq.by_outputs) {
    read_by_outputs(awq, spec, weights, zeros, scales, rows, cols, first_group, block);
    return to_host_weight(std::move(block), storage);
  }
  for (int64_t group = 0; group < block.num_groups; ++group) {
    for (int64_t row = 0; row < rows.count; ++row) {
      const auto to = static_cast<size_t>(row * block.num_groups + group);
      block.scales[to] = scales.number((first_group + group) * spec.rows + rows.begin + row);
      block.zeros[to] = code_at(zeros, first_group + group, rows.begin + row, spec.rows);
    }
  }
  decode_parallel(rows.count, cols.count, [&](int64_t begin, int64_t end) {
    // A few outputs at a time: words of theirs and rows that are written stay in the cache.
    constexpr int64_t kTile = 64;
    for (int64_t tile = begin; tile < end; tile += kTile) {
      for (int64_t col = 0; col < cols.count; ++col) {
        for (int64_t row = tile; row < std::min(end, tile + kTile); ++row) {
          block.codes[static_cast<size_t>(row * cols.count + col)] =
              code_at(weights, cols.begin + col, rows.begin + row, spec.rows);
        }
      }
    }
  });
  return to_host_weight(std::move(block), storage);
}

}  // namespace
}  // namespace awq_format

template <>
const WeightFormat& weight_format<"awq">() {
  static constexpr WeightFormat kThis = {
      .name = "awq",
      .claims = awq_format::claims,
      .form_of = awq_format::form_of,
      .collect = awq_format::collect,
      .slice = awq_format::slice,
      .may_ignore = nullptr,
  };
  return kThis;
}

}  // namespace tgi
