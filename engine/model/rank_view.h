// A rank's share of a model's tensors, for the plan of its memory and for loading.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/model/model_weights.h"
#include "engine/model/rank_ranges.h"
#include "engine/model/storage_plan.h"
#include "engine/model/tensor_table.h"
#include "engine/model/weight_layout.h"

namespace tgi {

// A rank's share of a table: what there is, and how much of it.
class RankView {
 public:
  RankView(const LoadedConfig& model, const LoadWeightsOptions& options)
      : model_(model), options_(options), table_(model) {
    check_world_size(model.config, options.world_size);
    if (options.rank < 0 || options.rank >= options.world_size) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("rank {} is not one of {} ranks", options.rank, options.world_size));
    }
  }

  const TensorTable& table() const { return table_; }

  std::vector<Range> row_ranges(const TensorEntry& entry) const {
    if (entry.spec->rows == Dim::kPositions) {
      return {{.begin = model_.config.position_offset, .count = model_.config.max_positions}};
    }
    if (entry.spec->rows == Dim::kImagesVocab) return whole_range(model_.config.vocab_size);
    return entry.spec->split == Split::kRows ? ranges(entry.spec->rows, entry)
                                             : whole_range(entry.rows);
  }

  Range col_range(const TensorEntry& entry) const {
    return entry.spec->split == Split::kColumns ? ranges(entry.spec->cols, entry).front()
                                                : whole_range(entry.cols).front();
  }

  // The ranges of a vector that this rank holds: a bias is cut like the rows of its matrix. Empty
  // when this rank holds none of it.
  std::vector<Range> vector_ranges(const TensorEntry& entry) const {
    if (entry.spec->split == Split::kRows) return ranges(entry.spec->cols, entry);
    if (entry.spec->split == Split::kColumns && options_.rank != 0) return {};
    if (entry.spec->cols == Dim::kExpertsAndUnread) return whole_range(entry.row_length);
    return whole_range(entry.cols);
  }

  int64_t num_rows(const TensorEntry& entry) const { return total(row_ranges(entry)); }

  // Those parts of a stacked matrix that the model has.
  std::vector<const TensorEntry*> entries(std::span<const LinearPart> parts,
                                          int32_t layer,
                                          int32_t expert = 0) const {
    std::vector<const TensorEntry*> out;
    for (const LinearPart& part : parts) {
      const TensorEntry* entry = table_.find(part.weight, layer, expert);
      if (entry != nullptr) out.push_back(entry);
    }
    return out;
  }

  // What is the same for layers that share a stack of these.
  static std::string stack_name(std::span<const TensorEntry* const> entries) {
    std::string out;
    for (const TensorEntry* entry : entries) {
      out +=
          fmt::format("{} {} {} ", entry->name, static_cast<int>(entry->spec->role), entry->expert);
    }
    return out;
  }

  // A stacked bias has an element per row if any of its parts has a bias on this rank.
  bool has_bias(std::span<const LinearPart> parts, int32_t layer) const {
    for (const LinearPart& part : parts) {
      const TensorEntry* entry = table_.find(part.bias, layer);
      if (entry != nullptr && !vector_ranges(*entry).empty()) return true;
    }
    return false;
  }

  int32_t num_experts(std::span<const LinearPart> parts, int32_t layer) const {
    return entries(parts, layer).empty() ? 0 : model_.config.experts.num_experts;
  }

  // That have a matrix of their own of this role.
  int32_t num_heads(Role role, int32_t layer) const {
    return table_.find(role, layer) == nullptr ? 0 : model_.config.state.num_heads;
  }

  static int64_t total(std::span<const Range> ranges) {
    int64_t count = 0;
    for (const Range& range : ranges) count += range.count;
    return count;
  }

 private:
  std::vector<Range> ranges(Dim dim, const TensorEntry& entry) const {
    return rank_ranges(dim, model_.config, entry.layer, options_.rank, options_.world_size);
  }

  const LoadedConfig& model_;
  const LoadWeightsOptions& options_;
  const TensorTable table_;
};

}  // namespace tgi
