#include "engine/model/model_weights.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "base/error.h"
#include "engine/model/weight_check.h"
#include "engine/model/weight_layout.h"

namespace tgi {
namespace {

float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16;
  const uint32_t exponent = (half >> 10) & 0x1FU;
  const uint32_t mantissa = half & 0x3FFU;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  // 31 is infinity or not a number, and 255 is that of a float.
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

// The bytes need not be aligned.
std::vector<float> to_floats(std::span<const std::byte> bytes, DType dtype) {
  std::vector<float> out(bytes.size() / dtype_size(dtype));
  for (size_t i = 0; i < out.size(); ++i) {
    const std::byte* element = bytes.data() + i * dtype_size(dtype);
    if (dtype == DType::kF32) {
      std::memcpy(&out[i], element, sizeof(float));
      continue;
    }
    uint16_t bits = 0;
    std::memcpy(&bits, element, sizeof bits);
    out[i] = dtype == DType::kF16 ? half_to_float(bits)
                                  : std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
  return out;
}

// How the matrices are to be held.
class StoragePlan {
 public:
  StoragePlan(const LoadedConfig& model,
              const LoadWeightsOptions& options,
              const TensorTable& table)
      : model_(model), options_(options), untied_(table.find(Role::kLmHead) != nullptr) {}

  // `entry` stands for all of a stacked matrix; `cols` are this rank's.
  MatrixStorage of(const TensorEntry& entry, Role role, int64_t cols) const {
    const bool is_embedding =
        role == Role::kPositionEmbedding || (role == Role::kTokenEmbedding && untied_);
    if (options_.quantization == Quantization::kNone || is_embedding) return options_.dtype;
    const bool is_head = role == Role::kTokenEmbedding || role == Role::kLmHead;
    const Quantization kind = is_head ? Quantization::kInt8 : options_.quantization;
    check_dense(entry);
    if (options_.group_size == 0) {
      return {kind, effective_group_size({.quantization = kind})};
    }
    if (cols % options_.group_size != 0) {
      throw Error(
          Code::kInvalidArgument,
          fmt::format("quantize group size {} does not divide the {} columns of {}{}; use one "
                      "that does, or 0 for the default",
                      options_.group_size, cols, entry.name, on_each_rank(entry, cols)));
    }
    return {kind, options_.group_size};
  }

 private:
  std::string on_each_rank(const TensorEntry& entry, int64_t cols) const {
    if (cols == entry.cols) return "";
    return fmt::format(" on each of {} ranks", options_.world_size);
  }

  void check_dense(const TensorEntry& entry) const {
    const std::string_view format = model_.weight_format->format_of(model_.json, entry.name);
    if (format == "dense") return;
    throw Error(
        Code::kInvalidArgument,
        fmt::format("quantize {}: {} is quantised in the checkpoint already (as {}); load it "
                    "without --quantize",
                    quantization_name(options_.quantization), entry.name, format));
  }

  const LoadedConfig& model_;
  const LoadWeightsOptions& options_;
  const bool untied_;
};

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
    return entry.spec->split == Split::kRows ? ranges(entry.spec->rows) : whole_range(entry.rows);
  }

  Range col_range(const TensorEntry& entry) const {
    return entry.spec->split == Split::kColumns ? ranges(entry.spec->cols).front()
                                                : whole_range(entry.cols).front();
  }

  // Of a vector: a bias is cut like the rows of its matrix. Empty when this rank holds none of it.
  std::vector<Range> vector_ranges(const TensorEntry& entry) const {
    if (entry.spec->split == Split::kRows) return ranges(entry.spec->cols);
    if (entry.spec->split == Split::kColumns && options_.rank != 0) return {};
    return whole_range(entry.cols);
  }

  int64_t num_rows(const TensorEntry& entry) const { return total(row_ranges(entry)); }

  // Rows and columns of a stacked matrix; no rows when the model has none of its parts.
  std::pair<int64_t, int64_t> stacked_size(std::span<const LinearPart> parts, int32_t layer) const {
    std::pair<int64_t, int64_t> size = {0, 0};
    for (const LinearPart& part : parts) {
      const TensorEntry* entry = table_.find(part.weight, layer);
      if (entry == nullptr) continue;
      size.first += num_rows(*entry);
      size.second = col_range(*entry).count;
    }
    return size;
  }

  // A stacked bias has an element per row if any of its parts has a bias on this rank.
  bool has_bias(std::span<const LinearPart> parts, int32_t layer) const {
    for (const LinearPart& part : parts) {
      const TensorEntry* entry = table_.find(part.bias, layer);
      if (entry != nullptr && !vector_ranges(*entry).empty()) return true;
    }
    return false;
  }

  static int64_t total(std::span<const Range> ranges) {
    int64_t count = 0;
    for (const Range& range : ranges) count += range.count;
    return count;
  }

 private:
  std::vector<Range> ranges(Dim dim) const {
    return rank_ranges(dim, model_.config, options_.rank, options_.world_size);
  }

  const LoadedConfig& model_;
  const LoadWeightsOptions& options_;
  const TensorTable table_;
};

class Planner {
 public:
  Planner(const LoadedConfig& model, const Device& device, const LoadWeightsOptions& options)
      : model_(model), device_(device), options_(options), view_(model, options) {}

  int64_t plan() {
    for (const ModelMatrix& row : kModelMatrices) add_matrix(row.role);
    for (const ModelVector& row : kModelVectors) add_vector(view_.table().find(row.role));
    for (int32_t layer = 0; layer < model_.config.num_layers; ++layer) {
      for (const LayerLinear& row : kLayerLinears) add_linear(row.parts, layer);
      for (const LayerVector& row : kLayerVectors) add_vector(view_.table().find(row.role, layer));
    }
    return size_bytes_;
  }

 private:
  int64_t matrix_bytes(const TensorEntry& entry, Role role, int64_t rows, int64_t cols) const {
    const std::string_view format = model_.weight_format->format_of(model_.json, entry.name);
    return device_.matrix_bytes(format, storage_.of(entry, role, cols), rows, cols);
  }

  void add_matrix(Role role) {
    const TensorEntry* entry = view_.table().find(role);
    if (entry == nullptr) return;
    const int64_t cols = view_.col_range(*entry).count;
    size_bytes_ += matrix_bytes(*entry, role, view_.num_rows(*entry), cols);
  }

  void add_vector(const TensorEntry* entry) {
    if (entry == nullptr) return;
    size_bytes_ += RankView::total(view_.vector_ranges(*entry)) * int64_t{sizeof(float)};
  }

  void add_linear(std::span<const LinearPart> parts, int32_t layer) {
    const auto [rows, cols] = view_.stacked_size(parts, layer);
    for (const LinearPart& part : parts) {
      const TensorEntry* entry = view_.table().find(part.weight, layer);
      if (entry == nullptr) continue;
      size_bytes_ += matrix_bytes(*entry, part.weight, rows, cols);
      break;
    }
    if (view_.has_bias(parts, layer)) size_bytes_ += rows * int64_t{sizeof(float)};
  }

  const LoadedConfig& model_;
  const Device& device_;
  const LoadWeightsOptions& options_;
  const RankView view_;
  const StoragePlan storage_{model_, options_, view_.table()};
  int64_t size_bytes_ = 0;
};

}  // namespace

// Copies a checkpoint to a device, one stacked matrix at a time: at no moment are the pages of more
// than one of them needed in both places.
class WeightLoader::Loader {
 public:
  Loader(const LoadedConfig& model,
         const Checkpoint& checkpoint,
         Device& device,
         const LoadWeightsOptions& options)
      : model_(model),
        checkpoint_(checkpoint),
        device_(device),
        options_(options),
        view_(model, options),
        sources_(match_checkpoint(model, view_.table(), checkpoint)) {}

  ModelWeights load() {
    ModelWeights weights = load_outer();
    for (int32_t layer = 0; layer < model_.config.num_layers; ++layer) {
      weights.layers[static_cast<size_t>(layer)] = load_layer(layer);
    }
    for (const TensorEntry& entry : view_.table().entries()) {
      weights.num_params += entry.rows * entry.cols;
    }
    weights.size_bytes = size_bytes_;
    weights.streamed_bytes_per_token = streamed_bytes_;
    return weights;
  }

  ModelWeights load_outer() {
    ModelWeights weights;
    for (const ModelMatrix& row : kModelMatrices) {
      const TensorEntry* entry = view_.table().find(row.role);
      if (entry == nullptr) continue;
      const std::array<const TensorEntry*, 1> one = {entry};
      weights.*row.target = load_matrix(one, row.role);
    }
    for (const ModelVector& row : kModelVectors) {
      weights.*row.target = load_vector(view_.table().find(row.role));
    }
    // Of the tables only the row of the token is read, unless the embedding is the head too.
    streamed_bytes_ -= weights.position_embedding ? weights.position_embedding->size_bytes : 0;
    streamed_bytes_ -= weights.untied_lm_head ? weights.token_embedding->size_bytes : 0;

    weights.layers.resize(static_cast<size_t>(model_.config.num_layers));
    return weights;
  }

  LayerWeights load_layer(int32_t layer) {
    LayerWeights out;
    for (const LayerLinear& row : kLayerLinears) out.*row.target = load_linear(row.parts, layer);
    for (const LayerVector& row : kLayerVectors) {
      out.*row.target = load_vector(view_.table().find(row.role, layer));
    }
    return out;
  }

 private:
  const std::vector<const StoredTensor*>& sources(const TensorEntry& entry) const {
    return sources_[static_cast<size_t>(&entry - view_.table().entries().data())];
  }

  void release(const TensorEntry& entry) const {
    for (const StoredTensor* tensor : sources(entry)) checkpoint_.release(*tensor);
  }

  void count(int64_t size_bytes) {
    size_bytes_ += size_bytes;
    streamed_bytes_ += size_bytes;
  }

  std::unique_ptr<Matrix> load_matrix(std::span<const TensorEntry* const> entries, Role role) {
    std::vector<HostWeight> pieces;
    for (const TensorEntry* entry : entries) {
      for (const Range& rows : view_.row_ranges(*entry)) {
        pieces.push_back(model_.weight_format->slice(model_.json, checkpoint_,
                                                     matrix_spec(model_, *entry), sources(*entry),
                                                     rows, view_.col_range(*entry)));
      }
    }
    const MatrixStorage storage = storage_.of(*entries.front(), role, pieces.front().cols);
    std::unique_ptr<Matrix> matrix = device_.make_matrix(pieces, storage);
    for (const TensorEntry* entry : entries) release(*entry);
    count(matrix->size_bytes);
    return matrix;
  }

  // This rank's elements of a vector.
  std::vector<float> read_vector(const TensorEntry& entry) const {
    const StoredTensor& tensor = *sources(entry).front();
    const std::vector<float> all = to_floats(checkpoint_.bytes(tensor), *tensor.dtype);
    checkpoint_.release(tensor);
    std::vector<float> out;
    for (const Range& range : view_.vector_ranges(entry)) {
      out.insert(out.end(), all.begin() + range.begin, all.begin() + range.begin + range.count);
    }
    return out;
  }

  DeviceVector to_device(std::span<const float> values, std::string_view purpose) {
    DeviceVector vector;
    const auto length = static_cast<int64_t>(values.size());
    vector.buffer = device_.allocate(values.size_bytes(), purpose);
    device_.copy_to_device(vector.buffer.data(), values.data(), values.size_bytes());
    vector.view = {vector.buffer.data(), DType::kF32, 1, length, length};
    count(static_cast<int64_t>(values.size_bytes()));
    return vector;
  }

  DeviceVector load_vector(const TensorEntry* entry) {
    if (entry == nullptr || view_.vector_ranges(*entry).empty()) return {};
    return to_device(read_vector(*entry), entry->name);
  }

  Linear load_linear(std::span<const LinearPart> parts, int32_t layer) {
    std::vector<const TensorEntry*> entries;
    std::vector<float> bias;  // zero where a part of a stack has none
    for (const LinearPart& part : parts) {
      const TensorEntry* entry = view_.table().find(part.weight, layer);
      if (entry == nullptr) continue;
      entries.push_back(entry);
      const TensorEntry* part_bias = view_.table().find(part.bias, layer);
      std::vector<float> values;
      if (part_bias != nullptr) values = read_vector(*part_bias);
      values.resize(static_cast<size_t>(view_.num_rows(*entry)), 0.0F);
      bias.insert(bias.end(), values.begin(), values.end());
    }
    Linear linear;
    if (entries.empty()) return linear;
    linear.weight = load_matrix(entries, parts.front().weight);
    if (view_.has_bias(parts, layer))
      linear.bias = to_device(bias, entries.front()->name + " bias");
    return linear;
  }

  const LoadedConfig& model_;
  const Checkpoint& checkpoint_;
  Device& device_;
  const LoadWeightsOptions& options_;
  const RankView view_;
  const StoragePlan storage_{model_, options_, view_.table()};
  const TensorSources sources_;
  int64_t size_bytes_ = 0;
  int64_t streamed_bytes_ = 0;
};

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
  const StoragePlan storage(model, options, view.table());
  const auto check = [&](Role role, int32_t layer) {
    const TensorEntry* entry = view.table().find(role, layer);
    if (entry != nullptr) (void)storage.of(*entry, role, view.col_range(*entry).count);
  };
  for (const ModelMatrix& row : kModelMatrices) check(row.role, -1);
  for (const LayerLinear& row : kLayerLinears) {
    for (const LinearPart& part : row.parts) check(part.weight, 0);
  }
}

int64_t plan_weight_bytes(const LoadedConfig& model,
                          const Device& device,
                          const LoadWeightsOptions& options) {
  return Planner(model, device, options).plan();
}

ModelWeights load_weights(const LoadedConfig& model,
                          const Checkpoint& checkpoint,
                          Device& device,
                          const LoadWeightsOptions& options) {
  return WeightLoader(model, checkpoint, device, options).load();
}

WeightLoader::WeightLoader(const LoadedConfig& model,
                           const Checkpoint& checkpoint,
                           Device& device,
                           const LoadWeightsOptions& options)
    : options_(options), loader_(std::make_unique<Loader>(model, checkpoint, device, options_)) {}

WeightLoader::~WeightLoader() = default;

ModelWeights WeightLoader::load() {
  return loader_->load();
}

ModelWeights WeightLoader::load_outer() {
  return loader_->load_outer();
}

LayerWeights WeightLoader::load_layer(int32_t layer) {
  return loader_->load_layer(layer);
}

}  // namespace tgi
