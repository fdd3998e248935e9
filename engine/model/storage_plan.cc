#include "engine/model/storage_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "engine/model/weight_check.h"

namespace tgi {

StoragePlan::StoragePlan(const LoadedConfig& model,
                         const LoadWeightsOptions& options,
                         const MatrixForms& keeps,
                         const TensorTable& table)
    : model_(model),
      options_(options),
      keeps_(keeps),
      is_head_apart_(table.find(Role::kLmHead) != nullptr || model.config.gives_vectors) {}

std::vector<MatrixPart> StoragePlan::parts(std::span<const TensorEntry* const> entries,
                                           Role role,
                                           Range cols) const {
  // Which of the two a choice is stored as, its tensors say; and it is small.
  if (matrix_spec(model_, *entries.front()).is_choice) {
    return {{entries, MatrixStorage(options_.dtype)}};
  }
  // Rows of an embedding are only looked up.
  const bool is_embedding = role == Role::kPositionEmbedding || role == Role::kTypeEmbedding ||
                            role == Role::kLayerInputTable ||
                            (role == Role::kTokenEmbedding && is_head_apart_);
  if (options_.quantization != Quantization::kNone && !is_embedding) {
    return {{entries, rounded(entries, role, cols)}};
  }
  const auto storage = [&](const StoredForm& stored) {
    return storage_of(stored, cols, options_.dtype,
                      {.f8 = keeps_.stored_f8, .tables = keeps_.stored_tables});
  };
  std::vector<StoredForm> forms;
  std::vector<MatrixPart> parts;
  for (size_t i = 0; i < entries.size(); ++i) {
    forms.push_back(form(*entries[i]));
    const MatrixStorage own = storage(forms.back());
    const bool goes_on = !parts.empty() && parts.back().storage == own;
    if (!goes_on) parts.push_back({entries.subspan(i, 0), own});
    std::span<const TensorEntry* const>& last = parts.back().entries;
    last = {last.data(), last.size() + 1};
  }
  const bool is_expert = entries.front()->expert >= 0;
  if (parts.size() == 1 || (keeps_.stacks && !is_expert)) return parts;
  return {{entries, storage(common_form(forms))}};
}

MatrixStorage StoragePlan::rounded(std::span<const TensorEntry* const> entries,
                                   Role role,
                                   Range cols) const {
  const TensorEntry& entry = *entries.front();
  const bool is_head = role == Role::kTokenEmbedding || role == Role::kLmHead;
  const Quantization kind = is_head ? Quantization::kInt8 : options_.quantization;
  for (const TensorEntry* each : entries) check_plain(*each);
  if (options_.group_size == 0) {
    return {kind, effective_group_size({.quantization = kind})};
  }
  if (cols.count % options_.group_size != 0) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("quantize group size {} does not divide the {} columns of {}{}; use one "
                    "that does, or 0 for the default",
                    options_.group_size, cols.count, entry.name, on_each_rank(entry, cols.count)));
  }
  return {kind, options_.group_size};
}

MatrixStorage StoragePlan::of_heads() const {
  if (options_.quantization == Quantization::kNone || !keeps_.integer_heads) {
    return MatrixStorage(options_.dtype);
  }
  return {Quantization::kInt8, effective_group_size({.quantization = Quantization::kInt8})};
}

bool StoragePlan::is_quantised(const TensorEntry& entry) const {
  return !form(entry).quantised_as.empty();
}

StoredForm StoragePlan::form(const TensorEntry& entry) const {
  return model_.weight_format->form_of(model_.json, matrix_spec(model_, entry));
}

std::string StoragePlan::on_each_rank(const TensorEntry& entry, int64_t cols) const {
  if (cols == entry.cols) return "";
  return fmt::format(" on each of {} ranks", options_.world_size);
}

void StoragePlan::check_plain(const TensorEntry& entry) const {
  const std::string quantised_as = form(entry).quantised_as;
  if (quantised_as.empty()) return;
  throw Error(Code::kInvalidArgument,
              fmt::format("quantize {}: {} is quantised in the checkpoint already (as {}); load it "
                          "without --quantize",
                          quantization_name(options_.quantization), entry.name, quantised_as));
}

}  // namespace tgi
