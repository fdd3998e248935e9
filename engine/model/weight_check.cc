#include "engine/model/weight_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/first_names.h"
#include "engine/weights/respelled_checkpoint.h"
#include "engine/weights/stored_indices.h"

namespace tgi {
namespace {

constexpr size_t kMaxListed = 20;

// "; 2 tensors are missing: a, b", or nothing.
std::string list_problem(const std::vector<std::string>& items, std::string_view what) {
  if (items.empty()) return "";
  return fmt::format("; {} {} {}: {}", items.size(), items.size() == 1 ? "tensor" : "tensors", what,
                     first_names(items, kMaxListed));
}

// What stands there again goes: of a tensor that holds the matrices of all experts each says the
// same.
void leave_first(std::vector<std::string>& items) {
  std::set<std::string> seen;
  std::erase_if(items, [&](const std::string& item) { return !seen.insert(item).second; });
}

MatrixKind kind_of(Role role) {
  if (role == Role::kLmHead) return MatrixKind::kHead;
  const bool is_embedding = role == Role::kTokenEmbedding || role == Role::kPositionEmbedding ||
                            role == Role::kTypeEmbedding || role == Role::kLayerInputTable;
  return is_embedding ? MatrixKind::kEmbedding : MatrixKind::kLayer;
}

// Which experts a token goes to hangs on small differences of the router's few rows; and of few are
// the coefficients of streams and the weights of an indexer's heads.
bool is_choice(Role role) {
  return role == Role::kRouter || role == Role::kSharedOutputGate || role == Role::kStreamRouter ||
         role == Role::kIndexerWeights || role == Role::kAttentionConnection ||
         role == Role::kMlpConnection || role == Role::kHeadConnection;
}

bool ends_with(std::string_view name, std::string_view tensor) {
  return !tensor.empty() && name.ends_with(tensor);
}

// The head that draws tokens is not used, that of the task is read elsewhere.
bool is_of_a_head(const LoadedConfig& model, std::string_view name) {
  for (const TensorSpec& spec : model.tensors()) {
    if (is_of_head(spec.role) && ends_with(name, spec.name)) return true;
  }
  return is_of_task_head(model, name);
}

std::string_view without(std::string_view outer, std::string_view name) {
  if (name.starts_with(outer)) name.remove_prefix(outer.size());
  return name;
}

// The text model of a multimodal checkpoint is called "model.language_model.", or
// "language_model.model.".
bool is_of_layer(const LoadedConfig& model, std::string_view name, int64_t layer) {
  constexpr std::string_view kOuter = "model.";
  const std::string_view inner =
      without(kOuter, without(model.architecture->prefix, without(kOuter, name)));
  return inner.starts_with(fmt::format("layers.{}.", layer));
}

// Layers that do nothing without images have tensors all the same.
bool is_of_idle_layer(const LoadedConfig& model, std::string_view name) {
  const std::vector<LayerPlan>& layers = model.config.layers;
  for (size_t i = 0; i < layers.size(); ++i) {
    const bool is_idle =
        !layers[i].has_attention && !layers[i].has_state && layers[i].mlp == MlpKind::kNone;
    if (is_idle && is_of_layer(model, name, static_cast<int64_t>(i))) return true;
  }
  return false;
}

// Experts that give what they read have gate and up all the same in what `transformers` writes.
bool is_of_unread_expert(const LoadedConfig& model, std::string_view name) {
  const ExpertsConfig& experts = model.config.experts;
  const int32_t end = experts.num_choices() + experts.num_unread;
  for (int32_t i = experts.num_experts; i < end; ++i) {
    if (name.find(fmt::format(".experts.{}.", i)) != std::string_view::npos) return true;
  }
  return false;
}

std::vector<const StoredTensor*> match_vector(const LoadedConfig& model,
                                              const TensorEntry& entry,
                                              const Checkpoint& checkpoint,
                                              WeightProblems& problems) {
  std::vector<const StoredTensor*> parts;
  size_t part = 0;
  for (const std::string& name : entry.stored_names()) {
    const StoredTensor* tensor = find_by_any_name(checkpoint, name, model.architecture->prefix);
    if (tensor == nullptr) {
      ++part;
      problems.missing.push_back(name);
      continue;
    }
    check_stored_tensor(*tensor, entry.vector_shape(part++), problems);
    parts.push_back(tensor);
  }
  return parts;
}

std::vector<const StoredTensor*> match_indices(const LoadedConfig& model,
                                               const TensorEntry& entry,
                                               const Checkpoint& checkpoint,
                                               WeightProblems& problems) {
  const StoredTensor* tensor = find_by_any_name(checkpoint, entry.name, model.architecture->prefix);
  if (tensor == nullptr) {
    problems.missing.push_back(entry.name);
    return {};
  }
  check_stored_indices(*tensor, std::array{entry.rows, entry.cols}, problems);
  return {tensor};
}

std::vector<const StoredTensor*> match_entry(const LoadedConfig& model,
                                             const TensorEntry& entry,
                                             const Checkpoint& checkpoint,
                                             WeightProblems& problems) {
  if (entry.is_vector()) return match_vector(model, entry, checkpoint, problems);
  if (entry.spec->holds_indices) return match_indices(model, entry, checkpoint, problems);
  return model.weight_format->collect(model.json, checkpoint, matrix_spec(model, entry), problems);
}

// Some checkpoints that tie the head to the embedding store it all the same. A copy is skipped; one
// with other numbers means that config or weights are wrong, and guessing which would be silent.
const StoredTensor* find_tied_head(const LoadedConfig& model,
                                   const TensorTable& table,
                                   const TensorSources& sources,
                                   const Checkpoint& checkpoint) {
  if (model.config.gives_vectors) return nullptr;
  for (const TensorSpec& spec : model.tensors()) {
    if (spec.role != Role::kLmHead || table.find(Role::kLmHead) != nullptr) continue;
    const StoredTensor* head = find_by_any_name(checkpoint, spec.name, model.architecture->prefix);
    const TensorEntry* embedding = table.find(Role::kTokenEmbedding);
    if (head == nullptr || embedding == nullptr) return head;
    const auto index = static_cast<size_t>(embedding - table.entries().data());
    if (sources[index].empty()) return head;  // already a problem of its own
    const StoredTensor& embedded = *sources[index].front();
    const auto head_bytes = checkpoint.bytes(*head);
    const auto embedded_bytes = checkpoint.bytes(embedded);
    const bool same = head->dtype_name == embedded.dtype_name && head->shape == embedded.shape &&
                      std::ranges::equal(head_bytes, embedded_bytes);
    checkpoint.release(*head);
    if (!same) {
      throw Error(
          Code::kInvalidArgument,
          fmt::format("config.json says tie_word_embeddings, but {} is not equal to {}; set "
                      "tie_word_embeddings to false to use both",
                      head->name, embedded.name));
    }
    return head;
  }
  return nullptr;
}

std::vector<std::string> unused_names(const LoadedConfig& model,
                                      const Checkpoint& checkpoint,
                                      const std::set<const StoredTensor*>& used) {
  std::vector<std::string> out;
  for (const std::string_view name : checkpoint.names()) {
    const StoredTensor* tensor = checkpoint.find(name);
    if (used.contains(tensor) || is_ignored(model, name)) continue;
    const auto may_ignore = model.weight_format->may_ignore;
    if (may_ignore != nullptr && may_ignore(checkpoint, *tensor)) continue;
    out.emplace_back(name);
  }
  return out;
}

StackPlace stack_of(const TensorEntry& entry) {
  if (!entry.spec->stacked) return {};
  return {.index = entry.expert, .count = entry.num_stacked, .is_flat = entry.spec->flat};
}

}  // namespace

bool is_of_task_head(const LoadedConfig& model, std::string_view name) {
  for (const HeadSpec& head : heads_of(model)) {
    if (head.task != model.task) continue;
    for (const HeadLayer& layer : head.layers) {
      for (const std::string_view part : {layer.weight, layer.bias, layer.norm, layer.norm_bias}) {
        if (ends_with(name, part)) return true;
      }
    }
  }
  return false;
}

bool is_ignored(const LoadedConfig& model, std::string_view name) {
  const Architecture& architecture = *model.architecture;
  const std::string_view inner = without("model.", name);
  const int32_t after =
      std::max(model.config.layers_after_last, model.text->ignores_layer_after_last ? 1 : 0);
  for (int32_t i = 0; i < after; ++i) {
    if (is_of_layer(model, name, int64_t{model.config.num_layers} + i)) return true;
  }
  if (is_of_idle_layer(model, name) || is_of_unread_expert(model, name)) return true;
  if (model.config.gives_vectors && is_of_a_head(model, name)) return true;
  const auto matches = [&](std::string_view pattern) {
    if (!pattern.ends_with('*')) return name.ends_with(pattern);
    return inner.starts_with(pattern.substr(0, pattern.size() - 1));
  };
  return std::ranges::any_of(architecture.ignored, matches) ||
         std::ranges::any_of(model.text->ignored, matches);
}

MatrixSpec matrix_spec(const LoadedConfig& model, const TensorEntry& entry) {
  return {.name = entry.name,
          .prefix = model.architecture->prefix,
          .rows = entry.rows,
          .cols = entry.cols,
          .transposed = entry.spec->transposed,
          .stack = stack_of(entry),
          .turns = entry.spec->turns,
          .kind = kind_of(entry.spec->role),
          .is_choice = is_choice(entry.spec->role)};
}

TensorSources match_checkpoint(const LoadedConfig& model,
                               const TensorTable& table,
                               const Checkpoint& stored) {
  std::optional<RespelledCheckpoint> renamed;
  if (!model.text->renames.empty()) renamed.emplace(stored, model.text->renames);
  const Checkpoint& checkpoint = renamed ? *renamed : stored;
  WeightProblems problems;
  TensorSources sources;
  std::set<const StoredTensor*> used;
  for (const TensorEntry& entry : table.entries()) {
    sources.push_back(match_entry(model, entry, checkpoint, problems));
    used.insert(sources.back().begin(), sources.back().end());
  }
  used.insert(find_tied_head(model, table, sources, checkpoint));
  for (auto* list : {&problems.missing, &problems.misshapen, &problems.unsupported})
    leave_first(*list);
  const std::vector<std::string> unused = unused_names(model, checkpoint, used);

  const std::string text =
      list_problem(problems.missing, "missing") + list_problem(problems.misshapen, "misshapen") +
      list_problem(unused, "not of this model") +
      list_problem(problems.unsupported, "of an element type that can't be used there");
  if (text.empty()) return sources;
  const bool only_types = problems.missing.empty() && problems.misshapen.empty() && unused.empty();
  throw Error(
      only_types ? Code::kUnsupported : Code::kInvalidArgument,
      fmt::format("the weights don't fit config.json ({}){}", model.config.architecture, text));
}

void check_weights(const LoadedConfig& model, const Checkpoint& checkpoint) {
  (void)match_checkpoint(model, TensorTable(model), checkpoint);
}

}  // namespace tgi
