#include "engine/model/model_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"
#include "engine/model/adapter_sites.h"
#include "engine/model/host_weights.h"
#include "engine/model/rank_ranges.h"
#include "engine/model/rank_view.h"
#include "engine/model/storage_plan.h"
#include "engine/model/tensor_table.h"
#include "engine/model/weight_check.h"
#include "engine/model/weight_layout.h"
#include "engine/tensor/dense_weight.h"
#include "engine/tensor/weight_element.h"
#include "engine/weights/scratch.h"
#include "engine/weights/stored_indices.h"

namespace tgi {
namespace {

// Of `distance` from query to key. Source: T5 (https://arxiv.org/abs/1910.10683), where positions
// are seen on both sides.
int32_t distance_bucket(int32_t distance, int32_t num_buckets) {
  const int32_t half = num_buckets / 2;
  const int32_t exact = half / 2;
  const int32_t side = distance > 0 ? half : 0;
  const int32_t far = std::abs(distance);
  if (far < exact) return side + far;
  const float share = std::log(static_cast<float>(far) / static_cast<float>(exact)) /
                      std::log(static_cast<float>(kMaxDistance) / static_cast<float>(exact));
  const auto step = static_cast<int32_t>(share * static_cast<float>(half - exact));
  return side + std::min(exact + step, half - 1);
}

// Source: Griffin (https://arxiv.org/abs/2402.19427), section 2.4
constexpr float kRgLruExponent = -8.0F;

float softplus(float x) {
  return std::max(x, 0.0F) + std::log1p(std::exp(-std::abs(x)));
}

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
    weights.num_params = count_stored_parameters(view_.table());
    weights.size_bytes = size_bytes_;
    weights.streamed_bytes_per_token = streamed_bytes_;
    return weights;
  }

  ModelWeights load_outer() {
    ModelWeights weights;
    weights.dtype = options_.dtype;
    for (const ModelMatrix& row : kModelMatrices) {
      const TensorEntry* entry = view_.table().find(row.role);
      if (entry == nullptr) continue;
      const std::array<const TensorEntry*, 1> one = {entry};
      weights.*row.target = load_matrix(one, row.role);
    }
    for (const ModelLinear& row : kModelLinears) {
      weights.*row.target = load_linear(row.parts, kOutsideLayers);
    }
    for (const StreamLinear& row : kStreamLinears) {
      for (int32_t i = 0; i < num_further_streams(model_.config); ++i) {
        (weights.*row.target).push_back(load_linear(row.parts, kOutsideLayers, i));
      }
    }
    for (const ModelVector& row : kModelVectors) {
      weights.*row.target = load_vector(view_.table().find(row.role));
    }
    if (model_.config.sinusoids.steps > 0) weights.position_embedding = make_positions();
    if (const TensorEntry* scales = view_.table().find(Role::kRopeScales)) {
      weights.rope_scales = read_whole_vector(*scales);
    }
    weights.distance_bias = load_distance_bias();
    weights.distance_embedding = load_distance_embedding();
    // Only the token's row of each table is read, unless the embedding is the head too.
    const auto is_only_looked_up = [&](const std::unique_ptr<Matrix>& table) {
      if (table != nullptr) streamed_bytes_ -= table->size_bytes;
    };
    is_only_looked_up(weights.position_embedding);
    is_only_looked_up(weights.type_embedding);
    is_only_looked_up(weights.layer_input_table);
    if (weights.untied_lm_head || model_.config.gives_vectors) {
      is_only_looked_up(weights.token_embedding);
    }

    if (options_.takes_adapters) {
      weights.head_site = head_site(model_.config.num_layers);
      weights.embedding_site = embedding_site(model_.config.num_layers);
      give_outer_sites(weights);
    }
    weights.layers.resize(static_cast<size_t>(model_.config.num_layers));
    return weights;
  }

  LayerWeights load_layer(int32_t layer) {
    LayerWeights out;
    for (const LayerLinear& row : kLayerLinears) out.*row.target = load_linear(row.parts, layer);
    load_latent_up(layer, out);
    load_output_groups(layer, out);
    for (const HeadLinear& row : kHeadLinears) out.*row.target = load_heads(row.role, layer);
    for (const LayerLinear& row : kOtherLinears) out.*row.target = load_linear(row.parts, layer);
    for (const LayerLinear& row : kParameterLinears) {
      out.*row.target = load_linear(row.parts, layer);
    }
    for (const ExpertLinear& row : kExpertLinears) {
      out.*row.target = load_experts(row.parts, layer);
    }
    if (options_.takes_adapters) give_sites(layer, out);
    for (const LayerVector& row : kLayerVectors) {
      const TensorEntry* entry = view_.table().find(row.role, layer);
      if (entry != nullptr) out.*row.target = load_vector(entry);
    }
    for (const LayerVectorPair& row : kLayerVectorPairs) out.*row.target = load_pair(row, layer);
    out.experts_by_token = load_experts_by_token(layer);
    if (const TensorEntry* scale = view_.table().find(Role::kStreamScale, layer)) {
      out.stream_scale = read_vector(*scale).at(0);
    }
    if (view_.table().find(Role::kXieluAlphaP, layer) != nullptr) out.xielu = read_xielu(layer);
    if (view_.table().find(Role::kDifferenceQ1, layer) != nullptr) {
      out.difference = read_difference(layer);
    }
    return out;
  }

 private:
  void give_sites(int32_t layer, LayerWeights& out) const {
    size_t linear = 0;
    const auto give = [&](const LayerLinear& row) {
      (out.*row.target).site = site_of(layer, linear++);
    };
    std::ranges::for_each(kLayerLinears, give);
    std::ranges::for_each(kOtherLinears, give);
    out.key_up.first_site = latent_site(model_.config, layer, false, 0);
    out.value_up.first_site = latent_site(model_.config, layer, true, 0);
    for (size_t i = 0; i < kExpertLinears.size(); ++i) {
      (out.*kExpertLinears[i].target).first_site = expert_site(model_.config, layer, i, 0);
    }
  }

  void give_outer_sites(ModelWeights& out) const {
    for (size_t i = 0; i < kModelLinears.size(); ++i) {
      (out.*kModelLinears[i].target).site = model_site(model_.config.num_layers, i);
    }
    for (size_t i = 0; i < kStreamLinears.size(); ++i) {
      int32_t stream = 0;
      for (Linear& linear : out.*kStreamLinears[i].target) {
        linear.site = stream_site(model_.config, i, stream++);
      }
    }
  }

  const std::vector<const StoredTensor*>& sources(const TensorEntry& entry) const {
    return sources_[static_cast<size_t>(&entry - view_.table().entries().data())];
  }

  void release(const TensorEntry& entry) const {
    if (entry.expert + 1 < entry.num_stacked) return;  // it is needed again
    for (const StoredTensor* tensor : sources(entry)) checkpoint_.release(*tensor);
  }

  void count(int64_t size_bytes) {
    size_bytes_ += size_bytes;
    streamed_bytes_ += size_bytes;
  }

  std::unique_ptr<Matrix> load_matrix(std::span<const TensorEntry* const> entries, Role role) {
    std::vector<std::unique_ptr<Matrix>> parts;
    for (const MatrixPart& part :
         storage_.parts(entries, role, view_.col_range(*entries.front()))) {
      parts.push_back(load_part(part, role));
    }
    if (parts.size() == 1) return std::move(parts.front());
    return device_.stack_matrices(std::move(parts));
  }

  std::unique_ptr<Matrix> load_part(const MatrixPart& part, Role role) {
    std::vector<HostWeight> pieces;
    for (const TensorEntry* entry : part.entries) {
      for (const Range& rows : view_.row_ranges(*entry)) {
        pieces.push_back(model_.weight_format->slice(model_.json, checkpoint_,
                                                     matrix_spec(model_, *entry), sources(*entry),
                                                     rows, view_.col_range(*entry), part.storage));
      }
    }
    if (role == Role::kRouter) std::ranges::for_each(pieces, check_router);
    if (role == Role::kLmHead) {
      for (HostWeight& piece : pieces) piece = divided(piece, model_.config.head_division);
    }
    if (const TensorEntry* tasks = view_.table().find(Role::kTaskEmbedding);
        role == Role::kTypeEmbedding && tasks != nullptr) {
      const std::vector<float> of_all = read_whole_vector(*tasks);
      const auto first = std::span(of_all).first(static_cast<size_t>(tasks->cols));
      for (HostWeight& piece : pieces) piece = add_to_rows(piece, first);
    }
    std::unique_ptr<Matrix> matrix = device_.make_matrix(pieces, part.storage);
    for (const TensorEntry* entry : part.entries) release(*entry);
    count(matrix->size_bytes);
    return matrix;
  }

  // This rank's elements of a vector.
  std::vector<float> read_vector(const TensorEntry& entry) const {
    const std::vector<float> all = read_whole_vector(entry);
    std::vector<float> out;
    for (const Range& range : view_.vector_ranges(entry)) {
      out.insert(out.end(), all.begin() + range.begin, all.begin() + range.begin + range.count);
    }
    return out;
  }

  // Source: https://arxiv.org/abs/2410.05258, equation 2
  float read_difference(int32_t layer) const {
    const auto exponential = [&](Role q_role, Role k_role) {
      const std::vector<float> q = read_vector(*view_.table().find(q_role, layer));
      const std::vector<float> k = read_vector(*view_.table().find(k_role, layer));
      return std::exp(std::inner_product(q.begin(), q.end(), k.begin(), 0.0));
    };
    const double learned = exponential(Role::kDifferenceQ1, Role::kDifferenceK1) -
                           exponential(Role::kDifferenceQ2, Role::kDifferenceK2);
    const LayerPlan& plan = model_.config.layers[static_cast<size_t>(layer)];
    return static_cast<float>(learned + static_cast<double>(plan.first_difference));
  }

  XieluNumbers read_xielu(int32_t layer) const {
    const auto number = [&](Role role) {
      return read_vector(*view_.table().find(role, layer)).at(0);
    };
    const float beta = number(Role::kXieluBeta);
    return {.alpha_p = softplus(number(Role::kXieluAlphaP)),
            .alpha_n = beta + softplus(number(Role::kXieluAlphaN)),
            .beta = beta,
            .eps = number(Role::kXieluEps)};
  }

  // Of a tensor that holds the vectors of all experts, this one's.
  std::span<const std::byte> own_bytes(const TensorEntry& entry, const StoredTensor& tensor) const {
    const std::span<const std::byte> all = checkpoint_.bytes(tensor);
    if (entry.num_stacked == 0) return all;
    const size_t size = all.size() / static_cast<size_t>(entry.num_stacked);
    return all.subspan(static_cast<size_t>(entry.expert) * size, size);
  }

  std::vector<float> read_whole_vector(const TensorEntry& entry) const {
    std::vector<float> all;
    for (const StoredTensor* tensor : sources(entry)) {
      const std::vector<float> part = read_elements(own_bytes(entry, *tensor), *tensor->dtype);
      const Turns turns = entry.spec->turns;
      for (auto i = static_cast<size_t>(turns.index); i < part.size();
           i += static_cast<size_t>(turns.count)) {
        all.push_back(part[i]);
      }
    }
    release(entry);
    if (entry.spec->for_heads) all = for_heads(all, entry.head_dim);
    if (entry.spec->role == Role::kRopeScales) {
      for (float& value : all) value = std::exp(value);
    }
    const float offset = norm_offset_of(model_.config, entry.spec->role);
    if (offset != 0.0F) {
      for (float& value : all) value += offset;
    }
    // The router's norm gives rows of length 1 where the others give 1 a number.
    if (entry.spec->role == Role::kRouterNorm) {
      const float length = std::sqrt(static_cast<float>(model_.config.hidden_size));
      for (float& value : all) value /= length;
    }
    if (entry.spec->role == Role::kDecay) {
      for (float& value : all) value = static_cast<float>(-std::exp(static_cast<double>(value)));
    }
    if (entry.spec->role == Role::kDecayRate) {
      for (float& value : all) value = -value;
    }
    if (entry.spec->role == Role::kRgLruDecay) {
      for (float& value : all) value = kRgLruExponent * softplus(value);
    }
    return entry.per_channel == 0 ? all : by_number(all, entry.per_channel);
  }

  // Each number as often as a head has columns.
  static std::vector<float> for_heads(const std::vector<float>& values, int64_t head_dim) {
    std::vector<float> out;
    for (const float value : values) out.insert(out.end(), static_cast<size_t>(head_dim), value);
    return out;
  }

  // (channels, numbers) as (numbers, channels).
  static std::vector<float> by_number(const std::vector<float>& values, int64_t per_channel) {
    const auto num_numbers = static_cast<size_t>(per_channel);
    const size_t num_channels = values.size() / num_numbers;
    std::vector<float> out(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      out[i % num_numbers * num_channels + i / num_numbers] = values[i];
    }
    return out;
  }

  DeviceVector to_device(std::span<const float> values,
                         std::string_view purpose,
                         int64_t rows = 1) {
    DeviceVector vector;
    const auto length = static_cast<int64_t>(values.size());
    vector.buffer = device_.allocate(values.size_bytes(), purpose);
    device_.copy_to_device(vector.buffer.data(), values.data(), values.size_bytes());
    const int64_t cols = length / rows;
    vector.view = {vector.buffer.data(), DType::kF32, rows, cols, cols};
    count(static_cast<int64_t>(values.size_bytes()));
    return vector;
  }

  DeviceVector load_vector(const TensorEntry* entry) {
    if (entry == nullptr || view_.vector_ranges(*entry).empty()) return {};
    return to_device(read_vector(*entry), entry->name, std::max<int64_t>(entry->per_channel, 1));
  }

  DeviceVector load_pair(const LayerVectorPair& row, int32_t layer) {
    const TensorEntry* first = view_.table().find(row.first, layer);
    if (first == nullptr || view_.vector_ranges(*first).empty()) return {};
    std::vector<float> values = read_vector(*first);
    const std::vector<float> second = read_vector(*view_.table().find(row.second, layer));
    values.insert(values.end(), second.begin(), second.end());
    return to_device(values, first->name, 2);
  }

  std::unique_ptr<Matrix> make_positions() {
    const ModelConfig& config = model_.config;
    const std::vector<float> values =
        make_sinusoids(config.sinusoids, config.max_positions, config.hidden_size);
    const HostWeight weight = dense_weight("positions", values.data(), config.max_positions,
                                           config.hidden_size, config.hidden_size);
    auto matrix = device_.make_matrix(std::span(&weight, 1), MatrixStorage(options_.dtype));
    count(matrix->size_bytes);
    return matrix;
  }

  DeviceVector load_distance_bias() {
    const TensorEntry* entry = view_.table().find(Role::kDistanceBias);
    if (entry == nullptr) return {};
    const ModelConfig& config = model_.config;
    const std::vector<float> of_buckets = read_whole_vector(*entry);  // (heads, buckets)
    const auto num_buckets = static_cast<size_t>(config.distance_buckets);
    const int32_t num_heads = config.num_heads / options_.world_size;
    std::vector<float> out;
    for (int32_t head = 0; head < num_heads; ++head) {
      const size_t first = static_cast<size_t>(options_.rank * num_heads + head) * num_buckets;
      for (int32_t distance = -kMaxDistance; distance <= kMaxDistance; ++distance) {
        const auto bucket = static_cast<size_t>(distance_bucket(distance, config.distance_buckets));
        out.push_back(of_buckets[first + bucket]);
      }
    }
    return to_device(out, entry->name, num_heads);
  }

  DeviceVector load_distance_embedding() {
    const TensorEntry* entry = view_.table().find(Role::kDistanceEmbedding);
    if (entry == nullptr || !model_.config.distances.has_products()) return {};
    std::vector<float> rows = read_whole_vector(*entry);
    if (model_.config.distances.norms_rows) {
      const std::vector<float> weight = read_whole_vector(*view_.table().find(Role::kDistanceNorm));
      const std::vector<float> bias =
          read_whole_vector(*view_.table().find(Role::kDistanceNormBias));
      norm_rows(rows, weight, bias, model_.config.norm_eps);
    }
    return to_device(rows, entry->name, entry->rows);
  }

  // A token reads its row alone.
  DeviceIndices load_experts_by_token(int32_t layer) {
    const TensorEntry* entry = view_.table().find(Role::kExpertsByToken, layer);
    if (entry == nullptr) return {};
    const std::vector<int32_t> experts =
        read_indices(checkpoint_, *sources(*entry).front(), model_.config.experts.num_choices());
    const size_t size_bytes = experts.size() * sizeof(int32_t);
    DeviceIndices out{.buffer = device_.allocate(size_bytes, entry->name),
                      .rows = static_cast<int32_t>(entry->rows)};
    device_.copy_to_device(out.buffer.data(), experts.data(), size_bytes);
    size_bytes_ += static_cast<int64_t>(size_bytes);
    return out;
  }

  // A token reads as many of them as it is sent to.
  ExpertLinears load_experts(std::span<const LinearPart> parts, int32_t layer) {
    const int64_t streamed_before = streamed_bytes_;
    ExpertLinears out;
    const int32_t count = view_.num_experts(parts, layer);
    for (int32_t expert = 0; expert < count; ++expert) {
      out.each.push_back(load_linear(parts, layer, expert));
    }
    for (const Linear& expert : out.each) {
      out.views.push_back({.w = expert.weight.get(), .bias = expert.bias.get()});
    }
    if (count == 0) return out;
    const int64_t all = streamed_bytes_ - streamed_before;
    streamed_bytes_ = streamed_before + all / count * model_.config.experts.route.top_k;
    return out;
  }

  void load_latent_up(int32_t layer, LayerWeights& out) {
    const TensorEntry* entry = view_.table().find(Role::kLatentUp, layer);
    if (entry == nullptr) return;
    const int32_t kept = latent_kept_dim(model_.config, layer);
    const int32_t value_dim = model_.config.latent.value_dim;
    const MatrixStorage storage = storage_.of_heads();
    const auto add = [&](HeadMatrices& heads, Range rows, bool transposes) {
      HostWeight piece = model_.weight_format->slice(
          model_.json, checkpoint_, matrix_spec(model_, *entry), sources(*entry), rows,
          whole_range(entry->cols).front(), MatrixStorage(options_.dtype));
      if (transposes) piece = transpose(std::move(piece));
      heads.each.push_back(device_.make_matrix(std::span(&piece, 1), storage));
      heads.views.push_back(heads.each.back().get());
      count(heads.each.back()->size_bytes);
    };
    const Range mine = view_.row_ranges(*entry).front();
    for (int64_t row = mine.begin; row < mine.begin + mine.count; row += kept + value_dim) {
      add(out.key_up, {.begin = row, .count = kept}, true);
      add(out.value_up, {.begin = row + kept, .count = value_dim}, false);
    }
    release(*entry);
  }

  void load_output_groups(int32_t layer, LayerWeights& out) {
    const TensorEntry* entry = view_.table().find(Role::kOutputGroups, layer);
    if (entry == nullptr) return;
    const int64_t rank = model_.config.entries.output_rank;
    HeadMatrices& groups = out.output_groups;
    for (int64_t row = 0; row < entry->rows; row += rank) {
      const HostWeight piece = model_.weight_format->slice(
          model_.json, checkpoint_, matrix_spec(model_, *entry), sources(*entry),
          {.begin = row, .count = rank}, whole_range(entry->cols).front(),
          MatrixStorage(options_.dtype));
      groups.each.push_back(device_.make_matrix(std::span(&piece, 1), storage_.of_heads()));
      groups.views.push_back(groups.each.back().get());
      count(groups.each.back()->size_bytes);
    }
    release(*entry);
  }

  HeadMatrices load_heads(Role role, int32_t layer) {
    HeadMatrices out;
    const int32_t num_heads = view_.num_heads(role, layer);
    const MatrixStorage storage = storage_.of_heads();
    for (int32_t head = 0; head < num_heads; ++head) {
      const TensorEntry& entry = *view_.table().find(role, layer, head);
      const HostWeight piece = model_.weight_format->slice(
          model_.json, checkpoint_, matrix_spec(model_, entry), sources(entry),
          whole_range(entry.rows).front(), whole_range(entry.cols).front(),
          MatrixStorage(options_.dtype));
      out.each.push_back(device_.make_matrix(std::span(&piece, 1), storage));
      out.views.push_back(out.each.back().get());
      count(out.each.back()->size_bytes);
      release(entry);
    }
    return out;
  }

  // Of layers that share it, once.
  std::shared_ptr<Matrix> load_stack(std::span<const TensorEntry* const> entries, Role role) {
    if (!is_of_shared_layer(*entries.front()->spec, model_.config))
      return load_matrix(entries, role);
    std::weak_ptr<Matrix>& held = shared_[RankView::stack_name(entries)];
    std::shared_ptr<Matrix> matrix = held.lock();
    if (matrix != nullptr) {
      streamed_bytes_ += matrix->size_bytes;
      return matrix;
    }
    matrix = load_matrix(entries, role);
    held = matrix;
    return matrix;
  }

  // index: of an expert or of a further stream.
  Linear load_linear(std::span<const LinearPart> parts, int32_t layer, int32_t index = 0) {
    const std::vector<const TensorEntry*> entries = view_.entries(parts, layer, index);
    std::vector<float> bias;  // zero where a part of a stack has none
    for (const LinearPart& part : parts) {
      const TensorEntry* entry = view_.table().find(part.weight, layer, index);
      if (entry == nullptr) continue;
      const TensorEntry* part_bias = view_.table().find(part.bias, layer, index);
      std::vector<float> values;
      if (part_bias != nullptr) values = read_vector(*part_bias);
      values.resize(static_cast<size_t>(view_.num_rows(*entry)), 0.0F);
      bias.insert(bias.end(), values.begin(), values.end());
    }
    Linear linear;
    if (entries.empty()) return linear;
    linear.weight = load_stack(entries, parts.front().weight);
    if (view_.has_bias(parts, layer))
      linear.bias = to_device(bias, entries.front()->name + " bias");
    return linear;
  }

  const LoadedConfig& model_;
  const Checkpoint& checkpoint_;
  Device& device_;
  const LoadWeightsOptions& options_;
  const RankView view_;
  const StoragePlan storage_{model_, options_, device_.info().keeps, view_.table()};
  const TensorSources sources_;
  std::map<std::string, std::weak_ptr<Matrix>> shared_;  // by RankView::stack_name
  int64_t size_bytes_ = 0;
  int64_t streamed_bytes_ = 0;
};

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

WeightLoader::~WeightLoader() {
  release_scratch();
}

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
