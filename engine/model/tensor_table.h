// The tensors that a model consists of, with names and sizes filled in. From the config alone: no
// checkpoint is looked at here.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/model/architecture.h"

namespace tgi {

inline constexpr int32_t kOutsideLayers = -1;

struct TensorEntry {
  const TensorSpec* spec = nullptr;
  int32_t layer = kOutsideLayers;
  int32_t expert = -1;  // or head of a state, or stream, of those but the first; -1: of none
  std::string name;
  int64_t rows = 0;  // whole, before any split; 1 for vectors
  int64_t cols = 0;
  int32_t num_parts = 1;              // of a vector that is stored in so many tensors
  std::vector<int64_t> part_sizes{};  // (num_parts), or empty: all are of one size
  int64_t head_dim = 0;               // of the layer's attention, or of its state
  int64_t num_stacked = 0;  // experts, or heads, whose vectors or matrices are one tensor; 0: alone
  int64_t per_channel = 0;  // numbers of a channel, of a vector that is stored (channels, numbers)
  int64_t row_length = 0;   // of a vector that is stored (rows, row_length), and stays so

  // What it is called in a checkpoint: one name, or one for each part.
  std::vector<std::string> stored_names() const;
  bool is_vector() const { return spec->rows == Dim::kOne; }
  // As it is stored; of a part, where it is stored in several.
  std::vector<int64_t> vector_shape(size_t part = 0) const {
    const int64_t size = part_sizes.empty() ? cols / num_parts : part_sizes[part];
    if (spec->is_scalar) return {};
    if (spec->as_row) return {1, cols};
    if (spec->amid_ones) return {1, 1, cols, 1};
    if (spec->before_ones) return {cols, 1, 1};
    if (spec->cols == Dim::kConvWeights) return {size / per_channel, 1, per_channel};
    if (spec->cols == Dim::kChannelDecay || spec->cols == Dim::kDistanceBiases)
      return {cols / per_channel, per_channel};
    if (row_length > 0) return {cols / row_length, row_length};
    if (spec->for_heads) return {cols / head_dim};
    if (spec->by_head) return {cols / head_dim, head_dim};
    if (num_stacked > 0) return {num_stacked, cols * spec->turns.count};
    return {size};
  }
};

// Whether each layer has one.
bool is_per_layer(const TensorSpec& spec);

// Whether other layers may have the same one, by the same name.
bool is_of_shared_layer(const TensorSpec& spec, const ModelConfig& config);

// In the order of the family's table, layer by layer. Immutable; entries stay where they are.
class TensorTable {
 public:
  explicit TensorTable(const LoadedConfig& model);

  const std::vector<TensorEntry>& entries() const { return entries_; }

  // Null when the model has no such tensor. `expert`: or head, or stream.
  const TensorEntry* find(Role role, int32_t layer = kOutsideLayers, int32_t expert = 0) const;

 private:
  static constexpr int32_t kAbsent = -1;
  using Row = std::array<int32_t, static_cast<size_t>(Role::kCount)>;

  void add(const TensorSpec& spec, int32_t layer, const ModelConfig& config);
  void add_entry(const TensorSpec& spec, int32_t layer, int32_t expert, const ModelConfig& config);

  std::vector<TensorEntry> entries_;
  std::vector<Row> index_;  // [layer + 1][role] = index of the entry, of the first expert's or
                            // stream's, or kAbsent
};

// The parameters of the whole model and its indices, in a double, which holds what a config may ask
// for.
double count_parameters(const LoadedConfig& model);

// Of the tensors that a checkpoint has, without indices: one that layers share counts once.
int64_t count_stored_parameters(const TensorTable& table);

// What the head reads is not the normed stream, but what a matrix made of it.
bool has_matrix_before_head(const LoadedConfig& model);

}  // namespace tgi
