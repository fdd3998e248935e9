#include "engine/lora/merged_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"
#include "engine/lora/module_sites.h"
#include "engine/lora/row_products.h"
#include "engine/tensor/half.h"
#include "engine/tensor/weight_element.h"

namespace tgi {
namespace {

constexpr int64_t kBlockRows = 64;

void store(float value, DType dtype, std::byte* to) {
  if (dtype == DType::kF32) {
    std::memcpy(to, &value, sizeof value);
    return;
  }
  const uint16_t bits = dtype == DType::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
  std::memcpy(to, &bits, sizeof bits);
}

[[noreturn]] void refuse(const AdapterLinear& linear, std::string_view problem) {
  throw Error(Code::kUnsupported,
              fmt::format("{}: can't be merged into the weights: {}", linear.module, problem));
}

}  // namespace

// Where things of the model are in its checkpoint.
class MergedWeights::Finder {
 public:
  Finder(const LoadedConfig& model, const Checkpoint& base)
      : model_(model), base_(base), table_(model), sites_(model) {}

  const StoredTensor& weight(const AdapterLinear& linear) const {
    const ModuleTarget& module = target(linear);
    const StoredTensor& found = stored(linear, module.name);
    TGI_CHECK(found.num_elements() >= module.first + module.outputs * module.inputs);
    return found;
  }
  // Of the tensor that `weight` gives.
  int64_t first_element(const AdapterLinear& linear) const { return target(linear).first; }
  const StoredTensor& bias(const AdapterLinear& linear) const {
    const ModuleTarget* target = sites_.find(linear.module + ".bias");
    if (target == nullptr) {
      refuse(linear, "the adapter brings a bias, and the model's linear has none");
    }
    return stored(linear, target->name);
  }
  bool has_bias(const AdapterLinear& linear) const {
    return sites_.find(linear.module + ".bias") != nullptr;
  }
  bool is_transposed(const AdapterLinear& linear) const {
    const SitePart& part = linear.parts.front();
    if (part.role == Role::kTokenEmbedding) return true;
    const TensorEntry* entry = table_.find(part.role, part.layer, part.index());
    return entry != nullptr && entry->spec->transposed;
  }

 private:
  const ModuleTarget& target(const AdapterLinear& linear) const {
    const SitePart& part = linear.parts.front();
    return part.expert == SitePart::kNone ? *sites_.find(linear.module)
                                          : sites_.expert_target(part);
  }
  const StoredTensor& stored(const AdapterLinear& linear, const std::string& name) const {
    const StoredTensor* found = find_by_any_name(base_, name, model_.architecture->prefix);
    if (found == nullptr || !found->dtype || base_.random_key(*found)) {
      refuse(linear, fmt::format("the model's folder holds no numbers of {}", name));
    }
    return *found;
  }

  const LoadedConfig& model_;
  const Checkpoint& base_;
  const TensorTable table_;
  const ModuleSites sites_;
};

MergedWeights::MergedWeights(std::unique_ptr<Checkpoint> base,
                             const AdapterFiles& adapter,
                             const LoadedConfig& model,
                             int num_threads)
    : base_(std::move(base)), adapter_(adapter), num_threads_(num_threads) {
  if (model.weight_format->is_quantised) {
    throw Error(
        Code::kUnsupported,
        fmt::format("an adapter can't be merged into weights that are quantised ({}); merge "
                    "it into the model that they were made of, and quantise that",
                    model.weight_format->name));
  }
  const Finder find(model, *base_);
  for (const AdapterLinear& linear : adapter.linears) add_linear(linear, model, find);
}

void MergedWeights::add_linear(const AdapterLinear& linear,
                               const LoadedConfig& model,
                               const Finder& find) {
  const Role role = linear.parts.front().role;
  const bool is_tied = role == Role::kTokenEmbedding || role == Role::kLmHead;
  if (is_tied && model.config.tied_embeddings) {
    refuse(linear, fmt::format("the head is the embedding in this model, and the adapter changes "
                               "the {} alone",
                               role == Role::kTokenEmbedding ? "embedding" : "head"));
  }
  if (linear.a || !linear.gain.empty()) {
    changes_[&find.weight(linear)].push_back({.linear = &linear,
                                              .is_transposed = find.is_transposed(linear),
                                              .first = find.first_element(linear)});
  }
  const bool is_scaled = !linear.gain.empty() && find.has_bias(linear);
  if (is_scaled || !linear.offset.empty()) {
    changes_[&find.bias(linear)].push_back({.linear = &linear, .is_bias = true});
  }
}

const StoredTensor* MergedWeights::find(std::string_view name) const {
  return base_->find(name);
}

std::vector<std::string_view> MergedWeights::names() const {
  return base_->names();
}

std::optional<RandomKey> MergedWeights::random_key(const StoredTensor& tensor) const {
  return base_->random_key(tensor);
}

std::span<const std::byte> MergedWeights::bytes(const StoredTensor& tensor) const {
  const auto change = changes_.find(&tensor);
  if (change == changes_.end()) return base_->bytes(tensor);
  const std::lock_guard lock(mutex_);
  auto it = merged_.find(&tensor);
  if (it == merged_.end()) {
    it = merged_.emplace(&tensor, merged(tensor, change->second)).first;
    base_->release(tensor);
  }
  return it->second;
}

void MergedWeights::release(const StoredTensor& tensor) const {
  if (!changes_.contains(&tensor)) return base_->release(tensor);
  const std::lock_guard lock(mutex_);
  merged_.erase(&tensor);
}

std::vector<std::byte> MergedWeights::merged(const StoredTensor& tensor,
                                             std::span<const Change> changes) const {
  if (changes.front().is_bias) return merged_bias(tensor, *changes.front().linear);
  const auto stored = base_->bytes(tensor);
  std::vector<std::byte> out(stored.begin(), stored.end());
  for (const Change& change : changes) merge(tensor, change, out.data());
  return out;
}

// Changes `out` (all of the tensor) in place.
void MergedWeights::merge(const StoredTensor& tensor, const Change& change, std::byte* out) const {
  const AdapterLinear& linear = *change.linear;
  const int64_t rank = linear.rank;
  // What is added is left (rows, rank) times right (rank, cols).
  const bool is_transposed = change.is_transposed;
  const Factor left_factor = is_transposed ? linear.a.transposed() : linear.b;
  const Factor right_factor = is_transposed ? linear.b.transposed() : linear.a;
  const std::vector<float> left = read_factor(*adapter_.tensors, left_factor);
  const std::vector<float> right = read_factor(*adapter_.tensors, right_factor);
  const int64_t rows = left_factor.rows;
  const int64_t cols = right_factor.cols;
  const DType dtype = *tensor.dtype;
  const size_t size = dtype_size(dtype);
  out += static_cast<size_t>(change.first) * size;
  parallel_for(num_threads_, (rows + kBlockRows - 1) / kBlockRows, [&](int64_t block) {
    const int64_t first = block * kBlockRows;
    const int64_t count = std::min(kBlockRows, rows - first);
    std::vector<float> added(static_cast<size_t>(count * cols));
    multiply_rows(1, left.data() + first * rank, count, rank,
                  {.data = right.data(), .stride = cols}, cols, added.data());
    for (int64_t i = 0; i < count * cols; ++i) {
      const int64_t row = first + i / cols;
      const auto output = static_cast<size_t>(is_transposed ? i % cols : row);
      const int64_t at = first * cols + i;
      float value = read_element(out, dtype, at) + linear.scale * added[static_cast<size_t>(i)];
      if (!linear.gain.empty()) value *= linear.gain[output];
      store(value, dtype, out + static_cast<size_t>(at) * size);
    }
  });
}

std::vector<std::byte> MergedWeights::merged_bias(const StoredTensor& tensor,
                                                  const AdapterLinear& linear) const {
  std::vector<float> values = read_elements(base_->bytes(tensor), *tensor.dtype);
  const size_t size = dtype_size(*tensor.dtype);
  std::vector<std::byte> out(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!linear.gain.empty()) values[i] *= linear.gain[i];
    if (!linear.offset.empty()) values[i] += linear.offset[i];
    store(values[i], *tensor.dtype, out.data() + i * size);
  }
  return out;
}

}  // namespace tgi
