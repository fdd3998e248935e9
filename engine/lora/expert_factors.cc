#include "engine/lora/expert_factors.h"

#include <fmt/format.h>

#include <algorithm>

namespace tgi {
namespace {

constexpr std::string_view kWrapped = ".base_layer";
constexpr std::string_view kHolder = "experts";  // of parameters of experts

// Whether the module is the one that this names, or one within others.
bool is_named(std::string_view module, std::string_view name) {
  if (!module.ends_with(name)) return false;
  module.remove_suffix(name.size());
  return module.empty() || module.ends_with('.');
}

bool fits(const StoredExperts& stored, const ExpertParameter& parameter, bool is_turned) {
  const int64_t x = is_turned ? parameter.outputs : parameter.inputs;
  const int64_t y = is_turned ? parameter.inputs : parameter.outputs;
  return stored.a.shape[1] == x && stored.b.shape[0] == y;
}

}  // namespace

std::string_view module_of_wrapper(std::string_view module) {
  while (module.ends_with(kWrapped)) module.remove_suffix(kWrapped.size());
  return module;
}

std::vector<std::string> parameters_of(const AdapterConfig& config, std::string_view module) {
  module = module_of_wrapper(module);
  std::vector<std::string> out;
  for (const std::string& parameter : config.parameters) {
    const size_t dot = parameter.rfind('.');
    const bool is_alone = dot == std::string::npos;
    const std::string_view holder = is_alone ? kHolder : std::string_view(parameter).substr(0, dot);
    if (is_named(module, holder)) out.push_back(parameter);
  }
  return out;
}

std::string scale_key(const AdapterConfig& config, const std::string& module) {
  for (const std::string& parameter : parameters_of(config, module)) {
    if (parameter.ends_with(".weight")) return module + ".weight";
  }
  return module;
}

// A module without a list of parameters has one.
std::string expert_scale_key(std::string_view module, const ExpertParameter& parameter) {
  std::string out(module);
  return out + (is_named(module, kHolder) ? "." + parameter.name : std::string(".weight"));
}

std::string shapes_of_experts(std::span<const ExpertParameter* const> parameters,
                              int32_t num_experts) {
  std::string out;
  for (const ExpertParameter* parameter : parameters) {
    out += fmt::format("{0}({1} r, {2}) and ({3}, {1} r) for {4}", out.empty() ? "" : ", or ",
                       num_experts, parameter->inputs, parameter->outputs, parameter->name);
  }
  return out + ", of rank r";
}

std::optional<FittedExperts> fit_experts(const StoredExperts& stored) {
  const int64_t count = stored.num_experts;
  if (stored.a.shape.size() != 2 || stored.b.shape.size() != 2) return std::nullopt;
  const int64_t stacked = stored.a.shape[0];
  const bool is_stacked = stacked > 0 && stacked % count == 0 && stored.b.shape[1] == stacked;
  if (!is_stacked || stacked / count > kMaxAdapterRank) return std::nullopt;
  // Both ways around fit a square matrix.
  for (const bool is_second_try : {false, true}) {
    for (const ExpertParameter* parameter : stored.parameters) {
      const bool is_old = stored.has_old_order && !parameter->is_transposed;
      const bool is_turned = is_old != is_second_try;
      if (!fits(stored, *parameter, is_turned)) continue;
      return FittedExperts{.parameter = parameter,
                           .rank = static_cast<int32_t>(stacked / count),
                           .a = whole_factor(stored.a),
                           .b = whole_factor(stored.b),
                           .num_experts = stored.num_experts,
                           .is_turned = is_turned};
    }
  }
  return std::nullopt;
}

// (rank, x)
Factor FittedExperts::rows_of_a(int32_t expert) const {
  Factor out = a;
  out.rows = rank;
  out.first = int64_t{expert} * rank * a.row_stride;
  return out;
}

// (y, rank)
Factor FittedExperts::columns_of_b(int32_t expert) const {
  Factor out = b;
  out.cols = rank;
  out.first = expert;
  out.col_stride = num_experts;
  return out;
}

Factor FittedExperts::a_of(int32_t expert) const {
  return is_turned ? columns_of_b(expert).transposed() : rows_of_a(expert);
}

Factor FittedExperts::b_of(int32_t expert, int64_t first_output, int64_t num_outputs) const {
  Factor out = is_turned ? rows_of_a(expert).transposed() : columns_of_b(expert);
  out.first += first_output * out.row_stride;
  out.rows = num_outputs;
  return out;
}

}  // namespace tgi
