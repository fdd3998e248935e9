#include "engine/weights/formats/compressed_tensors_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/ascii.h"
#include "base/error.h"
#include "base/known_fields.h"
#include "engine/weights/formats/fp4_values.h"
#include "engine/weights/formats/module_names.h"
#include "engine/weights/formats/quantization_fields.h"
#include "engine/weights/formats/stored_arrays.h"

namespace tgi {
namespace {

using Layout = CompressedScheme::Layout;
using Strategy = CompressedScheme::Strategy;

constexpr std::string_view kMethod = "compressed-tensors";
constexpr std::string_view kObserver = "says how the numbers were found, not what they mean";
constexpr std::string_view kExperts = "models with experts are not supported";
constexpr std::string_view kFixed = "weights are rounded once, and stored so";

// Of the whole.
constexpr auto kConfigFields = std::to_array<KnownField>({
    read_or_null("config_groups"),
    read_or_null("format"),
    read_or_null("quantization_status"),
    read_or_null("ignore"),
    read_or_null("sparsity_config"),
    read_or_null("transform_config"),
    read_or_null("kv_cache_scheme"),
    harmless("global_compression_ratio", "is for people to read"),
    harmless("run_compressed", "chooses how the same sums are computed"),
    harmless("version", "says where the file comes from"),
    harmless_if("moe_sparsity_config", "[]", kExperts),
});

// Of one of config_groups.
constexpr auto kGroupFields = std::to_array<KnownField>({
    read_or_null("targets"),
    read_or_null("weights"),
    read_or_null("format"),
    read_or_null("input_activations"),
    read_or_null("output_activations"),
});

constexpr auto kWeightFields = std::to_array<KnownField>({
    read_or_null("num_bits"),
    read_or_null("type"),
    read_or_null("symmetric"),
    read_or_null("group_size"),
    read_or_null("strategy"),
    read_or_null("block_structure"),
    read_or_null("actorder"),
    harmless("observer", kObserver),
    harmless("observer_kwargs", kObserver),
    harmless_if("dynamic", "[false]", kFixed),
    read_or_null("scale_dtype"),
    harmless_if("zp_dtype",
                R"(["torch.int8", "int8", "torch.float8_e4m3fn", "float8_e4m3fn"])",
                "zero points are stored as bytes or packed"),
});

// The same fields, of activations and of keys and values, which are not rounded as they say.
constexpr auto kActivationFields = std::to_array<KnownField>({
    harmless("num_bits", kActivationsReason),
    harmless("type", kActivationsReason),
    harmless("symmetric", kActivationsReason),
    harmless("group_size", kActivationsReason),
    harmless("strategy", kActivationsReason),
    harmless("block_structure", kActivationsReason),
    harmless("actorder", kActivationsReason),
    harmless("observer", kActivationsReason),
    harmless("observer_kwargs", kActivationsReason),
    harmless("dynamic", kActivationsReason),
    harmless("scale_dtype", kActivationsReason),
    harmless("zp_dtype", kActivationsReason),
});

constexpr auto kSparsityFields = std::to_array<KnownField>({
    read_or_null("format"),
    harmless("targets", "nothing is stored sparsely"),
    harmless("ignore", "nothing is stored sparsely"),
    harmless("global_sparsity", "is for people to read"),
    harmless("sparsity_structure", "is for people to read"),
    harmless("registry_requires_subclass", "is about objects of Python, not about numbers"),
});

constexpr auto kTransformFields = std::to_array<KnownField>({
    harmless_if("config_groups", "[{}]", "weights or inputs would have to be transformed first"),
});

[[noreturn]] void unsupported(const JsonReader& object,
                              std::string_view key,
                              const std::string& message) {
  throw Error(Code::kUnsupported, fmt::format("{}: {} {}", object.path_of(key), kMethod, message));
}

template <typename Value, size_t kCount>
Value choose(const JsonReader& object,
             std::string_view key,
             const std::string& name,
             const std::array<std::pair<std::string_view, Value>, kCount>& known) {
  std::string names;
  for (const auto& [each, value] : known) {
    if (each == name) return value;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", each);
  }
  unsupported(object, key, fmt::format("{} '{}' can't be loaded; supported: {}", key, name, names));
}

Layout read_layout(const JsonReader& owner, const std::string& format, bool is_float) {
  using Row = std::pair<std::string_view, Layout>;
  static constexpr std::array<Row, 6> kFormats = {{{"pack-quantized", Layout::kPacked},
                                                   {"int-quantized", Layout::kPlainInt},
                                                   {"float-quantized", Layout::kFloat},
                                                   {"naive-quantized", Layout::kPlainInt},
                                                   {"nvfp4-pack-quantized", Layout::kNvfp4},
                                                   {"mxfp4-pack-quantized", Layout::kMxfp4}}};
  const Layout layout = choose(owner, "format", format, kFormats);
  const bool is_fp4 = layout == Layout::kNvfp4 || layout == Layout::kMxfp4;
  if (is_float ? layout == Layout::kPacked : is_fp4) {
    unsupported(
        owner, "format",
        fmt::format("{} with {} can't be loaded", format, is_float ? "floats" : "integers"));
  }
  if (layout == Layout::kPacked || is_fp4) return layout;
  return is_float ? Layout::kFloat : Layout::kPlainInt;
}

void read_block(const JsonReader& weights, CompressedScheme& out) {
  const Json size = weights.has("block_structure") ? weights.json().at("block_structure") : Json();
  const auto is_count = [](const Json& item) {
    return item.is_number_integer() && item.get<int64_t>() > 0 &&
           item.get<int64_t>() <= int64_t{1} << 31;
  };
  if (!size.is_array() || size.size() != 2 || !is_count(size[0]) || !is_count(size[1])) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected two numbers of rows and columns, got {}",
                            weights.path_of("block_structure"), size.dump()));
  }
  out.block_rows = size[0].get<int64_t>();
  out.block_cols = size[1].get<int64_t>();
}

bool has_scattered_groups(const JsonReader& weights) {
  if (!weights.has("actorder")) return false;
  if (weights.json().at("actorder").is_boolean()) return weights.boolean("actorder");
  // "weight" and "static" quantise in another order, but leave groups where they are.
  using Row = std::pair<std::string_view, bool>;
  static constexpr std::array<Row, 4> kOrders = {
      {{"weight", false}, {"static", false}, {"group", true}, {"dynamic", true}}};
  return choose(weights, "actorder", ascii_lower(weights.string("actorder")), kOrders);
}

// Floats of 4 bits have the groups that hardware has them in.
void read_fp4_strategy(const JsonReader& weights, CompressedScheme& out) {
  using Row = std::pair<std::string_view, bool>;
  static constexpr std::array<Row, 2> kStrategies = {{{"tensor_group", true}, {"group", false}}};
  const int64_t expected = out.layout == Layout::kNvfp4 ? kNvfp4GroupSize : kMxfp4GroupSize;
  out.strategy = Strategy::kGroup;
  out.group_size = read_group_size(weights, "group_size", -1);
  if (out.group_size != expected) {
    unsupported(
        weights, "group_size",
        fmt::format("{} in groups of {} can't be loaded; supported: {}", out.format,
                    out.group_size == 0 ? "a row" : fmt::format("{}", out.group_size), expected));
  }
  const std::string strategy = ascii_lower(weights.string_or("strategy", "group"));
  out.needs_matrix_scale = choose(weights, "strategy", strategy, kStrategies);
  if (out.needs_matrix_scale && out.layout == Layout::kMxfp4) {
    unsupported(weights, "strategy",
                fmt::format("{} by tensor_group can't be loaded; supported: group", out.format));
  }
}

// The tensors of the scales say it too; it is fixed where bytes could be of several kinds.
void check_scale_dtype(const JsonReader& weights, Layout layout) {
  if (!weights.has("scale_dtype")) return;
  std::string type = weights.string("scale_dtype");
  constexpr std::string_view kModule = "torch.";
  if (type.starts_with(kModule)) type.erase(0, kModule.size());
  const auto is_one_of = [&](std::initializer_list<std::string_view> types) {
    return std::ranges::find(types, type) != types.end();
  };
  const bool is_known = layout == Layout::kNvfp4   ? type == "float8_e4m3fn"
                        : layout == Layout::kMxfp4 ? type == "uint8"
                                                   : is_one_of({"float32", "float16", "bfloat16"});
  if (is_known) return;
  unsupported(weights, "scale_dtype",
              fmt::format("scales of '{}' can't be loaded; supported: {}", type,
                          layout == Layout::kNvfp4   ? "float8_e4m3fn"
                          : layout == Layout::kMxfp4 ? "uint8"
                                                     : "plain numbers"));
}

// How many numbers share a scale.
void read_strategy(const JsonReader& weights, CompressedScheme& out) {
  using Row = std::pair<std::string_view, Strategy>;
  static constexpr std::array<Row, 4> kStrategies = {{{"tensor", Strategy::kTensor},
                                                      {"channel", Strategy::kChannel},
                                                      {"group", Strategy::kGroup},
                                                      {"block", Strategy::kBlock}}};
  if (out.is_fp4()) {
    read_fp4_strategy(weights, out);
    return;
  }
  const bool is_grouped = weights.has("group_size");
  const int64_t group_size = is_grouped ? read_group_size(weights, "group_size", -1) : 0;
  const std::string implied = !is_grouped ? "tensor" : group_size > 0 ? "group" : "channel";
  const std::string strategy = ascii_lower(weights.string_or("strategy", implied));
  out.strategy = choose(weights, "strategy", strategy, kStrategies);
  if (out.strategy == Strategy::kGroup) {
    out.group_size = group_size;
    if (group_size == 0) out.strategy = Strategy::kChannel;
  } else if (group_size > 0) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: {} contradicts the strategy '{}'", weights.path_of("group_size"),
                            group_size, strategy));
  }
  if (out.strategy == Strategy::kBlock) {
    if (out.layout != Layout::kFloat) {
      unsupported(weights, "strategy", "block of integers can't be loaded; supported: of floats");
    }
    read_block(weights, out);
  } else if (weights.has("block_structure")) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("{}: {} contradicts the strategy '{}'", weights.path_of("block_structure"),
                    weights.json().at("block_structure").dump(), strategy));
  }
}

// `owner` is what holds the groups: its format is that of groups that name none.
CompressedScheme read_scheme(const JsonReader& owner,
                             const JsonReader& group,
                             const JsonReader& weights) {
  CompressedScheme out;
  out.targets = group.strings_or_empty("targets");
  const JsonReader& format_owner = group.has("format") ? group : owner;
  out.format = format_owner.string("format");
  const std::string type = ascii_lower(weights.string_or("type", "int"));
  if (type != "int" && type != "float") {
    unsupported(weights, "type",
                fmt::format("type '{}' can't be loaded; supported: int, float", type));
  }
  out.layout = read_layout(format_owner, out.format, type == "float");
  const int64_t bits = weights.integer_or("num_bits", 8);
  const bool known_bits =
      out.is_fp4() ? bits == 4 : bits == 8 || (bits == 4 && out.layout == Layout::kPacked);
  if (!known_bits) {
    unsupported(weights, "num_bits",
                fmt::format("{} with {} bits can't be loaded; supported: {}", out.format, bits,
                            out.is_fp4()                    ? "4"
                            : out.layout == Layout::kPacked ? "4 and 8"
                                                            : "8"));
  }
  out.bits = static_cast<int32_t>(bits);
  read_strategy(weights, out);
  out.symmetric = weights.boolean_or("symmetric", true);
  check_scale_dtype(weights, out.layout);
  if ((out.layout == Layout::kFloat || out.is_fp4()) && !out.symmetric) {
    unsupported(weights, "symmetric", "floats with zero points can't be loaded");
  }
  const bool scattered = has_scattered_groups(weights);
  out.scattered_groups = out.strategy == Strategy::kGroup && scattered;
  return out;
}

void check_other_kinds(const JsonReader& quantization) {
  if (quantization.has("transform_config")) {
    check_quantization_part(quantization.object("transform_config"), kTransformFields,
                            "a transform");
  }
  if (quantization.has("kv_cache_scheme")) {
    check_quantization_part(quantization.object("kv_cache_scheme"), kActivationFields,
                            "compressed-tensors' KV cache");
  }
  if (!quantization.has("sparsity_config")) return;
  const JsonReader sparsity = quantization.object("sparsity_config");
  const std::string format = sparsity.string_or("format", "dense");
  if (format != "dense") {
    unsupported(sparsity, "format",
                fmt::format("with sparsity '{}' can't be loaded; supported: dense", format));
  }
  check_quantization_part(sparsity, kSparsityFields, "compressed-tensors' sparsity");
}

void check_scheme_fields(const JsonReader& group) {
  check_quantization_part(group, kGroupFields, "a group of compressed-tensors");
  if (group.has("weights")) {
    check_quantization_part(group.object("weights"), kWeightFields, "compressed-tensors' weights");
  }
  for (const char* key : {"input_activations", "output_activations"}) {
    if (!group.has(key)) continue;
    check_quantization_part(group.object(key), kActivationFields,
                            "compressed-tensors' activations");
  }
}

}  // namespace

const CompressedScheme* CompressedConfig::scheme_of(const MatrixSpec& spec) const {
  if (spec.kind == MatrixKind::kEmbedding) return nullptr;
  const std::string_view module = module_name(spec);
  const auto matches = [module](const std::string& target) {
    return matches_target(target, module);
  };
  if (std::ranges::any_of(ignore, matches)) return nullptr;
  // Of targets in several groups the library takes the module's name, else the first pattern by its
  // text, else its class; and of a target that is written twice the last.
  const CompressedScheme* found = nullptr;
  std::pair<int, std::string_view> closest;
  for (const CompressedScheme& scheme : schemes) {
    for (const std::string& target : scheme.targets) {
      const bool is_class = target == "Linear";
      if (!is_class && !matches(target)) continue;
      const int distance = is_class ? 2 : target == module ? 0 : 1;
      const std::pair<int, std::string_view> own = {distance, target};
      if (found != nullptr && closest < own) continue;
      found = &scheme;
      closest = own;
    }
  }
  return found;
}

CompressedConfig read_compressed_config(const JsonReader& config) {
  const JsonReader quantization = quantization_of(config);
  CompressedConfig out;
  for (const std::string& name : quantization.strings_or_empty("ignore")) {
    if (name != "Linear") out.ignore.push_back(name);
  }
  if (quantization.string_or("format", "dense") == "dense") return out;
  const std::string status =
      ascii_lower(quantization.string_or("quantization_status", "compressed"));
  if (status != "compressed") {
    unsupported(quantization, "quantization_status",
                fmt::format("in the state '{}' can't be loaded; supported: compressed", status));
  }
  const JsonReader groups = quantization.object("config_groups");
  for (const auto& [name, value] : groups.json().items()) {
    const JsonReader group = groups.object(name);
    if (!group.has("weights")) continue;
    out.schemes.push_back(read_scheme(quantization, group, group.object("weights")));
  }
  return out;
}

void check_compressed_config(const JsonReader& config) {
  const JsonReader quantization = quantization_of(config);
  check_other_kinds(quantization);
  (void)read_compressed_config(config);
  check_quantization(quantization, kConfigFields, kMethod);
  if (!quantization.has("config_groups")) return;
  const JsonReader groups = quantization.object("config_groups");
  for (const auto& [name, value] : groups.json().items()) check_scheme_fields(groups.object(name));
}

}  // namespace tgi
