// Which linears of a model a module of transformers is, under whatever names the module is reached.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
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
  static constexpr int32_t kNone = -1;

  int32_t layer = kNone;  // none: before the first or behind the last, by `role`
  // Of the layer, as site_of counts them; of experts in kExpertLinears, of no layer in
  // kModelLinears or, of a stream, in kStreamLinears.
  // What latents become keys and values by is at kSitesOfLayer.
  size_t linear = 0;
  Role role = Role::kCount;
  int32_t expert = kNone;
  int32_t stream = kNone;  // one for each further stream
  Range rows{};            // of a tensor that holds those of several modules; none: all of them

  // As TensorTable::find counts.
  int32_t index() const { return std::max({expert, stream, 0}); }
  Range rows_of(const TensorEntry& entry) const {
    return rows.count > 0 ? rows : Range{.begin = 0, .count = entry.rows};
  }

  auto operator<=>(const SitePart&) const = default;
};

// The tensors that the part's linear is stacked from.
std::span<const LinearPart> linear_parts(const SitePart& part);

struct ModuleTarget {
  std::string_view refusal{};  // why no adapter of it is read; empty: one is
  std::vector<SitePart> parts;
  std::string name;     // of its weight in the table; of a tied head the embedding's
  int64_t first = 0;    // element of it with which the module begins: of several in one tensor
  int64_t outputs = 0;  // of the module, all parts together
  int64_t inputs = 0;

  // Then the inputs are tokens.
  bool is_embedding() const {
    return !parts.empty() && parts.front().role == Role::kTokenEmbedding;
  }
  // It is used head by head, the other way around for keys: only a plain product can be added.
  bool is_of_heads() const { return !parts.empty() && parts.front().role == Role::kLatentUp; }
};

// One parameter of a module that holds all experts of a layer, as transformers has them.
struct ExpertParameter {
  // Rows of it that are a tensor of the table, or one for each expert.
  struct Piece {
    int64_t first_output = 0;
    std::vector<const ModuleTarget*> targets;  // (num_experts)
  };
  std::string name;            // "gate_up_proj"
  int64_t inputs = 0;          // of an expert
  int64_t outputs = 0;         // of an expert, all pieces together
  bool is_transposed = false;  // stored (inputs, outputs)
  std::vector<Piece> pieces;
};

class ModuleSites {
 public:
  explicit ModuleSites(const LoadedConfig& model);
  ModuleSites(const ModuleSites&) = delete;
  ModuleSites& operator=(const ModuleSites&) = delete;

  int32_t num_experts() const { return num_experts_; }
  // Of a module that holds experts (".experts"), by whatever name; empty: it is none.
  std::span<const ExpertParameter* const> find_experts(std::string_view module) const;
  // Of one expert. REQUIRES: a part of the model's.
  const ModuleTarget& expert_target(const SitePart& part) const;

  // The module of that name: as the family's table spells it, or with other words of those that
  // wrap a decoder around or left out ("model.language_model.layers.0.mlp.up_proj",
  // "layers.0.mlp.up_proj"), or as the family's renames have it. Null: the model has none.
  const ModuleTarget* find(std::string_view module) const;

 private:
  std::string inner_name(std::string_view module) const;
  ModuleTarget& target(const TensorEntry& entry);
  void add_others(const TensorTable& table, const ModelConfig& config);
  void add_outer_linears(const TensorTable& table, const ModelConfig& config);
  void add_linears(const TensorTable& table, int32_t layer, const ModelConfig& config);
  void add_rows(const TensorEntry& entry,
                const TensorEntry* bias,
                const SitePart& part,
                const ModelConfig& config);
  void add_experts(const TensorTable& table, int32_t layer);
  void add_parameter(const TensorTable& table, int32_t layer, size_t linear);
  const ModuleTarget* find_by_inner(const std::string& inner) const;
  void add_head(const LoadedConfig& model, const TensorTable& table);

  std::span<const TensorRename> renames_;  // of the family
  std::set<std::string, std::less<>> wrappers_;
  std::map<std::string, ModuleTarget, std::less<>> targets_;  // by inner names
  // Of experts that are one tensor of the table, in a deque so that they stay where they are.
  std::deque<ModuleTarget> stacked_experts_;
  std::deque<ExpertParameter> parameters_;
  std::map<std::string, std::vector<const ExpertParameter*>, std::less<>> by_experts_module_;
  std::map<SitePart, const ModuleTarget*> by_expert_;
  std::map<std::string, const ModuleTarget*, std::less<>> routers_;  // by layers ("layers.3")
  // Of modules that are rows of a tensor, by layers and their own names ("layers.3.q_proj").
  std::map<std::string, ModuleTarget, std::less<>> rows_of_layers_;
  ModuleTarget any_expert_;  // of experts that the table has under other names
  int32_t num_experts_ = 0;
};

}  // namespace tgi
