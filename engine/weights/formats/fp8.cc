// 8-bit floats as transformers stores them, by quant_method:
//   fp8         weight F8_E4M3 (out, in), weight_scale_inv per block (DeepSeek's layout) or single;
//               what others call weight_scale is the same thing
//   fbgemm_fp8  weight F8_E4M3 (out, in), weight_scale (out, 1)
// Activations are not rounded to 8 bits; scales for that are left aside.
//
// Source: https://github.com/huggingface/transformers, integrations/finegrained_fp8, fbgemm_fp8.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ascii.h"
#include "base/error.h"
#include "base/known_fields.h"
#include "engine/weights/formats/dense.h"
#include "engine/weights/formats/fp8_values.h"
#include "engine/weights/formats/module_names.h"
#include "engine/weights/formats/quantization_fields.h"

namespace tgi {
namespace fp8_format {
namespace {

struct Fp8Config {
  std::string method;
  ScaleGrid grid;
  bool single_scale = false;
  std::vector<std::string> dense_modules{};
};

// [128, 128]
ScaleGrid read_block_size(const JsonReader& quantization) {
  const Json& size = quantization.json().at("weight_block_size");
  const auto is_count = [](const Json& item) {
    return item.is_number_integer() && item.get<int64_t>() > 0 &&
           item.get<int64_t>() <= int64_t{1} << 31;
  };
  if (!size.is_array() || size.size() != 2 || !is_count(size[0]) || !is_count(size[1])) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected two numbers of rows and columns, got {}",
                            quantization.path_of("weight_block_size"), size.dump()));
  }
  return {.block_rows = size[0].get<int64_t>(), .block_cols = size[1].get<int64_t>()};
}

constexpr std::string_view kOneMeaning = "8-bit floats are all that this method stores";
// GPTQModel's fp8 has the same names as DeepSeek's, and scales that are the inverse of those.
constexpr std::string_view kInverse =
    "the scales are multiplied with, and GPTQModel's are divided by; write such checkpoints as "
    "compressed-tensors";

constexpr auto kFields = std::to_array<KnownField>({
    read_or_null("fmt"),
    read_or_null("format"),
    read_or_null("checkpoint_format"),
    read_or_null("weight_block_size"),
    read_or_null("modules_to_not_convert"),
    read_or_null("ignored_layers"),
    harmless("activation_scale_ub", kActivationsReason),
    harmless("kv_cache_scheme", "the settings of a load say how keys and values are kept"),
    harmless("dequantize", "weights are always decoded"),
    harmless_if("activation_scheme", R"(["dynamic", "static"])", kActivationsReason),
    harmless_if("scale_fmt", R"(["ue8m0", "float32"])", "scales are stored as plain numbers"),
    harmless_if("weight_scale_semantics", "[]", kInverse),
    harmless_if("weight_scale_method", "[]", kInverse),
    harmless_if("bits", "[8]", kOneMeaning),
    harmless_if("group_size", "[-1]", kOneMeaning),
    harmless_if("sym", "[true]", kOneMeaning),
    harmless_if("desc_act", "[false]", kOneMeaning),
    harmless_if("lm_head", "[false]", "only the matrices of the layers are quantised"),
});

Fp8Config read_fp8(const JsonReader& quantization) {
  Fp8Config out;
  out.method = quantization.string("quant_method");
  const std::string_view key = name_in_use(quantization, {"fmt", "format", "checkpoint_format"});
  const std::string type = ascii_lower(quantization.string_or(key, "e4m3"));
  if (type != "e4m3" && type != "float8_e4m3fn") {
    throw Error(Code::kUnsupported,
                fmt::format("{}: fp8 of type '{}' can't be loaded; supported: e4m3",
                            quantization.path_of(key), type));
  }
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  if (out.method == "fbgemm_fp8") {
    if (quantization.has("weight_block_size")) {
      throw Error(
          Code::kUnsupported,
          fmt::format("{}: fbgemm_fp8 in blocks can't be loaded; supported: a scale per row",
                      quantization.path_of("weight_block_size")));
    }
    out.grid = {.block_rows = 1, .block_cols = kAll / 2};
  } else if (quantization.has("weight_block_size")) {
    out.grid = read_block_size(quantization);
  } else {
    out.grid = {.block_rows = kAll / 2, .block_cols = kAll / 2};
    out.single_scale = true;
  }
  for (const char* key : {"modules_to_not_convert", "ignored_layers"}) {
    const std::vector<std::string> modules = quantization.strings_or_empty(key);
    out.dense_modules.insert(out.dense_modules.end(), modules.begin(), modules.end());
  }
  return out;
}

Fp8Config read_fp8(const Json& config) {
  return read_fp8(quantization_of(config));
}

bool claims(const JsonReader& config) {
  const std::string method = quant_method_of(config);
  if (method != "fp8" && method != "fbgemm_fp8") return false;
  const JsonReader quantization = quantization_of(config);
  check_left_plain(read_fp8(quantization).dense_modules);
  check_quantization(quantization, kFields, method);
  return true;
}

bool is_quantised(const Fp8Config& fp8, const MatrixSpec& spec) {
  return spec.kind == MatrixKind::kLayer && !is_left_plain(fp8.dense_modules, module_name(spec));
}

bool is_plain(const Fp8Config& fp8, const Checkpoint& checkpoint, const MatrixSpec& spec) {
  return !is_quantised(fp8, spec) ||
         is_plain_choice(checkpoint, spec, {"weight_scale", "weight_scale_inv"});
}

StoredForm form_of(const Json& config, const MatrixSpec& spec) {
  const Fp8Config fp8 = read_fp8(config);
  if (!is_quantised(fp8, spec)) return {};
  return fp8_form(fp8.method, fp8.grid, spec.cols);
}

std::vector<const StoredTensor*> collect(const Json& config,
                                         const Checkpoint& checkpoint,
                                         const MatrixSpec& spec,
                                         WeightProblems& problems) {
  const Fp8Config fp8 = read_fp8(config);
  if (is_plain(fp8, checkpoint, spec)) return collect_dense(checkpoint, spec, problems);
  ArrayCollector arrays(checkpoint, spec, problems);
  arrays.require("weight", {"F8_E4M3"}, {{spec.rows, spec.cols}});
  const std::vector<int64_t> grid = fp8.grid.shape(spec.rows, spec.cols);
  const std::initializer_list<std::string_view> numbers = {"F32", "BF16", "F16"};
  if (fp8.single_scale) {
    if (!arrays.allow("weight_scale", numbers, {{}, {1}, {1, 1}})) {
      arrays.require("weight_scale_inv", numbers, {{}, {1}, {1, 1}});
    }
  } else if (!arrays.allow("weight_scale", numbers, {grid})) {
    arrays.require("weight_scale_inv", numbers, {grid});
  }
  return arrays.take();
}

HostWeight slice(const Json& config,
                 const Checkpoint& checkpoint,
                 const MatrixSpec& spec,
                 std::span<const StoredTensor* const> tensors,
                 Range rows,
                 Range cols,
                 const MatrixStorage& storage) {
  const Fp8Config fp8 = read_fp8(config);
  if (is_plain(fp8, checkpoint, spec)) {
    return slice_dense(checkpoint, spec, *tensors.front(), rows, cols);
  }
  const StoredTensor* scale = find_array(tensors, "weight_scale");
  if (scale == nullptr) scale = find_array(tensors, "weight_scale_inv");
  return slice_fp8(checkpoint, spec, *find_array(tensors, "weight"), *scale, fp8.grid, rows, cols,
                   storage);
}

}  // namespace
}  // namespace fp8_format

template <>
const WeightFormat& weight_format<"fp8">() {
  static constexpr WeightFormat kThis = {
      .name = "fp8",
      .claims = fp8_format::claims,
      .form_of = fp8_format::form_of,
      .collect = fp8_format::collect,
      .slice = fp8_format::slice,
      .may_ignore = is_activation_scale,
  };
  return kThis;
}

}  // namespace tgi
