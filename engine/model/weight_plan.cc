// How weights will be held, and what they take, from the config alone.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/model/model_weights.h"
#include "engine/model/rank_view.h"
#include "engine/model/storage_plan.h"
#include "engine/model/weight_layout.h"

namespace tgi {
namespace {

class Planner {
 public:
  Planner(const LoadedConfig& model, const Device& device, const LoadWeightsOptions& options)
      : model_(model), device_(device), options_(options), view_(model, options) {}

  int64_t plan() {
    for (const ModelMatrix& row : kModelMatrices) add_matrix(row.role);
    for (const ModelLinear& row : kModelLinears) add_linear(row.parts, kOutsideLayers);
    for (const StreamLinear& row : kStreamLinears) {
      for (int32_t i = 0; i < num_further_streams(model_.config); ++i) {
        add_linear(row.parts, kOutsideLayers, i);
      }
    }
    for (const ModelVector& row : kModelVectors) add_vector(view_.table().find(row.role));
    if (view_.table().find(Role::kDistanceBias) != nullptr) {
      size_bytes_ += int64_t{model_.config.num_heads / options_.world_size} *
                     (2 * kMaxDistance + 1) * int64_t{sizeof(float)};
    }
    add_distances();
    if (const ModelConfig& config = model_.config; config.sinusoids.steps > 0) {
      const MatrixStorage storage(options_.dtype);
      size_bytes_ +=
          device_.matrix_bytes(storage.format(), storage, config.max_positions, config.hidden_size);
    }
    for (int32_t layer = 0; layer < model_.config.num_layers; ++layer) {
      for (const LayerLinear& row : kLayerLinears) add_linear(row.parts, layer);
      add_latent_up(layer);
      add_output_groups(layer);
      for (const HeadLinear& row : kHeadLinears) add_heads(row.role, layer);
      for (const LayerLinear& row : kOtherLinears) add_linear(row.parts, layer);
      for (const LayerLinear& row : kParameterLinears) add_linear(row.parts, layer);
      for (const ExpertLinear& row : kExpertLinears) add_experts(row.parts, layer);
      for (const LayerVector& row : kLayerVectors) add_vector(view_.table().find(row.role, layer));
      for (const LayerVectorPair& row : kLayerVectorPairs) {
        for (const Role role : {row.first, row.second}) {
          add_vector(view_.table().find(role, layer));
        }
      }
      add_indices(view_.table().find(Role::kExpertsByToken, layer));
    }
    return size_bytes_;
  }

 private:
  int64_t matrix_bytes(std::span<const TensorEntry* const> entries, Role role) const {
    const Range cols = view_.col_range(*entries.front());
    int64_t size_bytes = 0;
    for (const MatrixPart& part : storage_.parts(entries, role, cols)) {
      const MatrixStorage& storage = part.storage;
      size_bytes +=
          device_.matrix_bytes(storage.format(), storage, num_rows(part.entries), cols.count);
    }
    return size_bytes;
  }

  int64_t num_rows(std::span<const TensorEntry* const> entries) const {
    int64_t rows = 0;
    for (const TensorEntry* entry : entries) rows += view_.num_rows(*entry);
    return rows;
  }

  void add_matrix(Role role) {
    const TensorEntry* entry = view_.table().find(role);
    if (entry == nullptr) return;
    const std::array<const TensorEntry*, 1> one = {entry};
    size_bytes_ += matrix_bytes(one, role);
  }

  void add_vector(const TensorEntry* entry) {
    if (entry == nullptr) return;
    size_bytes_ += RankView::total(view_.vector_ranges(*entry)) * int64_t{sizeof(float)};
  }

  void add_indices(const TensorEntry* entry) {
    if (entry != nullptr) size_bytes_ += entry->rows * entry->cols * int64_t{sizeof(int32_t)};
  }

  void add_experts(std::span<const LinearPart> parts, int32_t layer) {
    const int32_t count = view_.num_experts(parts, layer);
    for (int32_t expert = 0; expert < count; ++expert) add_linear(parts, layer, expert);
  }

  void add_latent_up(int32_t layer) {
    const TensorEntry* entry = view_.table().find(Role::kLatentUp, layer);
    if (entry == nullptr) return;
    const int32_t rank = model_.config.latent.rank;
    const int32_t kept = latent_kept_dim(model_.config, layer);
    const int32_t value_dim = model_.config.latent.value_dim;
    const MatrixStorage storage = storage_.of_heads();
    const auto of_head = [&](int64_t rows, int64_t cols) {
      return device_.matrix_bytes(storage.format(), storage, rows, cols);
    };
    size_bytes_ += view_.num_rows(*entry) / (kept + value_dim) *
                   (of_head(rank, kept) + of_head(value_dim, rank));
  }

  void add_output_groups(int32_t layer) {
    const TensorEntry* entry = view_.table().find(Role::kOutputGroups, layer);
    if (entry == nullptr) return;
    const EntriesConfig& entries = model_.config.entries;
    const MatrixStorage storage = storage_.of_heads();
    size_bytes_ += entries.output_groups * device_.matrix_bytes(storage.format(), storage,
                                                                entries.output_rank, entry->cols);
  }

  void add_heads(Role role, int32_t layer) {
    const int32_t num_heads = view_.num_heads(role, layer);
    if (num_heads == 0) return;
    const TensorEntry& entry = *view_.table().find(role, layer);
    const MatrixStorage storage = storage_.of_heads();
    size_bytes_ +=
        num_heads * device_.matrix_bytes(storage.format(), storage, entry.rows, entry.cols);
  }

  // The embedding, and what Transformer makes of it.
  void add_distances() {
    const ModelConfig& config = model_.config;
    const DistanceConfig& distances = config.distances;
    if (!distances.has_products()) return;
    size_bytes_ += int64_t{distances.num_kinds} * config.hidden_size * int64_t{sizeof(float)};
    const MatrixStorage storage(options_.dtype);
    const int64_t of_head =
        device_.matrix_bytes(storage.format(), storage, distances.num_kinds, config.head_dim);
    const int64_t num_heads = config.num_heads / options_.world_size;
    const int64_t each = (distances.has_keys ? 1 : 0) + (distances.has_queries ? 1 : 0);
    size_bytes_ += config.num_layers * num_heads * each * of_head;
  }

  void add_linear(std::span<const LinearPart> parts, int32_t layer, int32_t expert = 0) {
    const std::vector<const TensorEntry*> entries = view_.entries(parts, layer, expert);
    if (!entries.empty() && !is_held(entries))
      size_bytes_ += matrix_bytes(entries, parts.front().weight);
    if (view_.has_bias(parts, layer)) size_bytes_ += num_rows(entries) * int64_t{sizeof(float)};
  }

  // For a layer before that shares it.
  bool is_held(std::span<const TensorEntry* const> entries) {
    return is_of_shared_layer(*entries.front()->spec, model_.config) &&
           !shared_.insert(RankView::stack_name(entries)).second;
  }

  const LoadedConfig& model_;
  const Device& device_;
  const LoadWeightsOptions& options_;
  const RankView view_;
  const StoragePlan storage_{model_, options_, device_.info().keeps, view_.table()};
  std::set<std::string> shared_;  // of those that are counted: RankView::stack_name
  int64_t size_bytes_ = 0;
};

// Calls use(parts) for every kind of linear of a layer; of the experts, which are alike, the first
// stands for all.
template <typename Use>
void for_linears(Use use) {
  for (const LayerLinear& row : kLayerLinears) use(row.parts);
  for (const LayerLinear& row : kOtherLinears) use(row.parts);
  for (const LayerLinear& row : kParameterLinears) use(row.parts);
  for (const ExpertLinear& row : kExpertLinears) use(row.parts);
}

}  // namespace

int32_t effective_group_size(const LoadWeightsOptions& options) {
  if (options.quantization == Quantization::kNone) return 0;
  if (options.group_size != 0) return options.group_size;
  return options.quantization == Quantization::kInt8 ? kInt8GroupSize : kInt4GroupSize;
}

void check_quantization(const LoadedConfig& model, const LoadWeightsOptions& options) {
  const int32_t group_size = effective_group_size(options);
  if (group_size % 32 != 0 || group_size < 0 || group_size > 256) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("quantize group size {}: expected 32, 64, 96 and so on to 256, or 0 for "
                    "the default",
                    group_size));
  }
  const RankView view(model, options);
  const StoragePlan storage(model, options, {}, view.table());
  const auto check = [&](Role role, int32_t layer) {
    const TensorEntry* entry = view.table().find(role, layer);
    if (entry == nullptr) return;
    const std::array<const TensorEntry*, 1> one = {entry};
    (void)storage.parts(one, role, view.col_range(*entry));
  };
  for (const ModelMatrix& row : kModelMatrices) check(row.role, -1);
  for (const ModelLinear& row : kModelLinears) check(row.parts.front().weight, -1);
  for (const StreamLinear& row : kStreamLinears) check(row.parts.front().weight, -1);
  for (int32_t layer = 0; layer < model.config.num_layers; ++layer) {
    for_linears([&](std::span<const LinearPart> parts) {
      for (const LinearPart& part : parts) check(part.weight, layer);
    });
  }
}

HeldWeights held_weights(const LoadedConfig& model,
                         const LoadWeightsOptions& options,
                         const MatrixForms& keeps) {
  HeldWeights out;
  const RankView view(model, options);
  const StoragePlan storage(model, options, keeps, view.table());
  std::vector<std::string_view> types;
  bool any_quantised = false;
  const auto look_at = [&](std::span<const LinearPart> parts, int32_t layer) {
    const std::vector<const TensorEntry*> entries = view.entries(parts, layer);
    if (entries.empty()) return;
    for (const TensorEntry* entry : entries) any_quantised |= storage.is_quantised(*entry);
    const Range cols = view.col_range(*entries.front());
    for (const MatrixPart& part : storage.parts(entries, parts.front().weight, cols)) {
      const MatrixStorage& held = part.storage;
      types.push_back(held.stored ? quantization_name(held.quantization) : dtype_name(held.dtype));
      out.group_size = std::max(out.group_size, held.group_size);
    }
  };
  for_linears([&](std::span<const LinearPart> parts) {
    for (int32_t layer = 0; layer < model.config.num_layers; ++layer) look_at(parts, layer);
  });
  if (has_latents(model.config)) types.push_back(dtype_name(storage.of_heads().dtype));
  if (!any_quantised) return {};
  std::ranges::sort(types, std::greater<>());
  types.erase(std::ranges::unique(types).begin(), types.end());
  out.types = fmt::format("{}", fmt::join(types, ", "));
  return out;
}

int64_t plan_weight_bytes(const LoadedConfig& model,
                          const Device& device,
                          const LoadWeightsOptions& options) {
  return Planner(model, device, options).plan();
}

}  // namespace tgi
