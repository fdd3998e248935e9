// ReferenceDevice: attention, with keys and values apart or one latent for both.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "engine/cpu/cpu_device_internal.h"
#include "engine/cpu/panel_layout.h"
#include "engine/cpu/plain_matrix.h"
#include "engine/cpu/reference_device.h"
#include "engine/cpu/reference_values.h"
#include "engine/cpu/rope_table.h"
#include "engine/tensor/cache_codes.h"

namespace tgi {
namespace {

void norm_head(
    NormKind kind, float* head, const float* weight, const float* bias, double eps, int64_t count) {
  double mean = 0.0;
  for (int64_t i = 0; i < count && kind == NormKind::kLayer; ++i) {
    mean += static_cast<double>(head[i]) / static_cast<double>(count);
  }
  double squares = 0.0;
  for (int64_t i = 0; i < count; ++i) squares += (head[i] - mean) * (head[i] - mean);
  const double inverse = 1.0 / std::sqrt(squares / static_cast<double>(count) + eps);
  for (int64_t i = 0; i < count; ++i) {
    const double shift = bias == nullptr ? 0.0 : bias[i];
    head[i] = static_cast<float>((head[i] - mean) * inverse * weight[i] + shift);
  }
}

void rotate_head(float* head, const RopeSpec& rope, const std::vector<float>& cos_sin) {
  const auto half = static_cast<size_t>(rope.rotary_dim) / 2;
  for (size_t i = 0; i < half; ++i) {
    float& a = head[rope.interleaved ? 2 * i : i];
    float& b = head[rope.interleaved ? 2 * i + 1 : i + half];
    const double cosine = cos_sin[i];
    const double sine = cos_sin[half + i];
    const double x = a;
    const double y = b;
    a = static_cast<float>(x * cosine - y * sine);
    b = static_cast<float>(y * cosine + x * sine);
  }
}

double query_scale(const PositionScale& scale, int32_t position) {
  const double exact_spans = static_cast<double>(position + scale.offset) / scale.positions;
  if (scale.power != 0.0F) return std::pow(1.0 + exact_spans, static_cast<double>(scale.power));
  const double spans = std::floor(exact_spans);
  return 1.0 + static_cast<double>(scale.beta) * std::log(1.0 + spans);
}

// Of the q of head h.
template <typename Args>
double query_factor(const Args& args, int64_t h, int32_t position) {
  const double scale = query_scale(args.query_scale, position);
  if (args.head_scales == nullptr) return scale;
  return scale *
         (at(*args.head_scales, 0, h) * std::log(1.0 + position) + at(*args.head_scales, 1, h));
}

}  // namespace

void ReferenceDevice::keep(const float* row, int64_t count, float* cached) const {
  const bool is_int8 = kv_.dtype == DType::kInt8;
  const Int8Scale int8 = is_int8 ? int8_scale({row, static_cast<size_t>(count)}) : Int8Scale();
  for (int64_t d = 0; d < count; ++d) {
    cached[d] = is_int8 ? int8.code(row[d]) * int8.scale : round_to(kv_.dtype, row[d]);
  }
}

void ReferenceDevice::qk_norm_rope_store_kv(const QkvArgs& args) {
  const int64_t dim = args.head_dim;
  for_tokens([&](size_t sequence, int32_t row, int64_t position) {
    float* const heads = mutable_row_of(args.qkv, row);
    std::vector<float> cos_sin;
    if (args.rope >= 0) {
      const RopeSpec& rope = ropes_[static_cast<size_t>(args.rope)];
      cos_sin.resize(static_cast<size_t>(rope.rotary_dim));
      fill_cos_sin(rope, batch_->positions[static_cast<size_t>(row)], cos_sin.data());
    }
    const auto norm = [&](int32_t h) {
      const float* weight = head_norm_weight(args, h);
      if (weight == nullptr) return;
      norm_head(args.norm_kind, heads + h * dim, weight, head_norm_bias(args, h),
                static_cast<double>(args.norm_eps), dim);
    };
    for (int64_t i = 0; args.clip > 0.0F && i < args.qkv.cols; ++i) {
      heads[i] = std::min(std::max(heads[i], -args.clip), args.clip);
    }
    for (int32_t h = 0; h < args.num_heads + args.num_kv_heads; ++h) {
      if (!args.norm_after_rope) norm(h);
      if (args.rope >= 0) {
        rotate_head(heads + h * dim + args.first_rotated, ropes_[static_cast<size_t>(args.rope)],
                    cos_sin);
      }
      if (args.norm_after_rope) norm(h);
    }
    for (int64_t i = 0; i < args.num_heads * dim; ++i) {
      const double factor =
          query_factor(args, i / dim, batch_->positions[static_cast<size_t>(row)]);
      heads[i] = static_cast<float>(static_cast<double>(heads[i]) * factor);
    }
    const float* const k = heads + args.num_heads * dim;
    float* const v = heads + int64_t{args.num_heads + args.num_kv_heads} * dim;
    const int64_t value_cols = args.value_cols();
    for (int32_t h = 0; args.v_norm != nullptr && h < args.num_kv_heads; ++h) {
      norm_head(args.norm_kind, v + h * value_cols, args.v_norm->as<const float>(), nullptr,
                static_cast<double>(args.norm_eps), value_cols);
    }
    for (int32_t h = 0; h < args.num_kv_heads; ++h) {
      keep(k + h * dim, dim, cached(keys_, args.place, h, sequence, position));
      if (args.keys_only) continue;
      keep(v + h * value_cols, value_cols, cached(values_, args.place, h, sequence, position));
    }
  });
}

void ReferenceDevice::rotate_and_store_latent(const LatentArgs& args) {
  const RopeSpec rope = args.rope < 0 ? RopeSpec() : ropes_[static_cast<size_t>(args.rope)];
  const int64_t rotated = rope.rotary_dim;
  const int64_t dim = args.kept_dim + rotated;
  std::vector<float> cos_sin(static_cast<size_t>(rotated));
  for_tokens([&](size_t sequence, int32_t row, int64_t position) {
    const int32_t own_position = batch_->positions[static_cast<size_t>(row)];
    fill_cos_sin(rope, own_position, cos_sin.data());
    for (int64_t i = 0; i < args.num_heads * dim; ++i) {
      put(args.q, row, i, at(args.q, row, i) * query_factor(args, i / dim, own_position));
    }
    for (int64_t h = 0; h < args.num_heads; ++h) {
      float* const to =
          mutable_row_of(args.latent_q, row) + h * (args.latent_dim + rotated) + args.latent_dim;
      std::copy_n(row_of(args.q, row) + h * dim + args.kept_dim, rotated, to);
      rotate_head(to, rope, cos_sin);
    }
    if (args.key.data == nullptr) return;
    float* const key = mutable_row_of(args.key, row);
    rotate_head(key + args.latent_dim, rope, cos_sin);
    keep(key, args.key.cols, cached(keys_, args.place, 0, sequence, position));
  });
}

void ReferenceDevice::compress(const CompressArgs& args) {
  const int64_t values = args.row_values();
  for_tokens([&](size_t sequence, int32_t row, int64_t position) {
    keep(row_of(args.x, row), args.x.cols, cached(keys_, args.rows, 0, sequence, position));
    const int64_t run = args.tokens_per_entry;
    if ((position + 1) % run != 0) return;
    const int64_t begin = position + 1 - run;
    std::vector<float> entry(static_cast<size_t>(args.head_dim));
    for (int64_t d = 0; d < args.head_dim; ++d) {
      std::vector<double> gates;
      std::vector<double> numbers;
      // `column` of a token's values, and of its gates.
      const auto add = [&](int64_t first, int64_t column) {
        for (int64_t i = 0; first >= 0 && i < run; ++i) {
          const float* const from = cached(keys_, args.rows, 0, sequence, first + i);
          numbers.push_back(from[column]);
          gates.push_back(static_cast<double>(from[values + column]) +
                          at(*args.gate_bias, 0, i * values + column));
        }
      };
      if (args.overlaps) add(begin - run, d);
      add(begin, args.overlaps ? args.head_dim + d : d);
      const double highest = *std::ranges::max_element(gates);
      double sum = 0.0;
      double total = 0.0;
      for (size_t i = 0; i < gates.size(); ++i) {
        const double weight = std::exp(gates[i] - highest);
        sum += weight * numbers[i];
        total += weight;
      }
      entry[static_cast<size_t>(d)] = static_cast<float>(sum / total);
    }
    norm_head(NormKind::kRms, entry.data(), args.norm->as<const float>(), nullptr,
              static_cast<double>(args.norm_eps), args.head_dim);
    if (args.rope >= 0) {
      const RopeSpec& rope = ropes_[static_cast<size_t>(args.rope)];
      std::vector<float> cos_sin(static_cast<size_t>(rope.rotary_dim));
      const auto behind = static_cast<int32_t>(run - 1);
      fill_cos_sin(rope, batch_->positions[static_cast<size_t>(row)] - behind, cos_sin.data());
      rotate_head(entry.data() + args.first_rotated, rope, cos_sin);
    }
    keep(entry.data(), args.head_dim, cached(keys_, args.entries, 0, sequence, position));
  });
}

void ReferenceDevice::head_matmul(const HeadMatmulArgs& args) {
  for (size_t h = 0; h < args.heads.size(); ++h) {
    const auto head = static_cast<int64_t>(h);
    const Matrix& w = *args.heads[h];
    matmul({.x = args.x.columns(head * args.x_step, w.cols),
            .w = &w,
            .out = args.out.columns(head * args.out_step, w.rows)});
  }
}

// Of query and key with what was learned of their distance.
double ReferenceDevice::distance_products(const AttentionArgs& args,
                                          size_t sequence,
                                          int32_t row,
                                          int64_t key,
                                          int32_t head,
                                          int64_t distance) const {
  if (args.distance_products == nullptr) return 0.0;
  const DistanceProducts& products = *args.distance_products;
  const int64_t reach = std::ssize(products.kinds) / 2;
  const int64_t col =
      int64_t{head} * products.num_kinds + products.kinds[static_cast<size_t>(distance + reach)];
  double sum = 0.0;
  if (products.of_queries.rows > 0) sum += at(products.of_queries, row, col);
  if (products.of_keys.rows > 0) {
    sum += at(products.of_keys, batch_->cu_seqlens_q[sequence] + key, col);
  }
  return sum;
}

// What a query sees, in order: tokens, and behind them entries.
std::vector<ReferenceDevice::SeenKey> ReferenceDevice::seen_keys(
    const AttentionArgs& args, size_t sequence, int32_t row, int64_t position, int32_t head) const {
  int64_t first =
      args.sliding_window == 0 ? 0 : std::max<int64_t>(0, position - args.sliding_window + 1);
  if (args.attention_chunk > 0) first = std::max(first, position - position % args.attention_chunk);
  int64_t last = position;
  if (!args.is_causal) {
    last = batch_->context_lens[sequence] - 1;
    if (args.sliding_window > 0) last = std::min(last, position + args.sliding_window - 1);
  }
  const bool has_entries = args.entries.tokens_per_entry > 0;
  std::vector<SeenKey> out;
  for (int64_t j = first; j <= last; ++j) {
    if (has_entries || sees(args, row, head, j))
      out.push_back({.place = args.place, .position = j});
  }
  const int64_t num_entries = has_entries ? args.entries.count(position) : 0;
  for (int64_t entry = 0; entry < num_entries; ++entry) {
    if (!sees(args, row, head, entry)) continue;
    out.push_back({.place = args.entries.place, .position = args.entries.position_of(entry)});
  }
  return out;
}

void ReferenceDevice::attend(
    const AttentionArgs& args, size_t sequence, int32_t row, int64_t position, int32_t head) {
  const int32_t kv_head = head / (args.num_heads / args.num_kv_heads);
  const std::vector<SeenKey> seen = seen_keys(args, sequence, row, position, head);
  std::vector<double> weights;
  const double sink =
      args.sinks == nullptr ? -std::numeric_limits<double>::infinity() : at(*args.sinks, 0, head);
  double highest = sink;
  for (const SeenKey& key : seen) {
    const int64_t j = key.position;
    const float* k = cached(keys_, key.place, kv_head, sequence, j);
    double score = 0.0;
    for (int64_t d = 0; d < args.head_dim; ++d) {
      const float q = row_of(args.q, row)[head * args.head_dim + d];
      const bool rounds = panel_type(kv_.dtype) == PanelType::kBF16;
      score += double{rounds ? round_to(DType::kBF16, q) : q} * static_cast<double>(k[d]);
    }
    score += distance_products(args, sequence, row, j, head, j - position);
    score = cap(score * static_cast<double>(args.scale), static_cast<double>(args.softcap));
    if (args.alibi_slopes != nullptr) {
      score -= at(*args.alibi_slopes, 0, head) * std::abs(static_cast<double>(j - position));
    }
    if (args.distance_bias != nullptr) {
      const int64_t reach = args.distance_bias->cols / 2;
      score += at(*args.distance_bias, head, std::clamp(j - position, -reach, reach) + reach);
    }
    highest = std::max(highest, score);
    weights.push_back(score);
  }
  double total = std::exp(sink - highest);
  for (double& weight : weights) {
    weight = std::exp(weight - highest);
    total += weight;
  }
  std::vector<float>& values = args.latent_dim > 0 ? keys_ : values_;
  for (int64_t d = 0; d < args.value_cols(); ++d) {
    double sum = 0.0;
    for (size_t i = 0; i < seen.size(); ++i) {
      sum += weights[i] * static_cast<double>(cached(values, seen[i].place, kv_head, sequence,
                                                     seen[i].position)[d]);
    }
    put(args.out, row, head * args.value_cols() + d, sum / total);
  }
}

void ReferenceDevice::attention(const AttentionArgs& args) {
  for_tokens([&](size_t sequence, int32_t row, int64_t position) {
    for (int32_t head = 0; head < args.num_heads; ++head) {
      attend(args, sequence, row, position, head);
    }
  });
}

// Of the blocks up to that of `position`.
std::vector<double> ReferenceDevice::choice_scores(
    const ChooseArgs& args, size_t sequence, int32_t row, int64_t position, int32_t choice) {
  const bool rounds = panel_type(kv_.dtype) == PanelType::kBF16;
  const auto product = [&](int64_t head, int64_t key) {
    const int64_t at_position = (key + 1) * args.tokens_per_entry - 1;
    const float* const k = cached(keys_, args.place, 0, sequence, at_position);
    double sum = 0.0;
    for (int64_t d = 0; d < args.head_dim; ++d) {
      const float q = row_of(args.q, row)[head * args.head_dim + d];
      sum += double{rounds ? round_to(DType::kBF16, q) : q} * static_cast<double>(k[d]);
    }
    return sum;
  };
  const int64_t last = args.last_choice(position);
  const auto num_blocks = static_cast<size_t>(last < 0 ? 0 : last / args.rule.block_size + 1);
  std::vector<double> out(num_blocks, -std::numeric_limits<double>::infinity());
  for (int64_t key = 0; key <= last; ++key) {
    double score = 0.0;
    if (args.weights.data == nullptr) {
      score = product(choice, key);
    } else {
      for (int64_t h = 0; h < args.num_heads; ++h)
        score += at(args.weights, row, h) * std::max(product(h, key), 0.0);
    }
    double& best = out[static_cast<size_t>(key / args.rule.block_size)];
    best = std::max(best, score);
  }
  for (size_t i = 0; i < num_blocks && i < static_cast<size_t>(args.rule.local_blocks); ++i) {
    out[num_blocks - 1 - i] = std::numeric_limits<double>::infinity();
  }
  return out;
}

void ReferenceDevice::choose_tokens(const ChooseArgs& args) {
  chosen_.clear();
  chosen_.resize(static_cast<size_t>(args.q.rows));
  for_tokens([&](size_t sequence, int32_t row, int64_t position) {
    for (int32_t choice = 0; choice < args.num_choices(); ++choice) {
      const std::vector<double> scores = choice_scores(args, sequence, row, position, choice);
      std::vector<size_t> order(scores.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return scores[i]; });
      order.resize(std::min(order.size(), static_cast<size_t>(args.rule.top_k)));
      std::vector<bool>& seen = chosen_[static_cast<size_t>(row)].emplace_back(
          static_cast<size_t>(args.last_choice(position) + 1), false);
      for (size_t i = 0; i < seen.size(); ++i) {
        const size_t block = i / static_cast<size_t>(args.rule.block_size);
        seen[i] = std::ranges::find(order, block) != order.end();
      }
    }
  });
}

bool ReferenceDevice::sees(const AttentionArgs& args,
                           int32_t row,
                           int32_t head,
                           int64_t position) const {
  if (args.seen.heads_per_choice == 0) return true;
  const auto choice = static_cast<size_t>(args.seen.of_head(head));
  return chosen_[static_cast<size_t>(row)][choice][static_cast<size_t>(position)];
}

}  // namespace tgi
