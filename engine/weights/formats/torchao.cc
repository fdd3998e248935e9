// Matrices as torchao's tensor classes lie in safetensors, where their parts are tensors of their
// own (from torchao 0.15 on):
//   integers  MODULE._weight_qdata I8 (out, in), each in a byte however few bits it has;
//             MODULE._weight_scale for all, per row or (out, groups); MODULE._weight_zero_point I8,
//             as the scales
//   float8    MODULE._weight_qdata F8_E4M3; MODULE._weight_scale for all or per row
// quantization_config holds the object of torchao that was applied: {"_type": its class, "_data":
// its members}. Activations are rounded as this program's kernels do it, whatever it says of them.
//
// Source: https://github.com/pytorch/ao, quantization/quantize_ and prototype/safetensors;
// TorchAoConfig of `transformers`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/known_fields.h"
#include "engine/weights/formats/dense.h"
#include "engine/weights/formats/fp8_values.h"
#include "engine/weights/formats/module_names.h"
#include "engine/weights/formats/quantization_fields.h"
#include "engine/weights/formats/stored_arrays.h"

namespace tgi {
namespace torchao_format {
namespace {

constexpr int64_t kAll = std::numeric_limits<int64_t>::max() / 2;
constexpr std::string_view kQData = "_weight_qdata";
constexpr std::string_view kScale = "_weight_scale";
constexpr std::string_view kZeroPoint = "_weight_zero_point";

struct TorchaoScheme {
  bool is_float = false;
  int32_t bits = 8;
  bool is_single = false;  // one scale for all
  int64_t group_size = 0;  // columns; 0: a row
  bool symmetric = true;
};

// Which member of a class says what of the weights.
struct TorchaoClass {
  std::string_view name;
  bool is_float = false;
  std::string_view granularity = "granularity";
  std::string_view mapping{};       // empty: symmetric, always
  std::string_view weight_dtype{};  // empty: 8 bits
};

constexpr auto kClasses = std::to_array<TorchaoClass>({
    {.name = "Int8WeightOnlyConfig"},
    {.name = "Int8DynamicActivationInt8WeightConfig"},
    {.name = "IntxWeightOnlyConfig", .mapping = "mapping_type", .weight_dtype = "weight_dtype"},
    {.name = "Int8DynamicActivationIntxWeightConfig",
     .granularity = "weight_granularity",
     .mapping = "weight_mapping_type",
     .weight_dtype = "weight_dtype"},
    {.name = "Float8WeightOnlyConfig", .is_float = true, .weight_dtype = "weight_dtype"},
    {.name = "Float8DynamicActivationFloat8WeightConfig",
     .is_float = true,
     .weight_dtype = "weight_dtype"},
});

constexpr std::string_view kFound = "says how the numbers were found, not what they mean";
constexpr std::string_view kSpeed = "chooses how the same sums are computed";

constexpr auto kFields = std::to_array<KnownField>({
    read_or_null("quant_method"),
    read("quant_type"),
    read_or_null("modules_to_not_convert"),
    harmless_if("include_input_output_embeddings", "[false]", "embeddings are not quantised here"),
    harmless("untie_embedding_weights", "the tensors that are there say it"),
});

constexpr auto kObjectFields = std::to_array<KnownField>({
    read("_type"),
    read("_version"),
    read("_data"),
});

constexpr auto kMembers = std::to_array<KnownField>({
    read_or_null("granularity"),
    read_or_null("weight_granularity"),
    read_or_null("mapping_type"),
    read_or_null("weight_mapping_type"),
    read_or_null("weight_dtype"),
    read_or_null("intx_packing_format"),
    read_or_null("packing_format"),
    harmless_if("group_size", "[]", "granularity says which numbers share a scale"),
    harmless("scale_dtype", "the tensors of the scales say it"),
    harmless("weight_scale_dtype", "the tensors of the scales say it"),
    harmless("intx_choose_qparams_algorithm", kFound),
    harmless("reduce_range", kFound),
    harmless("act_mapping_type", kActivationsReason),
    harmless("activation_dtype", kActivationsReason),
    harmless("activation_value_lb", kActivationsReason),
    harmless("activation_value_ub", kActivationsReason),
    harmless("weight_only_decode", kActivationsReason),
    harmless("mm_config", kSpeed),
    harmless("kernel_preference", kSpeed),
    harmless("set_inductor_config", kSpeed),
    harmless("alg_id", kSpeed),
});

[[noreturn]] void unsupported(const JsonReader& object,
                              std::string_view key,
                              std::string_view value,
                              std::string_view supported) {
  throw Error(Code::kUnsupported, fmt::format("{}: torchao's '{}' can't be loaded; supported: {}",
                                              object.path_of(key), value, supported));
}

// The value of an enumerator or a type of torch: {"_type": .., "_data": "int4"}.
std::string enumerator(const JsonReader& members, std::string_view key, std::string fallback) {
  if (!members.has(key)) return fallback;
  return members.object(key).string("_data");
}

const TorchaoClass& read_class(const JsonReader& object) {
  const std::string name = object.string("_type");
  const auto* const known = std::ranges::find(kClasses, name, &TorchaoClass::name);
  if (known == kClasses.end()) {
    std::string names;
    for (const TorchaoClass& each : kClasses) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", each.name);
    }
    unsupported(object, "_type", name,
                names + "; or save the model plainly and round it with tgi quantize");
  }
  return *known;
}

void read_granularity(const JsonReader& members,
                      const TorchaoClass& its_class,
                      TorchaoScheme& out) {
  const std::string_view key = its_class.granularity;
  if (!members.has(key)) return;  // a row
  // Of activations and weights.
  const Json& json = members.json().at(std::string(key));
  const bool is_pair = json.is_array() && json.size() == 2;
  const JsonReader one =
      is_pair ? JsonReader(json[1], members.path_of(key) + "[1]") : members.object(key);
  const std::string name = one.string("_type");
  const JsonReader data = one.object("_data");
  if (name == "PerTensor") {
    out.is_single = true;
  } else if (name == "PerGroup" && !out.is_float) {
    out.group_size = read_group_size(data, "group_size", -1);
  } else if (name == "PerAxis" ? data.integer_or("axis", 0) != 0
                               : name != "PerRow" || data.integer_or("dim", -1) != -1) {
    unsupported(one, "_type", name,
                out.is_float ? "PerTensor, PerRow" : "PerTensor, PerRow, PerAxis of 0, PerGroup");
  }
}

TorchaoScheme read_scheme(const JsonReader& quantization) {
  const JsonReader object = quantization.object("quant_type").object("default");
  const TorchaoClass& its_class = read_class(object);
  if (object.integer_or("_version", 1) < 2) {
    unsupported(object, "_version", "1", "2, which is what safetensors hold");
  }
  const JsonReader members = object.object("_data");
  TorchaoScheme out{.is_float = its_class.is_float};
  read_granularity(members, its_class, out);
  if (!its_class.mapping.empty()) {
    out.symmetric = enumerator(members, its_class.mapping, "SYMMETRIC") == "SYMMETRIC";
  }
  for (const char* key : {"intx_packing_format", "packing_format"}) {
    const std::string layout = enumerator(members, key, "PLAIN");
    if (layout == "PLAIN" || layout == "UNPACKED_TO_INT8") continue;
    unsupported(members, key, layout, "PLAIN, UNPACKED_TO_INT8");
  }
  if (its_class.weight_dtype.empty()) return out;
  const std::string dtype =
      enumerator(members, its_class.weight_dtype, its_class.is_float ? "float8_e4m3fn" : "int8");
  constexpr std::string_view kTypes = "int1 int2 int3 int4 int5 int6 int7 int8";
  const bool is_known = its_class.is_float
                            ? dtype == "float8_e4m3fn"
                            : dtype.size() == 4 && kTypes.find(dtype) != std::string_view::npos;
  if (!is_known) {
    unsupported(members, its_class.weight_dtype, dtype,
                its_class.is_float ? "float8_e4m3fn" : "int1 to int8");
  }
  if (!its_class.is_float) out.bits = dtype.back() <= '4' ? 4 : 8;
  return out;
}

bool claims(const JsonReader& config) {
  if (quant_method_of(config) != "torchao") return false;
  const JsonReader quantization = quantization_of(config);
  check_left_plain(quantization.strings_or_empty("modules_to_not_convert"));
  if (quantization.has("quant_type") && quantization.json().at("quant_type").is_string()) {
    unsupported(quantization, "quant_type", quantization.string("quant_type"),
                "objects of torchao 0.15 and later; older ones are Python objects in .bin files: "
                "save the model plainly and round it with tgi quantize");
  }
  (void)read_scheme(quantization);
  check_quantization_part(quantization, kFields, "torchao");
  const JsonReader object = quantization.object("quant_type").object("default");
  check_quantization_part(object, kObjectFields, "torchao's object");
  check_quantization_part(object.object("_data"), kMembers, "torchao's object");
  return true;
}

bool is_quantised(const Json& config, const MatrixSpec& spec) {
  if (spec.kind != MatrixKind::kLayer || spec.stack.count > 0) return false;
  const std::vector<std::string> plain =
      quantization_of(config).strings_or_empty("modules_to_not_convert");
  return !is_left_plain(plain, spec.name);  // it is the tensor that is named there
}

bool is_plain(const Json& config, const Checkpoint& checkpoint, const MatrixSpec& spec) {
  return !is_quantised(config, spec) ||
         is_plain_choice(checkpoint, spec, {kQData, kScale, kZeroPoint});
}

TorchaoScheme scheme_of(const Json& config) {
  return read_scheme(quantization_of(config));
}

ScaleGrid grid_of(const TorchaoScheme& scheme) {
  return {.block_rows = scheme.is_single ? kAll : 1,
          .block_cols = scheme.group_size > 0 ? scheme.group_size : kAll};
}

StoredForm form_of(const Json& config, const MatrixSpec& spec) {
  if (!is_quantised(config, spec)) return {};
  const TorchaoScheme scheme = scheme_of(config);
  if (scheme.is_float) return fp8_form("torchao, fp8", grid_of(scheme), spec.cols);
  return {.quantised_as = fmt::format("torchao, {} bits", scheme.bits),
          .bits = scheme.bits,
          .group_size = scheme.group_size,
          .zero_points = !scheme.symmetric};
}

std::vector<const StoredTensor*> collect(const Json& config,
                                         const Checkpoint& checkpoint,
                                         const MatrixSpec& spec,
                                         WeightProblems& problems) {
  if (is_plain(config, checkpoint, spec)) return collect_dense(checkpoint, spec, problems);
  const TorchaoScheme scheme = scheme_of(config);
  const std::vector<int64_t> grid = grid_of(scheme).shape(spec.rows, spec.cols);
  if (scheme.group_size > 0 && spec.cols % scheme.group_size != 0) {
    problems.misshapen.push_back(fmt::format("{}: {} columns can't be in groups of {}", spec.name,
                                             spec.cols, scheme.group_size));
    return {};
  }
  ArrayCollector arrays(checkpoint, spec, problems);
  arrays.require(kQData, {scheme.is_float ? "F8_E4M3" : "I8"}, {{spec.rows, spec.cols}});
  const std::initializer_list<std::string_view> numbers = {"F32", "F16", "BF16"};
  if (scheme.is_single) {
    arrays.require(kScale, numbers, {{}, {1}, {1, 1}});
  } else {
    arrays.require(kScale, numbers, {grid});
  }
  if (scheme.is_float) return arrays.take();
  const std::vector<int64_t> single = scheme.is_single ? std::vector<int64_t>{} : grid;
  if (scheme.symmetric) {
    arrays.allow(kZeroPoint, {"I8"}, {grid, single});
  } else {
    arrays.require(kZeroPoint, {"I8"}, {grid, single});
  }
  return arrays.take();
}

class TorchaoIntegers {
 public:
  TorchaoIntegers(const Checkpoint& checkpoint, const StoredTensor& tensor, int32_t bits)
      : reader_(checkpoint, tensor), lowest_(-(1 << (bits - 1))) {}

  int8_t at(int64_t index) const {
    const auto code = static_cast<int8_t>(reader_.byte(index));
    if (code >= lowest_ && code < -lowest_) return code;
    throw Error(Code::kInvalidArgument,
                fmt::format("tensor {}: element {} is {}, expected {} to {} as weight_dtype says; "
                            "is the file damaged?",
                            reader_.name(), index, code, lowest_, -lowest_ - 1));
  }
  // A zero point of a matrix that has none.
  void require_zero(int64_t index) const {
    if (reader_.byte(index) == 0) return;
    throw Error(Code::kInvalidArgument,
                fmt::format("tensor {}: element {} is not 0, though the weights are symmetric; is "
                            "the file damaged?",
                            reader_.name(), index));
  }

 private:
  ArrayReader reader_;
  int32_t lowest_;
};

HostWeight slice(const Json& config,
                 const Checkpoint& checkpoint,
                 const MatrixSpec& spec,
                 std::span<const StoredTensor* const> tensors,
                 Range rows,
                 Range cols,
                 const MatrixStorage& storage) {
  if (is_plain(config, checkpoint, spec)) {
    return slice_dense(checkpoint, spec, *tensors.front(), rows, cols);
  }
  const TorchaoScheme scheme = scheme_of(config);
  const StoredTensor& scale = *find_array(tensors, kScale);
  if (scheme.is_float) {
    return slice_fp8(checkpoint, spec, *find_array(tensors, kQData), scale, grid_of(scheme), rows,
                     cols, storage);
  }
  DecodedBlock block(spec.name, rows, cols);
  const int64_t first_group = block.cut_groups(cols, scheme.group_size, !scheme.symmetric);
  const int64_t groups = grid_of(scheme).shape(spec.rows, spec.cols)[1];
  const ArrayReader scales(checkpoint, scale);
  const TorchaoIntegers codes(checkpoint, *find_array(tensors, kQData), scheme.bits);
  std::optional<TorchaoIntegers> zeros;
  if (const StoredTensor* const stored = find_array(tensors, kZeroPoint)) {
    zeros.emplace(checkpoint, *stored, scheme.bits);
  }
  decode_parallel(rows.count, cols.count, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t group = 0; group < block.num_groups; ++group) {
        const int64_t from =
            scheme.is_single ? 0 : (rows.begin + row) * groups + first_group + group;
        const auto to = static_cast<size_t>(row * block.num_groups + group);
        block.scales[to] = scales.number(from);
        if (!zeros) continue;
        if (scheme.symmetric) {
          zeros->require_zero(from);
        } else {
          block.zeros[to] = zeros->at(from);
        }
      }
      const int64_t line = (rows.begin + row) * spec.cols + cols.begin;
      for (int64_t col = 0; col < cols.count; ++col) {
        block.codes[static_cast<size_t>(row * cols.count + col)] = codes.at(line + col);
      }
    }
  });
  return to_host_weight(std::move(block), storage);
}

}  // namespace
}  // namespace torchao_format

template <>
const WeightFormat& weight_format<"torchao">() {
  static constexpr WeightFormat kThis = {
      .name = "torchao",
      .claims = torchao_format::claims,
      .form_of = torchao_format::form_of,
      .collect = torchao_format::collect,
      .slice = torchao_format::slice,
  };
  return kThis;
}

}  // namespace tgi
