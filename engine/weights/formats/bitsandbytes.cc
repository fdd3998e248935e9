// Checkpoints of bitsandbytes as transformers saves them: 4 bits with the tables nf4 and fp4
// (bitsandbytes_4bit.h), or 8 bits as LLM.int8() has them:
//   weight         I8 (out, in)
//   SCB            F32 (out)  the largest magnitude of a row: that of 127
//   weight_format  U8 ()      0: row by row; nobody writes the others any more
//
// Source: BitsAndBytesConfig, replace_with_bnb_linear and quantizers_utils of `transformers` 4 and
// 5; Linear8bitLt and int8_vectorwise_dequant of bitsandbytes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/known_fields.h"
#include "engine/weights/formats/bitsandbytes_4bit.h"
#include "engine/weights/formats/dense.h"
#include "engine/weights/formats/module_names.h"
#include "engine/weights/formats/quantization_fields.h"
#include "engine/weights/formats/stored_arrays.h"

namespace tgi {
namespace bitsandbytes_format {
namespace {

constexpr float kPerCode = 7.874015718698502e-3F;  // 1 / 127

constexpr std::string_view kTensorsSay = "the tensors of each matrix say it";

constexpr auto kFields = std::to_array<KnownField>({
    read_or_null("load_in_4bit"),
    read_or_null("load_in_8bit"),
    read_or_null("_load_in_4bit"),
    read_or_null("_load_in_8bit"),
    read_or_null("bnb_4bit_quant_type"),
    harmless("bnb_4bit_use_double_quant", kTensorsSay),
    harmless("bnb_4bit_compute_dtype", "sums are computed as the device does it"),
    harmless_if("bnb_4bit_quant_storage",
                R"(["uint8", "int8", "float16", "bfloat16", "float32", "float64"])",
                "codes are taken from bytes, in whatever type they are stored"),
    read_or_null("llm_int8_skip_modules"),
    harmless("llm_int8_threshold", kActivationsReason),
    harmless("llm_int8_enable_fp32_cpu_offload", "is about where modules run"),
    read_or_null("llm_int8_has_fp16_weight"),
});

struct BitsAndBytesConfig {
  bool is_8bit = false;
  bool is_nf4 = false;
  bool keeps_numbers = false;  // has_fp16_weight: whether they are rounded is up to the tensors
  bool skips_only_named = false;
  bool keeps_experts = false;
  std::vector<std::string> skipped{};
};

constexpr int kVersionOfExpertParameters = 5;

// Of the transformers that wrote the file; 0: it does not say.
int major_version(const Json& config) {
  const std::string version = JsonReader(config, "").string_or("transformers_version", "");
  int out = 0;
  (void)std::from_chars(version.data(), version.data() + version.size(), out);
  return out;
}

bool is_set(const JsonReader& quantization, std::string_view name, std::string_view private_name) {
  return quantization.boolean_or(name_in_use(quantization, {name, private_name}), false);
}

BitsAndBytesConfig read_bitsandbytes(const JsonReader& quantization) {
  BitsAndBytesConfig out;
  out.is_8bit = is_set(quantization, "load_in_8bit", "_load_in_8bit");
  const bool is_4bit = is_set(quantization, "load_in_4bit", "_load_in_4bit");
  if (out.is_8bit == is_4bit) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: bitsandbytes expects one of load_in_4bit and load_in_8bit to be "
                            "true, got {}",
                            quantization.path_of(is_4bit ? "load_in_8bit" : "load_in_4bit"),
                            is_4bit ? "both" : "neither"));
  }
  const std::string type = quantization.string_or("bnb_4bit_quant_type", "fp4");
  if (type != "nf4" && type != "fp4") {
    throw Error(Code::kUnsupported,
                fmt::format("{}: bitsandbytes with '{}' can't be loaded; supported: nf4, fp4",
                            quantization.path_of("bnb_4bit_quant_type"), type));
  }
  out.is_nf4 = type == "nf4";
  out.keeps_numbers = quantization.boolean_or("llm_int8_has_fp16_weight", false);
  out.skips_only_named = quantization.has("llm_int8_skip_modules");
  out.skipped = quantization.strings_or_empty("llm_int8_skip_modules");
  return out;
}

BitsAndBytesConfig read_bitsandbytes(const Json& config) {
  BitsAndBytesConfig out = read_bitsandbytes(quantization_of(config));
  out.keeps_experts = major_version(config) >= kVersionOfExpertParameters;
  return out;
}

// Files of before transformers 4.32 don't name the method.
bool is_bitsandbytes(const JsonReader& config) {
  const std::string method = quant_method_of(config);
  if (method == "bitsandbytes" || method == "bitsandbytes_4bit" || method == "bitsandbytes_8bit") {
    return true;
  }
  if (!method.empty() || !config.has("quantization_config")) return false;
  const JsonReader quantization = quantization_of(config);
  return quantization.has("load_in_4bit") || quantization.has("load_in_8bit");
}

bool claims(const JsonReader& config) {
  if (!is_bitsandbytes(config)) return false;
  const JsonReader quantization = quantization_of(config);
  check_left_plain(read_bitsandbytes(quantization).skipped);
  check_quantization(quantization, kFields, "bitsandbytes");
  return true;
}

// Parameters of modules that hold all experts of a layer or choose among them, and are no linears:
// written under the names of linears all the same.
bool is_of_experts(std::string_view module) {
  return module.find(".experts.") != std::string_view::npos || module.ends_with(".gate") ||
         module.ends_with(".router");
}

// Whether transformers would have quantised it. Memory is planned by this; what a matrix is read as
// is up to its tensors.
bool is_meant(const BitsAndBytesConfig& config, const MatrixSpec& spec) {
  if (spec.kind == MatrixKind::kEmbedding) return false;
  if (spec.kind == MatrixKind::kHead && !config.skips_only_named) return false;
  if (spec.stack.count > 0 && !spec.stack.is_flat) return false;  // of no module
  if (config.keeps_experts && is_of_experts(module_name(spec))) return false;
  return !is_left_plain(config.skipped, module_name(spec));
}

StoredForm form_of(const Json& config, const MatrixSpec& spec) {
  const BitsAndBytesConfig bnb = read_bitsandbytes(config);
  if (!is_meant(bnb, spec)) return {};
  if (!bnb.is_8bit) {
    StoredForm form{.quantised_as =
                        fmt::format("bitsandbytes' {}", quantization_name(table_kind(bnb.is_nf4)))};
    if (!has_whole_blocks(spec)) return form;
    form.bits = 4;
    form.group_size = kKeptBlock;
    form.table = table_kind(bnb.is_nf4);
    return form;
  }
  return {.quantised_as = "bitsandbytes with 8 bits", .bits = bnb.keeps_numbers ? 0 : 8};
}

bool is_stored_in_8bit(const Checkpoint& checkpoint, const MatrixSpec& spec) {
  const StoredTensor* tensor = find_by_any_name(checkpoint, spec.name, spec.prefix);
  if (tensor != nullptr && tensor->dtype_name == "I8") return true;
  return find_by_any_name(checkpoint, fmt::format("{}.SCB", module_name(spec)), spec.prefix) !=
         nullptr;
}

std::vector<const StoredTensor*> collect(const Json& config,
                                         const Checkpoint& checkpoint,
                                         const MatrixSpec& spec,
                                         WeightProblems& problems) {
  if (spec.kind == MatrixKind::kEmbedding) return collect_dense(checkpoint, spec, problems);
  const BitsAndBytesConfig bnb = read_bitsandbytes(config);
  if (!bnb.is_8bit && is_stored_in_4bit(checkpoint, spec)) {
    return collect_4bit(checkpoint, spec, bnb.is_nf4, problems);
  }
  if (bnb.is_8bit && is_stored_in_8bit(checkpoint, spec)) {
    ArrayCollector arrays(checkpoint, spec, problems);
    arrays.require("weight", {"I8"}, {{stored_rows(spec), spec.cols}});
    arrays.require("SCB", {"F32"}, {{stored_rows(spec)}});
    arrays.allow("weight_format", {"U8"}, {{}, {1}});
    return arrays.take();
  }
  return collect_dense(checkpoint, spec, problems);
}

void check_order(const ArrayReader& order) {
  const uint8_t code = order.byte(0);
  if (code == 0) return;
  constexpr std::string_view kNames[] = {"row", "col32", "col_turing", "col_ampere"};
  throw Error(
      Code::kUnsupported,
      fmt::format("tensor {}: the order of the numbers is {} ({}), supported: 0 (row); save "
                  "the checkpoint with a newer bitsandbytes",
                  order.name(), code, code < 4 ? kNames[code] : "unknown"));
}

HostWeight slice_8bit(const Checkpoint& checkpoint,
                      const MatrixSpec& spec,
                      std::span<const StoredTensor* const> tensors,
                      Range rows,
                      Range cols,
                      const MatrixStorage& storage) {
  const ArrayReader codes(checkpoint, *find_array(tensors, "weight"));
  const ArrayReader largest(checkpoint, *find_array(tensors, "SCB"));
  if (const StoredTensor* order = find_array(tensors, "weight_format")) {
    check_order(ArrayReader(checkpoint, *order));
  }
  DecodedBlock block(spec.name, rows, cols);
  block.cut_groups(cols, 0, false);
  ScratchVector<float> values(storage.stored ? 0 : block.codes.size());
  for (int64_t row = 0; row < rows.count && cols.count > 0; ++row) {
    block.scales[static_cast<size_t>(row)] =
        largest.number(stored_row(spec, rows.begin + row)) * kPerCode;
  }
  decode_parallel(rows.count, cols.count, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t line = stored_row(spec, rows.begin + row);
      const float row_largest = largest.number(line);
      for (int64_t col = 0; col < cols.count; ++col) {
        const auto i = static_cast<size_t>(row * cols.count + col);
        const auto code = static_cast<int8_t>(codes.byte(line * spec.cols + cols.begin + col));
        block.codes[i] = code;
        // Rounded twice, as there.
        if (!storage.stored) values[i] = static_cast<float>(code) * row_largest * kPerCode;
      }
    }
  });
  if (storage.stored) return to_host_weight(std::move(block), storage);
  return to_host_weight(spec.name, rows.count, cols.count, std::move(values));
}

HostWeight slice(const Json& /*config*/,
                 const Checkpoint& checkpoint,
                 const MatrixSpec& spec,
                 std::span<const StoredTensor* const> tensors,
                 Range rows,
                 Range cols,
                 const MatrixStorage& storage) {
  if (find_array(tensors, "SCB") != nullptr) {
    return slice_8bit(checkpoint, spec, tensors, rows, cols, storage);
  }
  if (tensors.size() > 1) {
    return slice_4bit(checkpoint, spec, tensors, {.rows = rows, .cols = cols, .storage = storage});
  }
  if (storage.stored) {
    const std::string_view module = module_name(spec);
    const bool is_8bit = storage.quantization == Quantization::kInt8;
    const std::string expected = is_8bit
                                     ? fmt::format("I8 with {}.SCB beside it", module)
                                     : fmt::format("codes with {}.absmax beside them", spec.name);
    throw Error(Code::kUnsupported,
                fmt::format("tensor {}: expected {}, got {}; if it was not meant to be quantised, "
                            "name {} in quantization_config.llm_int8_skip_modules",
                            tensors.front()->name, expected, tensors.front()->dtype_name, module));
  }
  return slice_dense(checkpoint, spec, *tensors.front(), rows, cols);
}

}  // namespace
}  // namespace bitsandbytes_format

template <>
const WeightFormat& weight_format<"bitsandbytes">() {
  static constexpr WeightFormat kThis = {
      .name = "bitsandbytes",
      .claims = bitsandbytes_format::claims,
      .form_of = bitsandbytes_format::form_of,
      .collect = bitsandbytes_format::collect,
      .slice = bitsandbytes_format::slice,
      .may_ignore = nullptr,
  };
  return kThis;
}

}  // namespace tgi
