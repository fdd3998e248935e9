// Transformer: scores that have products with what was learned of distances
// (https://arxiv.org/abs/2006.03654). The keys and queries of distances are the same for all
// tokens, so they are made once and stand as matrices: what a step multiplies with them, attention
// picks from by the distance of each two tokens.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "engine/model/transformer.h"
#include "engine/tensor/dense_weight.h"

namespace tgi {
namespace {

// By distance from query to key, from 1 - num_positions on.
std::vector<int32_t> kinds_of_distances(const DistanceConfig& distances, int32_t num_positions) {
  const int32_t half = distances.num_kinds / 2;
  const int32_t exact = half / 2;
  std::vector<int32_t> out;
  for (int32_t distance = 1 - num_positions; distance < num_positions; ++distance) {
    int32_t far = std::abs(distance);
    if (distances.log_reach > 0 && far > exact) {
      const double all = std::log(static_cast<double>(distances.log_reach - 1) / exact);
      const double share = std::log(static_cast<double>(far) / exact) / all;
      far = exact + static_cast<int32_t>(std::ceil(share * (exact - 1)));
    }
    // Later keys have lower kinds.
    out.push_back(std::clamp(distance > 0 ? half - far : half + far, 0, distances.num_kinds - 1));
  }
  return out;
}

}  // namespace

// REQUIRES: nothing is in the workspace. The heads' rows are those of the linear from `first_row`.
HeadMatrices Transformer::make_heads(const Linear& linear, int64_t first_row) {
  const Tensor& embedding = *weights_.distance_embedding.get();
  const int64_t width = int64_t{num_heads_} * config_.head_dim;
  std::vector<float> values(static_cast<size_t>(embedding.rows * width));
  for (int64_t begin = 0; begin < embedding.rows;) {
    const int64_t count = std::min(embedding.rows - begin, workspace_.qkv.rows);
    const Tensor x{
        static_cast<std::byte*>(embedding.data) + begin * embedding.stride * int64_t{sizeof(float)},
        DType::kF32, count, embedding.cols, embedding.stride};
    const Tensor out = workspace_.qkv.first_rows(count).columns(0, linear.weight->rows);
    device_.matmul({.x = x, .w = linear.weight.get(), .bias = linear.bias.get(), .out = out});
    for (int64_t row = 0; row < count; ++row) {
      const auto* from = static_cast<const float*>(out.data) + row * out.stride + first_row;
      device_.copy_to_host(values.data() + (begin + row) * width, from,
                           static_cast<size_t>(width) * sizeof(float));
    }
    begin += count;
  }
  HeadMatrices heads;
  for (int64_t head = 0; head < num_heads_; ++head) {
    const HostWeight weight = dense_weight("distances", values.data() + head * config_.head_dim,
                                           embedding.rows, config_.head_dim, width);
    heads.each.push_back(device_.make_matrix(std::span(&weight, 1), MatrixStorage(weights_.dtype)));
    heads.views.push_back(heads.each.back().get());
  }
  return heads;
}

void Transformer::make_distances() {
  const DistanceConfig& distances = config_.distances;
  distance_kinds_ = kinds_of_distances(distances, config_.max_positions);
  const int64_t q_size = int64_t{num_heads_} * config_.head_dim;
  const auto add = [&](bool has_them, const Linear& own, const Linear& shared, int64_t first,
                       std::vector<HeadMatrices>& out) {
    if (!has_them) return;
    out.push_back(distances.shares_projections ? make_heads(shared, first) : make_heads(own, 0));
  };
  for (const LayerWeights& layer : weights_.layers) {
    add(distances.has_keys, layer.distance_key, layer.qkv, q_size, distance_keys_);
    add(distances.has_queries, layer.distance_query, layer.qkv, 0, distance_queries_);
  }
}

// Without kinds where scores have no such products.
DistanceProducts Transformer::multiply_distances(int32_t layer, const Tensor& q, const Tensor& k) {
  const DistanceConfig& distances = config_.distances;
  if (!distances.has_products()) return {};
  DistanceProducts out{.num_kinds = distances.num_kinds, .kinds = distance_kinds_};
  const auto multiply = [&](const std::vector<HeadMatrices>& heads, const Tensor& x,
                            const Tensor& all, Tensor& product) {
    if (heads.empty()) return;
    product = all.first_rows(x.rows);
    device_.head_matmul({.heads = heads[static_cast<size_t>(layer)].views,
                         .x_step = config_.head_dim,
                         .out_step = distances.num_kinds,
                         .x = x,
                         .out = product});
  };
  multiply(distance_keys_, q, workspace_.of_queries, out.of_queries);
  multiply(distance_queries_, k, workspace_.of_keys, out.of_keys);
  return out;
}

}  // namespace tgi
