#include "engine/lora/module_sites.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/error.h"
#include "engine/model/adapter_sites.h"
#include "engine/model/rank_ranges.h"

namespace tgi {
namespace {

constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kBiasEnd = ".bias";
constexpr std::string_view kExperts = ".experts";

// What a decoder is wrapped into, whatever the family: the body of a model with a head, and the
// text model of a multimodal one.
constexpr std::array<std::string_view, 2> kCommonWrappers = {"model", "language_model"};

constexpr std::string_view kPositionsRefusal =
    "of an embedding of positions, whose adapters are not supported";
constexpr std::string_view kExpertRefusal =
    "of experts by names, or in a layout, for which adapters are not supported";
constexpr std::string_view kNormedHeadRefusal =
    "of a head that is divided by the lengths of its rows or columns, which adapters of it would "
    "change";
constexpr std::string_view kTableRefusal =
    "of a table of tokens for each layer, whose adapters are not supported";
constexpr std::string_view kSharedRefusal =
    "of layers that share their weights, whose adapters are not supported";
constexpr std::string_view kDistancesRefusal =
    "of layers that make keys and queries of distances too, whose adapters are not supported";
constexpr std::string_view kMixedStreamsRefusal =
    "of what streams are predicted and corrected by, which is not kept as a linear: adapters of it "
    "are not supported";
constexpr std::string_view kVectorRefusal = "not of a linear of the model";

// "": none.
std::string_view refusal_of_layers(const TensorEntry& entry, const ModelConfig& config) {
  if (is_of_shared_layer(*entry.spec, config)) return kSharedRefusal;
  return config.distances.has_products() ? kDistancesRefusal : std::string_view();
}

std::vector<std::string_view> split(std::string_view name) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t dot = name.find('.');
    parts.push_back(name.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    name.remove_prefix(dot + 1);
  }
}

bool is_number(std::string_view part) {
  return !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
}

// Of the list of layers: the part before the first number.
std::optional<size_t> list_place(const std::vector<std::string_view>& parts) {
  for (size_t i = 1; i < parts.size(); ++i) {
    if (is_number(parts[i])) return i - 1;
  }
  return std::nullopt;
}

std::string join(const std::vector<std::string_view>& parts, size_t begin) {
  std::string out(parts[begin]);
  for (size_t i = begin + 1; i < parts.size(); ++i) out.append(".").append(parts[i]);
  return out;
}

// What holds the experts of a layer goes by other names in other versions of transformers; there is
// one in a layer.
std::string experts_of_layer(std::string_view inner) {
  const auto parts = split(inner);
  const auto place = list_place(parts);
  if (!place) return std::string(inner);
  return fmt::format("{}.{}{}", parts[*place], parts[*place + 1], kExperts);
}

// "layers.3" of whatever is in it; "" of what is in no layer.
std::string layer_name(const std::vector<std::string_view>& parts) {
  const auto place = list_place(parts);
  return place ? fmt::format("{}.{}", parts[*place], parts[*place + 1]) : "";
}

// The name of a module that is in one of a layer ("mlp" of "layers.3.mlp.gate"), or "".
std::string_view parent_in_layer(const std::vector<std::string_view>& parts) {
  return list_place(parts) == 0 && parts.size() == 4 ? parts[2] : "";
}

template <size_t kSize>
bool is_one_of(const std::array<std::string_view, kSize>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// What chooses among experts goes by other names too, and there is one in a layer: the layer that
// `inner` is a router of, or "".
std::string layer_of_router(std::string_view inner) {
  constexpr std::array<std::string_view, 2> kNames = {"gate", "router"};
  constexpr std::array<std::string_view, 5> kModules = {"mlp", "block_sparse_moe", "feed_forward",
                                                        "moe", "mixer"};
  const auto parts = split(inner);
  const bool is_router =
      is_one_of(kNames, parts.back()) && is_one_of(kModules, parent_in_layer(parts));
  return is_router ? layer_name(parts) : "";
}

constexpr std::array<std::string_view, 3> kQkvNames = {"q_proj", "k_proj", "v_proj"};
constexpr std::array<std::string_view, 2> kGateUpNames = {"gate_proj", "up_proj"};

// What transformers calls the modules whose rows a tensor of this dimension holds, in the order of
// rank_ranges.
std::span<const std::string_view> names_of_rows(Dim rows) {
  if (rows == Dim::kQkv) return kQkvNames;
  if (rows == Dim::kGateUp || rows == Dim::kUpGate) return kGateUpNames;
  return {};
}

// "layers.3.q_proj" of "layers.3.self_attn.q_proj", and so of its bias, or "".
std::string name_of_rows(std::string_view inner) {
  if (inner.ends_with(kBiasEnd)) {
    inner.remove_suffix(kBiasEnd.size());
    const std::string name = name_of_rows(inner);
    return name.empty() ? name : name + std::string(kBiasEnd);
  }
  const auto parts = split(inner);
  const std::string_view module = parent_in_layer(parts);
  const bool is_one = (module == "self_attn" && is_one_of(kQkvNames, parts.back())) ||
                      (module == "mlp" && is_one_of(kGateUpNames, parts.back()));
  return is_one ? fmt::format("{}.{}", layer_name(parts), parts.back()) : "";
}

std::string_view module_of(std::string_view tensor) {
  if (tensor.ends_with(kWeight)) tensor.remove_suffix(kWeight.size());
  return tensor;
}

std::string_view refusal_of_entry(const TensorEntry& entry) {
  const Role role = entry.spec->role;
  if (entry.expert >= 0) return kExpertRefusal;
  switch (role) {
    case Role::kTokenEmbedding:
      return "";
    case Role::kPositionEmbedding:
    case Role::kTypeEmbedding:
      return kPositionsRefusal;
    case Role::kLayerInputTable:
      return kTableRefusal;
    case Role::kStreamPrediction:
    case Role::kStreamCorrection:
      return kMixedStreamsRefusal;
    default:
      return kVectorRefusal;
  }
}

}  // namespace

std::span<const LinearPart> linear_parts(const SitePart& part) {
  const size_t linear = part.linear;
  if (part.expert != SitePart::kNone) return kExpertLinears[linear].parts;
  return linear < kLayerLinears.size() ? kLayerLinears[linear].parts
                                       : kOtherLinears[linear - kLayerLinears.size()].parts;
}

ModuleSites::ModuleSites(const LoadedConfig& model) : renames_(model.text->renames) {
  const TensorTable table(model);
  wrappers_.insert(kCommonWrappers.begin(), kCommonWrappers.end());
  for (const std::string_view prefix : {model.architecture->prefix, model.text->prefix}) {
    for (const std::string_view part : split(prefix)) wrappers_.emplace(part);
  }
  for (const TensorEntry& entry : table.entries()) {
    const auto parts = split(entry.name);
    const size_t place = list_place(parts).value_or(0);
    for (size_t i = 0; i < place; ++i) wrappers_.emplace(parts[i]);
  }

  add_others(table, model.config);
  add_outer_linears(table, model.config);
  num_experts_ = model.config.experts.num_experts;
  for (int32_t layer = 0; layer < model.config.num_layers; ++layer) {
    add_linears(table, layer, model.config);
    add_experts(table, layer);
  }
  add_head(model, table);
  any_expert_.refusal = kExpertRefusal;
}

std::string ModuleSites::inner_name(std::string_view module) const {
  const auto parts = split(module);
  const auto is_wrapper = [&](std::string_view part) { return wrappers_.contains(part); };
  if (const auto place = list_place(parts)) {
    const auto begin = parts.begin();
    const bool is_wrapped = std::all_of(begin, begin + static_cast<ptrdiff_t>(*place), is_wrapper);
    return is_wrapped ? join(parts, *place) : std::string(module);
  }
  size_t begin = 0;
  while (begin + 1 < parts.size() && is_wrapper(parts[begin])) ++begin;
  return join(parts, begin);
}

ModuleTarget& ModuleSites::target(const TensorEntry& entry) {
  ModuleTarget& target = targets_[inner_name(module_of(entry.name))];
  target.name = entry.name;
  target.inputs = entry.cols;
  // Of a tensor that holds other rows in turns, all of them.
  target.outputs = entry.rows * entry.spec->turns.count;
  return target;
}

// What is refused by its name, until a linear of that name is found.
void ModuleSites::add_others(const TensorTable& table, const ModelConfig& config) {
  const bool divides_head = config.head_division != HeadDivision::kNone;
  for (const TensorEntry& entry : table.entries()) {
    const bool is_divided_head = entry.spec->role == Role::kLmHead && divides_head;
    ModuleTarget& found = target(entry);
    found.refusal = is_divided_head ? kNormedHeadRefusal : refusal_of_entry(entry);
    if (entry.spec->role == Role::kLatentUp) {
      found.refusal = {};
      found.parts = {{.layer = entry.layer, .linear = kSitesOfLayer, .role = entry.spec->role}};
    }
    if (entry.spec->role != Role::kTokenEmbedding) continue;
    found.parts = {{.role = entry.spec->role}};
    std::swap(found.outputs, found.inputs);
  }
}

void ModuleSites::add_outer_linears(const TensorTable& table, const ModelConfig& config) {
  const auto add = [&](size_t linear, const LinearPart& part, int32_t stream) {
    const TensorEntry* entry = table.find(part.weight, kOutsideLayers, std::max(stream, 0));
    if (entry == nullptr) return;
    ModuleTarget& found = target(*entry);
    found.refusal = {};
    found.parts = {{.linear = linear, .role = part.weight, .stream = stream}};
  };
  for (size_t i = 0; i < kModelLinears.size(); ++i) {
    add(i, kModelLinears[i].parts.front(), SitePart::kNone);
  }
  for (size_t i = 0; i < kStreamLinears.size(); ++i) {
    for (int32_t stream = 0; stream < num_further_streams(config); ++stream) {
      add(i, kStreamLinears[i].parts.front(), stream);
    }
  }
}

void ModuleSites::add_linears(const TensorTable& table, int32_t layer, const ModelConfig& config) {
  for (size_t linear = 0; linear < static_cast<size_t>(kSitesOfLayer); ++linear) {
    for (const LinearPart& part : linear_parts({.layer = layer, .linear = linear})) {
      const TensorEntry* entry = table.find(part.weight, layer);
      if (entry == nullptr) continue;
      ModuleTarget& found = target(*entry);
      found.refusal = refusal_of_layers(*entry, config);
      found.parts.push_back({.layer = layer, .linear = linear, .role = part.weight});
      if (found.refusal.empty()) {
        add_rows(*entry, table.find(part.bias, layer), found.parts.back(), config);
      }
      if (part.weight != Role::kRouter) continue;
      const std::string inner = inner_name(module_of(entry->name));
      routers_[layer_name(split(inner))] = &found;
    }
  }
}

void ModuleSites::add_rows(const TensorEntry& entry,
                           const TensorEntry* bias,
                           const SitePart& part,
                           const ModelConfig& config) {
  const std::span<const std::string_view> names = names_of_rows(entry.spec->rows);
  if (names.empty()) return;
  const std::string inner = inner_name(module_of(entry.name));
  const std::string layer = layer_name(split(inner));
  const std::vector<Range> ranges = rank_ranges(entry.spec->rows, config, part.layer, 0, 1);
  TGI_CHECK(ranges.size() == names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    SitePart rows = part;
    rows.rows = ranges[i];
    rows_of_layers_[fmt::format("{}.{}", layer, names[i])] = {.parts = {rows},
                                                              .name = entry.name,
                                                              .first = ranges[i].begin * entry.cols,
                                                              .outputs = ranges[i].count,
                                                              .inputs = entry.cols};
    if (bias == nullptr) continue;
    rows_of_layers_[fmt::format("{}.{}{}", layer, names[i], kBiasEnd)] = {
        .refusal = kVectorRefusal,
        .parts = {},
        .name = bias->name,
        .first = ranges[i].begin,
        .outputs = ranges[i].count};
  }
}

void ModuleSites::add_experts(const TensorTable& table, int32_t layer) {
  for (size_t linear = 0; linear < kExpertLinears.size(); ++linear) {
    bool has_any = false;
    bool is_flat = false;
    for (const LinearPart& part : kExpertLinears[linear].parts) {
      const TensorEntry* entry = table.find(part.weight, layer);
      if (entry == nullptr) continue;
      has_any = true;
      is_flat = is_flat || entry->spec->flat;
    }
    // What PEFT adds to a matrix of all experts below each other is one product for all.
    if (has_any && !is_flat) add_parameter(table, layer, linear);
  }
}

void ModuleSites::add_parameter(const TensorTable& table, int32_t layer, size_t linear) {
  ExpertParameter& parameter = parameters_.emplace_back();
  std::string module;
  bool is_own_module = false;  // of older versions of transformers, with one parameter
  for (const LinearPart& part : kExpertLinears[linear].parts) {
    const TensorEntry* first = table.find(part.weight, layer);
    if (first == nullptr) continue;
    const TensorSpec& spec = *first->spec;
    const int64_t outputs = first->rows * spec.turns.count;
    // Of rows in turns the other parts have found the module made by the first.
    const bool is_new = spec.turns.count == 1 || parameter.pieces.empty();
    if (is_new) parameter.pieces.push_back({.first_output = parameter.outputs, .targets = {}});
    for (int32_t expert = 0; expert < num_experts_; ++expert) {
      const TensorEntry& entry = *table.find(part.weight, layer, expert);
      ModuleTarget& found = !spec.stacked ? target(entry)
                            : is_new      ? stacked_experts_.emplace_back()
                                          : stacked_experts_[stacked_experts_.size() -
                                                        static_cast<size_t>(num_experts_ - expert)];
      found.refusal = {};
      found.name = entry.name;
      found.outputs = outputs;
      found.inputs = entry.cols;
      found.first = spec.stacked ? expert * outputs * entry.cols : 0;
      found.parts.push_back(
          {.layer = layer, .linear = linear, .role = part.weight, .expert = expert});
      by_expert_[found.parts.back()] = &found;
      if (is_new) parameter.pieces.back().targets.push_back(&found);
    }
    if (is_new) parameter.outputs += outputs;
    parameter.inputs = first->cols;
    parameter.is_transposed = spec.transposed;
    switch (part.weight) {
      case Role::kExpertDown:
        parameter.name = "down_proj";
        break;
      case Role::kExpertUp:
        if (parameter.name.empty()) parameter.name = "up_proj";
        break;
      default:
        parameter.name = "gate_up_proj";
    }
    module = inner_name(module_of(first->name));
    is_own_module = spec.stacked && first->name.ends_with(kWeight);
  }
  by_experts_module_[experts_of_layer(module)].push_back(&parameter);
  if (is_own_module) by_experts_module_[module].push_back(&parameter);
}

std::span<const ExpertParameter* const> ModuleSites::find_experts(std::string_view module) const {
  const std::string inner = inner_name(module);
  const auto found =
      by_experts_module_.find(inner.ends_with(kExperts) ? experts_of_layer(inner) : inner);
  if (found == by_experts_module_.end()) return {};
  return found->second;
}

const ModuleTarget& ModuleSites::expert_target(const SitePart& part) const {
  return *by_expert_.at(part);
}

// A head that is tied to the embedding is a module of its own all the same, and as large. One of
// its own may have fewer rows.
void ModuleSites::add_head(const LoadedConfig& model, const TensorTable& table) {
  if (model.config.head_division != HeadDivision::kNone) return;
  const TensorEntry* embedding = table.find(Role::kTokenEmbedding);
  for (const TensorSpec& spec : model.tensors()) {
    if (spec.role != Role::kLmHead || embedding == nullptr) continue;
    const TensorEntry* own = table.find(Role::kLmHead);
    ModuleTarget& head = targets_[inner_name(module_of(spec.name))];
    head = {.parts = {{.role = Role::kLmHead}},
            .name = own == nullptr ? embedding->name : std::string(spec.name),
            .outputs = own == nullptr ? embedding->rows : own->rows,
            .inputs = embedding->cols};
  }
}

const ModuleTarget* ModuleSites::find_by_inner(const std::string& inner) const {
  const auto found = targets_.find(inner);
  if (found != targets_.end()) return &found->second;
  const auto router = routers_.find(layer_of_router(inner));
  if (router != routers_.end()) return router->second;
  const auto rows = rows_of_layers_.find(name_of_rows(inner));
  return rows == rows_of_layers_.end() ? nullptr : &rows->second;
}

const ModuleTarget* ModuleSites::find(std::string_view module) const {
  if (const ModuleTarget* found = find_by_inner(inner_name(module))) return found;
  const std::string usual = respelled(std::string(module).append(kWeight), renames_);
  if (const ModuleTarget* found = find_by_inner(inner_name(module_of(usual)))) return found;
  // Tables have them one by one or all in one tensor, as checkpoints do; modules are either.
  const bool is_expert =
      module.find(".experts.") != std::string_view::npos && !module.ends_with(".bias");
  return num_experts_ > 0 && is_expert ? &any_expert_ : nullptr;
}

}  // namespace tgi
