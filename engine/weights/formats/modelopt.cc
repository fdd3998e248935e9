// What NVIDIA's Model Optimizer writes, by quant_algo:
//   FP8             weight F8_E4M3 (out, in), weight_scale for all
//   FP8_PER_CHANNEL_PER_TOKEN  the same, weight_scale (out)
//   NVFP4, W4A16_NVFP4, W4A8_NVFP4_FP8  weight U8 (out, in / 2), floats of 4 bits; weight_scale
//                   F8_E4M3 (out, in / 16), all multiplied with weight_scale_2
//   W4A8_MXFP4_FP8  weight U8 (out, in / 2); weight_scale U8 (out, in / 32) of e8m0
//   MIXED_PRECISION one of them for each module that quantized_layers names
// The settings are quantization_config of config.json or, within "quantization", a file of their
// own, hf_quant_config.json. Activations and the cache are not rounded as they say; scales for that
// are left aside.
//
// Source: https://github.com/NVIDIA/Model-Optimizer, export/quant_utils, export/convert_hf_config.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ascii.h"
#include "base/error.h"
#include "base/known_fields.h"
#include "engine/weights/formats/dense.h"
#include "engine/weights/formats/fp4_values.h"
#include "engine/weights/formats/fp8_values.h"
#include "engine/weights/formats/module_names.h"
#include "engine/weights/formats/quantization_fields.h"

namespace tgi {
namespace modelopt_format {
namespace {

constexpr int64_t kAll = std::numeric_limits<int64_t>::max() / 2;

enum class Algo : uint8_t { kFp8, kFp8Rows, kNvfp4, kMxfp4 };

struct NamedAlgo {
  std::string_view name;
  Algo algo;
};

constexpr auto kAlgos = std::to_array<NamedAlgo>({
    {"FP8", Algo::kFp8},
    {"FP8_PER_CHANNEL_PER_TOKEN", Algo::kFp8Rows},
    {"NVFP4", Algo::kNvfp4},
    {"W4A16_NVFP4", Algo::kNvfp4},
    {"W4A8_NVFP4_FP8", Algo::kNvfp4},
    {"W4A8_MXFP4_FP8", Algo::kMxfp4},
});
constexpr std::string_view kMixed = "MIXED_PRECISION";

constexpr std::string_view kCache = "the settings of a load say how keys and values are kept";
constexpr std::string_view kInputs = "inputs would have to be multiplied with numbers of their own";
constexpr std::string_view kSameAgain = "quant_algo says it";

// Of the whole, beside `quantization`, or in one with what is in it.
constexpr auto kOuterFields = std::to_array<KnownField>({
    read_or_null("quant_method"),
    read_or_null("quantization"),
    harmless("producer", "says where the file comes from"),
});

constexpr auto kInnerFields = std::to_array<KnownField>({
    read_or_null("quant_algo"),
    read_or_null("group_size"),
    read_or_null("exclude_modules"),
    read_or_null("ignore"),
    read_or_null("modules_to_not_convert"),
    read_or_null("quantized_layers"),
    read_or_null("config_groups"),
    read_or_null("weights"),
    harmless("input_activations", kActivationsReason),
    harmless("kv_cache_quant_algo", kCache),
    harmless("kv_cache_scheme", kCache),
    harmless_if("has_zero_point", "[false]", "integers with zero points are not among what loads"),
    harmless_if("pre_quant_scale", "[false]", kInputs),
    harmless_if("lora_rank", "[]", "a product of two matrices would have to be added"),
});

constexpr auto kLayerFields = std::to_array<KnownField>({
    read("quant_algo"),
    read_or_null("group_size"),
    harmless_if("has_zero_point", "[false]", "integers with zero points are not among what loads"),
    harmless_if("pre_quant_scale", "[false]", kInputs),
    harmless_if("lora_rank", "[]", "a product of two matrices would have to be added"),
});

constexpr auto kGroupFields = std::to_array<KnownField>({
    harmless("targets", "exclude_modules or quantized_layers say it"),
    harmless("input_activations", kActivationsReason),
    harmless("quant_algo", kSameAgain),
    read_or_null("weights"),
    harmless_if("has_zero_point", "[false]", "integers with zero points are not among what loads"),
    harmless_if("pre_quant_scale", "[false]", kInputs),
    harmless_if("lora_rank", "[]", "a product of two matrices would have to be added"),
});

constexpr auto kWeightFields = std::to_array<KnownField>({
    read_or_null("num_bits"),
    read_or_null("type"),
    read_or_null("group_size"),
    harmless_if("dynamic", "[false]", "weights are rounded once, and stored so"),
    harmless_if("symmetric", "[true]", "floats have no zero points"),
    harmless_if("strategy", R"(["tensor", "channel", "group", "tensor_group"])", kSameAgain),
});

constexpr int64_t group_size_of(Algo algo) {
  if (algo == Algo::kNvfp4) return kNvfp4GroupSize;
  return algo == Algo::kMxfp4 ? kMxfp4GroupSize : 0;
}

// Of a module that has the settings `object`; nothing where quant_algo is null.
std::optional<Algo> read_algo(const JsonReader& object) {
  if (!object.has("quant_algo")) return std::nullopt;
  const std::string name = ascii_upper(object.string("quant_algo"));
  const auto* const known = std::ranges::find(kAlgos, name, &NamedAlgo::name);
  if (known == kAlgos.end()) {
    std::string names;
    for (const NamedAlgo& each : kAlgos) names += fmt::format("{}, ", each.name);
    throw Error(Code::kUnsupported,
                fmt::format("{}: modelopt's '{}' can't be loaded; supported: {}{}",
                            object.path_of("quant_algo"), name, names, kMixed));
  }
  const int64_t expected = group_size_of(known->algo);
  if (expected > 0 && object.integer_or("group_size", expected) != expected) {
    throw Error(
        Code::kUnsupported,
        fmt::format("{}: {} in groups of {} can't be loaded; supported: {}",
                    object.path_of("group_size"), name, object.integer("group_size"), expected));
  }
  return known->algo;
}

// The object that says how weights are stored.
JsonReader inner_settings(const JsonReader& quantization) {
  return quantization.has("quantization") ? quantization.object("quantization") : quantization;
}

bool is_mixed(const JsonReader& settings) {
  return settings.has("quant_algo") && ascii_upper(settings.string("quant_algo")) == kMixed;
}

constexpr std::string_view kTextModel = "language_model.";

// What settings may call a matrix: its module or, where they were made for engines that fuse
// several, the one that those would have in its place.
std::vector<std::string> names_in_settings(const MatrixSpec& spec) {
  struct Fused {
    std::string_view part;
    std::string_view name;
  };
  constexpr Fused kFused[] = {{"q_proj", "qkv_proj"},
                              {"k_proj", "qkv_proj"},
                              {"v_proj", "qkv_proj"},
                              {"gate_proj", "gate_up_proj"},
                              {"up_proj", "gate_up_proj"}};
  std::vector<std::string> out = {std::string(module_name(spec))};
  for (const auto& [part, name] : kFused) {
    if (!out[0].ends_with(fmt::format(".{}", part))) continue;
    out.push_back(out[0].substr(0, out[0].size() - part.size()).append(name));
  }
  return out;
}

constexpr const char* kExclusions[] = {"exclude_modules", "ignore", "modules_to_not_convert"};

bool is_excluded(const JsonReader& settings, const MatrixSpec& spec) {
  const std::vector<std::string> modules = names_in_settings(spec);
  for (const char* key : kExclusions) {
    for (const std::string& written : settings.strings_or_empty(key)) {
      const std::string name = without_outer(written);
      for (const std::string& module : modules) {
        if (is_part_of_module(name, module) || matches_wildcards(name, module)) return true;
      }
    }
  }
  return false;
}

// By its own name, or by that of the closest module that it is part of, as experts are. There may
// be as many names as matrices: each is looked up.
std::optional<Algo> algo_of_named_layer(const JsonReader& settings, std::string_view module) {
  constexpr std::string_view kModel = "model.";
  const JsonReader layers = settings.object("quantized_layers");
  for (size_t end = module.size(); end != std::string_view::npos && end > 0;
       end = module.rfind('.', end - 1)) {
    const std::string name(module.substr(0, end));
    std::vector<std::string> spellings = {name, fmt::format("{}{}", kTextModel, name)};
    if (name.starts_with(kModel)) {
      spellings.push_back(fmt::format("{}{}{}", kModel, kTextModel, name.substr(kModel.size())));
    }
    for (const std::string& spelling : spellings) {
      if (layers.has(spelling)) return read_algo(layers.object(spelling));
    }
  }
  return std::nullopt;
}

// Nothing for a matrix that is stored plainly.
std::optional<Algo> algo_of(const Json& config, const MatrixSpec& spec) {
  if (spec.kind == MatrixKind::kEmbedding) return std::nullopt;
  const JsonReader quantization = quantization_of(config);
  const JsonReader settings = inner_settings(quantization);
  if (is_mixed(settings)) {
    for (const std::string& module : names_in_settings(spec)) {
      if (const auto algo = algo_of_named_layer(settings, module)) return algo;
    }
    return std::nullopt;
  }
  // The first exports left the head alone without a word.
  const bool says_which =
      std::ranges::any_of(kExclusions, [&](const char* key) { return settings.has(key); });
  if (spec.kind == MatrixKind::kHead && !says_which) return std::nullopt;
  if (is_excluded(settings, spec)) return std::nullopt;
  return read_algo(settings);
}

// What config_groups says again is the same.
void check_weights(const JsonReader& settings, const JsonReader& group, std::optional<Algo> algo) {
  if (!group.has("weights")) return;
  const JsonReader weights = group.object("weights");
  check_quantization_part(weights, kWeightFields, "modelopt's weights");
  if (!algo) return;
  const bool is_fp8 = *algo == Algo::kFp8 || *algo == Algo::kFp8Rows;
  const auto check = [&](std::string_view key, const Json& expected) {
    if (!weights.has(key) || weights.json().at(std::string(key)) == expected) return;
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: {} contradicts quant_algo '{}', expected {}", weights.path_of(key),
                            weights.json().at(std::string(key)).dump(),
                            settings.string("quant_algo"), expected.dump()));
  };
  check("num_bits", is_fp8 ? 8 : 4);
  check("type", "float");
  if (!is_fp8) check("group_size", group_size_of(*algo));
}

void check_config(const JsonReader& quantization) {
  const JsonReader settings = inner_settings(quantization);
  if (quantization.has("quantization")) {
    check_quantization_part(quantization, kOuterFields, "modelopt");
    check_quantization_part(settings, kInnerFields, "modelopt");
  } else {
    check_quantization_part(quantization, join_fields(kOuterFields, kInnerFields), "modelopt");
  }
  for (const char* key : kExclusions) (void)settings.strings_or_empty(key);
  const bool is_several = is_mixed(settings);
  const std::optional<Algo> algo = is_several ? std::nullopt : read_algo(settings);
  if (is_several) {
    const JsonReader layers = settings.object("quantized_layers");
    for (const auto& [name, value] : layers.json().items()) {
      const JsonReader layer = layers.object(name);
      check_quantization_part(layer, kLayerFields, "a layer of modelopt");
      (void)read_algo(layer);
    }
  } else if (settings.has("quantized_layers") && !settings.json().at("quantized_layers").empty()) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: goes with quant_algo '{}' only",
                                                    settings.path_of("quantized_layers"), kMixed));
  }
  check_weights(settings, settings, algo);
  if (!settings.has("config_groups")) return;
  const JsonReader groups = settings.object("config_groups");
  if (!is_several && !algo && !groups.json().empty()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: missing, though config_groups says that weights are quantised",
                            settings.path_of("quant_algo")));
  }
  for (const auto& [name, value] : groups.json().items()) {
    const JsonReader group = groups.object(name);
    check_quantization_part(group, kGroupFields, "a group of modelopt");
    check_weights(settings, group, algo);
  }
}

bool claims(const JsonReader& config) {
  const std::string method = quant_method_of(config);
  if (method != "modelopt" && method != "modelopt_fp4" && method != "modelopt_mixed") return false;
  check_config(quantization_of(config));
  return true;
}

ScaleGrid fp8_grid(Algo algo) {
  return {.block_rows = algo == Algo::kFp8Rows ? 1 : kAll, .block_cols = kAll};
}

StoredForm form_of(const Json& config, const MatrixSpec& spec) {
  const std::optional<Algo> algo = algo_of(config, spec);
  if (!algo) return {};
  switch (*algo) {
    case Algo::kNvfp4:
      return nvfp4_form("modelopt, nvfp4");
    case Algo::kMxfp4:
      return mxfp4_form("modelopt, mxfp4");
    case Algo::kFp8:
    case Algo::kFp8Rows:
      break;
  }
  return fp8_form("modelopt, fp8", fp8_grid(*algo), spec.cols);
}

bool is_plain(std::optional<Algo> algo, const Checkpoint& checkpoint, const MatrixSpec& spec) {
  return !algo || is_plain_choice(checkpoint, spec, {"weight_scale", "weight_scale_2"});
}

std::vector<const StoredTensor*> collect(const Json& config,
                                         const Checkpoint& checkpoint,
                                         const MatrixSpec& spec,
                                         WeightProblems& problems) {
  const std::optional<Algo> algo = algo_of(config, spec);
  if (is_plain(algo, checkpoint, spec)) return collect_dense(checkpoint, spec, problems);
  ArrayCollector arrays(checkpoint, spec, problems);
  const int64_t group_size = group_size_of(*algo);
  if (group_size > 0 && spec.cols % group_size != 0) {
    problems.misshapen.push_back(
        fmt::format("{}: {} columns can't be in groups of {}", spec.name, spec.cols, group_size));
  } else if (group_size > 0) {
    arrays.require("weight", {"U8"}, {{spec.rows, spec.cols / 2}});
    arrays.require("weight_scale", {*algo == Algo::kNvfp4 ? "F8_E4M3" : "U8"},
                   {{spec.rows, spec.cols / group_size}});
    if (*algo == Algo::kNvfp4) arrays.require("weight_scale_2", {"F32"}, {{}, {1}, {1, 1}});
  } else {
    arrays.require("weight", {"F8_E4M3"}, {{spec.rows, spec.cols}});
    if (*algo == Algo::kFp8) {
      arrays.require("weight_scale", {"F32", "F16", "BF16"}, {{}, {1}, {1, 1}});
    } else {
      arrays.require("weight_scale", {"F32", "F16", "BF16"}, {{spec.rows}, {spec.rows, 1}});
    }
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
  const std::optional<Algo> algo = algo_of(config, spec);
  if (is_plain(algo, checkpoint, spec)) {
    return slice_dense(checkpoint, spec, *tensors.front(), rows, cols);
  }
  const StoredTensor& weight = *find_array(tensors, "weight");
  const StoredTensor& scales = *find_array(tensors, "weight_scale");
  const int64_t group_size = group_size_of(*algo);
  if (group_size == 0) {
    return slice_fp8(checkpoint, spec, weight, scales, fp8_grid(*algo), rows, cols, storage);
  }
  MatrixScale matrix_scale;
  if (*algo == Algo::kNvfp4) {
    matrix_scale = read_matrix_scale(checkpoint, *find_array(tensors, "weight_scale_2"), false);
  }
  const Fp4Matrix matrix = {.codes = weight,
                            .scales = scales,
                            .cols = spec.cols,
                            .group_size = group_size,
                            .matrix_scale = matrix_scale};
  return slice_fp4(checkpoint, spec, matrix, rows, cols, storage);
}

}  // namespace
}  // namespace modelopt_format

template <>
const WeightFormat& weight_format<"modelopt">() {
  static constexpr WeightFormat kThis = {
      .name = "modelopt",
      .claims = modelopt_format::claims,
      .form_of = modelopt_format::form_of,
      .collect = modelopt_format::collect,
      .slice = modelopt_format::slice,
      .may_ignore = is_activation_scale,
  };
  return kThis;
}

}  // namespace tgi
