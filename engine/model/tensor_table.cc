#include "engine/model/tensor_table.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "engine/model/dim_sizes.h"

namespace tgi {
namespace {

constexpr std::string_view kLayerMark = "{layer}";
// Where a layer of the file is two: its number there, and which of them.
constexpr std::string_view kPairMark = "{pair}";
constexpr std::string_view kHalfMark = "{half}";
constexpr std::string_view kBlockMark = "{block}";
constexpr std::string_view kUseMark = "{use}";
constexpr std::string_view kExpertMark = "{expert}";
constexpr std::string_view kLayerBeforeMark = "{layer-1}";
constexpr std::string_view kLastLayerMark = "{last}";
constexpr std::string_view kHeadMark = "{head}";
constexpr std::string_view kStreamMark = "{stream}";
constexpr std::string_view kQkvMark = "{qkv}";
constexpr std::string_view kQkv = "qkv";

bool has_mark(std::string_view name, std::string_view mark) {
  return name.find(mark) != std::string_view::npos;
}

void fill_in(std::string& name, std::string_view mark, int32_t number) {
  const size_t at = name.find(mark);
  if (at != std::string::npos) name.replace(at, mark.size(), std::to_string(number));
}

bool is_per_expert(const TensorSpec& spec) {
  return spec.stacked || has_mark(spec.name, kExpertMark);
}

// How many tensors of a layer, or of the model, a row of the table stands for.
int32_t num_tensors(const TensorSpec& spec, const ModelConfig& config) {
  if (spec.stacked && is_of_state(spec.role)) return config.state.num_heads;
  if (is_per_expert(spec)) return config.experts.num_experts;
  return has_mark(spec.name, kStreamMark) ? num_further_streams(config) : 1;
}

bool is_alone(const TensorSpec& spec) {
  return !is_per_expert(spec) && !has_mark(spec.name, kStreamMark);
}

bool is_present(const TensorSpec& spec, const ModelConfig& config, int32_t layer) {
  if (layer >= 0) {
    const LayerPlan& plan = config.layers[static_cast<size_t>(layer)];
    if (is_of_attention(spec.role) && !plan.has_attention) return false;
    if (is_of_state(spec.role) && !plan.has_state) return false;
  }
  return spec.only_if == nullptr || spec.only_if(config, layer);
}

int32_t num_blocks_before(int32_t layer, const ModelConfig& config) {
  return static_cast<int32_t>(
      std::count_if(config.layers.begin(), config.layers.begin() + std::max(layer, 0),
                    [](const LayerPlan& plan) { return plan.has_block(); }));
}

std::string tensor_name(std::string_view pattern,
                        int32_t layer,
                        int32_t expert,
                        const ModelConfig& config) {
  std::string name(pattern);
  const auto stored = [&](int32_t one) {
    if (config.num_stored_layers == 0) return one;
    return static_cast<int32_t>(int64_t{one} * config.num_stored_layers / config.num_layers);
  };
  fill_in(name, kLayerMark, stored(layer));
  fill_in(name, kLayerBeforeMark, stored(layer - 1));
  fill_in(name, kPairMark, layer / 2);
  fill_in(name, kHalfMark, layer % 2);
  if (has_mark(pattern, kBlockMark)) {
    fill_in(name, kBlockMark, config.layers[static_cast<size_t>(layer)].block_layer);
    fill_in(name, kUseMark, num_blocks_before(layer, config));
  }
  fill_in(name, kLastLayerMark, stored(config.num_layers - 1));
  fill_in(name, kExpertMark, expert);
  fill_in(name, kStreamMark, expert);
  return name;
}

}  // namespace

std::vector<std::string> TensorEntry::stored_names() const {
  std::vector<std::string> names(static_cast<size_t>(num_parts), name);
  for (int32_t part = 0; part < num_parts; ++part) {
    std::string& each = names[static_cast<size_t>(part)];
    fill_in(each, kHeadMark, part);
    const size_t at = each.find(kQkvMark);
    if (at != std::string::npos) {
      each.replace(at, kQkvMark.size(), kQkv.substr(static_cast<size_t>(part), 1));
    }
  }
  return names;
}

bool is_per_layer(const TensorSpec& spec) {
  return has_mark(spec.name, kLayerMark) || has_mark(spec.name, kLayerBeforeMark) ||
         has_mark(spec.name, kPairMark) || has_mark(spec.name, kBlockMark);
}

bool is_of_shared_layer(const TensorSpec& spec, const ModelConfig& config) {
  return has_mark(spec.name, kBlockMark) ||
         (config.num_stored_layers > 0 && has_mark(spec.name, kLayerMark));
}

TensorTable::TensorTable(const LoadedConfig& model) {
  const ModelConfig& config = model.config;
  Row none;
  none.fill(kAbsent);
  index_.assign(static_cast<size_t>(config.num_layers) + 1, none);
  for (const TensorSpec& spec : model.tensors()) {
    if (!is_per_layer(spec)) add(spec, -1, config);
  }
  for (int32_t layer = model.first_layer; layer < config.num_layers; ++layer) {
    for (const TensorSpec& spec : model.tensors()) {
      if (is_per_layer(spec)) add(spec, layer, config);
    }
  }
}

void TensorTable::add(const TensorSpec& spec, int32_t layer, const ModelConfig& config) {
  if (!is_present(spec, config, layer)) return;
  index_[static_cast<size_t>(layer + 1)][static_cast<size_t>(spec.role)] =
      static_cast<int32_t>(entries_.size());
  if (is_alone(spec)) return add_entry(spec, layer, -1, config);
  const int32_t count = num_tensors(spec, config);
  for (int32_t i = 0; i < count; ++i) add_entry(spec, layer, i, config);
}

void TensorTable::add_entry(const TensorSpec& spec,
                            int32_t layer,
                            int32_t expert,
                            const ModelConfig& config) {
  TensorEntry entry{.spec = &spec,
                    .layer = layer,
                    .expert = expert,
                    .name = tensor_name(spec.name, layer, expert, config),
                    .rows = dim_size(spec.rows, config, layer),
                    .cols = dim_size(spec.cols, config, layer),
                    .head_dim = is_of_state(spec.role) ? config.state.head_dim
                                                       : kv_heads_of(config, layer).head_dim,
                    .num_stacked = spec.stacked ? num_tensors(spec, config) : 0};
  if (spec.cols == Dim::kConvWeights) entry.per_channel = config.state.conv_kernel;
  if (spec.cols == Dim::kStreamPredictions || spec.cols == Dim::kStreamCorrections)
    entry.row_length = config.streams.count;
  if (spec.cols == Dim::kEntryBias || spec.cols == Dim::kIndexerEntryBias)
    entry.row_length = entry.cols / config.layers[static_cast<size_t>(layer)].tokens_per_entry;
  if (spec.cols == Dim::kExpertsAndUnread) entry.row_length = config.experts.num_experts;
  if (spec.cols == Dim::kDistanceBiases) entry.per_channel = config.num_heads;
  if (spec.cols == Dim::kChannelDecay) entry.per_channel = config.state.state_size;
  if (has_mark(spec.name, kHeadMark)) {
    entry.num_parts = static_cast<int32_t>(entry.cols / entry.head_dim);
  }
  if (has_mark(spec.name, kQkvMark)) {
    const StateConfig& state = config.state;
    entry.num_parts = static_cast<int32_t>(kQkv.size());
    entry.part_sizes = {state.num_keys(), state.num_keys(), state.num_channels()};
    for (int64_t& size : entry.part_sizes) size *= std::max<int64_t>(entry.per_channel, 1);
  }
  entries_.push_back(std::move(entry));
}

const TensorEntry* TensorTable::find(Role role, int32_t layer, int32_t expert) const {
  if (role == Role::kCount) return nullptr;
  const int32_t index = index_[static_cast<size_t>(layer + 1)][static_cast<size_t>(role)];
  return index == kAbsent ? nullptr : &entries_[static_cast<size_t>(index + expert)];
}

double count_parameters(const LoadedConfig& model) {
  double total = 0;
  const auto add = [&](const TensorSpec& spec, int32_t layer) {
    if (!spec.is_counted || !is_present(spec, model.config, layer)) return;
    total += static_cast<double>(dim_size(spec.rows, model.config, layer)) *
             static_cast<double>(dim_size(spec.cols, model.config, layer)) *
             num_tensors(spec, model.config);
  };
  for (const TensorSpec& spec : model.tensors()) {
    if (!is_per_layer(spec)) add(spec, -1);
    for (int32_t layer = 0; is_per_layer(spec) && layer < model.config.num_layers; ++layer) {
      add(spec, layer);
    }
  }
  return total;
}

int64_t count_stored_parameters(const TensorTable& table) {
  // Experts may be rows of one tensor, and the three of attention too.
  std::set<std::tuple<std::string_view, Role, int32_t>> seen;
  int64_t total = 0;
  for (const TensorEntry& entry : table.entries()) {
    if (!entry.spec->is_counted || entry.spec->holds_indices) continue;
    if (seen.insert({entry.name, entry.spec->role, entry.expert}).second) {
      total += entry.rows * entry.cols;
    }
  }
  return total;
}

bool has_matrix_before_head(const LoadedConfig& model) {
  return std::ranges::any_of(model.tensors(), [&](const TensorSpec& spec) {
    return (spec.role == Role::kHeadIn || spec.role == Role::kHeadDense) &&
           is_present(spec, model.config, -1);
  });
}

}  // namespace tgi
