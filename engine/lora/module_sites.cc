#include "engine/lora/module_sites.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace tgi {
namespace {

constexpr std::string_view kWeight = ".weight";

// What a decoder is wrapped into, whatever the family: the body of a model with a head, and the
// text model of a multimodal one.
constexpr std::array<std::string_view, 2> kCommonWrappers = {"model", "language_model"};

constexpr std::string_view kPositionsRefusal =
    "of an embedding of positions, whose adapters are not supported";
constexpr std::string_view kExpertRefusal = "of experts, whose adapters are not supported";
constexpr std::string_view kLatentUpRefusal =
    "of what latents become keys and values by, which is not kept as a linear: adapters of it are "
    "not supported";
constexpr std::string_view kNormedHeadRefusal =
    "of a head whose rows are divided by their lengths, which adapters of it would change";
constexpr std::string_view kOuterRefusal =
    "of what changes the width of embeddings, whose adapters are not supported";
constexpr std::string_view kVectorRefusal = "not of a linear of the model";

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

std::string_view module_of(std::string_view tensor) {
  if (tensor.ends_with(kWeight)) tensor.remove_suffix(kWeight.size());
  return tensor;
}

std::string_view refusal_of_entry(const TensorEntry& entry) {
  const Role role = entry.spec->role;
  if (role == Role::kStreamIn || role == Role::kStreamOut) return kOuterRefusal;
  if (entry.expert >= 0) return kExpertRefusal;
  switch (role) {
    case Role::kTokenEmbedding:
      return "";
    case Role::kPositionEmbedding:
    case Role::kTypeEmbedding:
      return kPositionsRefusal;
    case Role::kLayerInputTable:
    case Role::kLayerInputIn:
    case Role::kEmbeddingIn:
    case Role::kHeadIn:
      return kOuterRefusal;
    case Role::kLatentUp:
      return kLatentUpRefusal;
    default:
      return kVectorRefusal;
  }
}

}  // namespace

std::span<const LinearPart> linear_parts(size_t linear) {
  return linear < kLayerLinears.size() ? kLayerLinears[linear].parts
                                       : kOtherLinears[linear - kLayerLinears.size()].parts;
}

ModuleSites::ModuleSites(const LoadedConfig& model) {
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
  for (int32_t layer = 0; layer < model.config.num_layers; ++layer) add_linears(table, layer);
  add_head(model, table);
  any_expert_.refusal = kExpertRefusal;
  has_experts_ = model.config.experts.num_experts > 0;
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
  const bool divides_head = config.divides_head_rows;
  for (const TensorEntry& entry : table.entries()) {
    const bool is_divided_head = entry.spec->role == Role::kLmHead && divides_head;
    ModuleTarget& found = target(entry);
    found.refusal = is_divided_head ? kNormedHeadRefusal : refusal_of_entry(entry);
    if (entry.spec->role != Role::kTokenEmbedding) continue;
    found.parts = {{.role = entry.spec->role}};
    std::swap(found.outputs, found.inputs);
  }
}

void ModuleSites::add_linears(const TensorTable& table, int32_t layer) {
  for (size_t linear = 0; linear < static_cast<size_t>(kSitesOfLayer); ++linear) {
    for (const LinearPart& part : linear_parts(linear)) {
      const TensorEntry* entry = table.find(part.weight, layer);
      if (entry == nullptr) continue;
      ModuleTarget& found = target(*entry);
      found.refusal = {};
      found.parts.push_back({.layer = layer, .linear = linear, .role = part.weight});
    }
  }
}

// A head that is tied to the embedding is a module of its own all the same, and as large.
void ModuleSites::add_head(const LoadedConfig& model, const TensorTable& table) {
  if (model.config.divides_head_rows) return;
  const TensorEntry* embedding = table.find(Role::kTokenEmbedding);
  for (const TensorSpec& spec : model.tensors()) {
    if (spec.role != Role::kLmHead || embedding == nullptr) continue;
    const bool is_tied = table.find(Role::kLmHead) == nullptr;
    ModuleTarget& head = targets_[inner_name(module_of(spec.name))];
    head = {.parts = {{.role = Role::kLmHead}},
            .name = is_tied ? embedding->name : std::string(spec.name),
            .outputs = embedding->rows,
            .inputs = embedding->cols};
  }
}

const ModuleTarget* ModuleSites::find(std::string_view module) const {
  const auto found = targets_.find(inner_name(module));
  if (found != targets_.end()) return &found->second;
  // Tables have them one by one or all in one tensor, as checkpoints do; modules are either.
  const bool is_expert = module.find(".experts.") != std::string_view::npos;
  return has_experts_ && is_expert ? &any_expert_ : nullptr;
}

}  // namespace tgi
