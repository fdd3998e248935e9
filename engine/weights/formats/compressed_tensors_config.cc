#include "engine/weights/formats/compressed_tensors_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "engine/weights/formats/module_names.h"
#include "engine/weights/formats/stored_arrays.h"

namespace tgi {
namespace {

using Layout = CompressedScheme::Layout;
using Strategy = CompressedScheme::Strategy;

[[noreturn]] void unsupported(const std::string& message) {
  throw Error(Code::kUnsupported, "quantization_config: compressed-tensors " + message);
}

template <typename Value, size_t kCount>
Value choose(std::string_view what,
             const std::string& name,
             const std::array<std::pair<std::string_view, Value>, kCount>& known) {
  std::string names;
  for (const auto& [each, value] : known) {
    if (each == name) return value;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", each);
  }
  unsupported(fmt::format("{} '{}' can't be loaded; supported: {}", what, name, names));
}

Layout read_layout(const std::string& format, const std::string& type) {
  using Row = std::pair<std::string_view, Layout>;
  static constexpr std::array<Row, 4> kFormats = {{{"pack-quantized", Layout::kPacked},
                                                   {"int-quantized", Layout::kPlainInt},
                                                   {"float-quantized", Layout::kFloat},
                                                   {"naive-quantized", Layout::kPlainInt}}};
  const Layout layout = choose("format", format, kFormats);
  const bool is_float = type == "float";
  if (layout == Layout::kPacked && is_float) unsupported("floats in pack-quantized");
  if (layout == Layout::kPacked) return layout;
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
  const Json& order = weights.json().at("actorder");
  if (order.is_boolean()) return order.get<bool>();
  // "weight" and "static" quantise in another order, but leave groups where they are.
  return order.is_string() && (order == "group" || order == "dynamic");
}

CompressedScheme read_scheme(const JsonReader& group,
                             const JsonReader& weights,
                             const std::string& format) {
  using Row = std::pair<std::string_view, Strategy>;
  static constexpr std::array<Row, 4> kStrategies = {{{"tensor", Strategy::kTensor},
                                                      {"channel", Strategy::kChannel},
                                                      {"group", Strategy::kGroup},
                                                      {"block", Strategy::kBlock}}};
  CompressedScheme out;
  out.targets = group.strings_or_empty("targets");
  out.format = group.string_or("format", format);
  const std::string type = weights.string_or("type", "int");
  if (type != "int" && type != "float") unsupported(fmt::format("type '{}'", type));
  out.layout = read_layout(out.format, type);
  const int64_t bits = weights.integer_or("num_bits", 8);
  const bool known_bits = bits == 8 || (bits == 4 && out.layout == Layout::kPacked);
  if (!known_bits) {
    unsupported(fmt::format("{} with {} bits can't be loaded; supported: {}", out.format, bits,
                            out.layout == Layout::kPacked ? "4 and 8" : "8"));
  }
  out.bits = static_cast<int32_t>(bits);
  const bool has_group_size = weights.integer_or("group_size", -1) > 0;
  out.strategy = choose(
      "strategy", weights.string_or("strategy", has_group_size ? "group" : "tensor"), kStrategies);
  if (out.strategy == Strategy::kGroup) {
    out.group_size = read_group_size(weights, "group_size", -1);
    if (out.group_size == 0) out.strategy = Strategy::kChannel;
  }
  if (out.strategy == Strategy::kBlock) {
    if (out.layout != Layout::kFloat) unsupported("integers in blocks can't be loaded");
    read_block(weights, out);
  }
  out.symmetric = weights.boolean_or("symmetric", true);
  if (out.layout == Layout::kFloat && !out.symmetric) unsupported("floats with zero points");
  out.scattered_groups = out.strategy == Strategy::kGroup && has_scattered_groups(weights);
  return out;
}

void refuse_other_kinds(const JsonReader& quantization) {
  const auto is_used = [&](const char* key) {
    return quantization.has(key) && !quantization.json().at(key).empty();
  };
  if (is_used("transform_config")) unsupported("with a transform_config can't be loaded");
  if (!is_used("sparsity_config")) return;
  const std::string sparsity = quantization.object("sparsity_config").string_or("format", "dense");
  if (sparsity != "dense") {
    unsupported(fmt::format("with sparsity '{}' can't be loaded; supported: dense", sparsity));
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
  // A name goes before a class of modules.
  for (const CompressedScheme& scheme : schemes) {
    if (std::ranges::any_of(scheme.targets, matches)) return &scheme;
  }
  for (const CompressedScheme& scheme : schemes) {
    if (std::ranges::count(scheme.targets, "Linear") > 0) return &scheme;
  }
  return nullptr;
}

CompressedConfig read_compressed_config(const JsonReader& config) {
  const JsonReader quantization = config.object("quantization_config");
  refuse_other_kinds(quantization);
  CompressedConfig out;
  for (const std::string& name : quantization.strings_or_empty("ignore")) {
    if (name != "Linear") out.ignore.push_back(name);
  }
  const std::string format = quantization.string_or("format", "dense");
  if (format == "dense") return out;
  const std::string status = quantization.string_or("quantization_status", "compressed");
  if (status != "compressed") {
    unsupported(fmt::format("in the state '{}' can't be loaded; supported: compressed", status));
  }
  const JsonReader groups = quantization.object("config_groups");
  for (const auto& [name, value] : groups.json().items()) {
    const JsonReader group = groups.object(name);
    if (!group.has("weights")) continue;
    out.schemes.push_back(read_scheme(group, group.object("weights"), format));
  }
  return out;
}

}  // namespace tgi
