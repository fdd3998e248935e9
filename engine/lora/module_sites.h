// Which linears of a model a module of transformers is, under whatever names the module is reached.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/tensor_table.h"
#include "engine/model/weight_layout.h"

namespace tgi {

// A tensor of the table that a module is stored as: all of it, or some of its rows.
struct SitePart {
  static constexpr int32_t kNone = -1;  // the head or the embedding, by `role`

  int32_t layer = kNone;
  size_t linear = 0;  // of the layer, as site_of counts them
  Role role = Role::kCount;
};

// The tensors that a linear of a layer is stacked from, by the number that site_of counts it with.
std::span<const LinearPart> linear_parts(size_t linear);

struct ModuleTarget {
  std::string_view refusal{};  // why no adapter of it is read; empty: one is
  std::vector<SitePart> parts;
  std::string name;     // of its weight in the table; of a tied head the embedding's
  int64_t outputs = 0;  // of the module, all parts together
  int64_t inputs = 0;

  // Then the inputs are tokens.
  bool is_embedding() const {
    return !parts.empty() && parts.front().role == Role::kTokenEmbedding;
  }
};

class ModuleSites {
 public:
  explicit ModuleSites(const LoadedConfig& model);

  // The module of that name: as the family's table spells it, or with other words of those that
  // wrap a decoder around or left out ("model.language_model.layers.0.mlp.up_proj",
  // "layers.0.mlp.up_proj"). Null: the model has none.
  const ModuleTarget* find(std::string_view module) const;

 private:
  std::string inner_name(std::string_view module) const;
  ModuleTarget& target(const TensorEntry& entry);
  void add_others(const TensorTable& table, const ModelConfig& config);
  void add_linears(const TensorTable& table, int32_t layer);
  void add_head(const LoadedConfig& model, const TensorTable& table);

  std::set<std::string, std::less<>> wrappers_;
  std::map<std::string, ModuleTarget, std::less<>> targets_;  // by inner names
  ModuleTarget any_expert_;  // of experts that the table has under other names
  bool has_experts_ = false;
};

}  // namespace tgi
