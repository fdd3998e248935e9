// Attention, norms, activations, rotation and the sampler's passes. See kernel_checks.h.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "engine/cpu/kernel_checks.h"
#include "engine/cpu/panel_kv_cache.h"
#include "engine/tensor/half.h"

namespace tgi {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// ---- attention

constexpr int32_t kHeadDim = 20;  // not a multiple of 16
// More than 64 and no multiple of 16 either, so that a kernel meets every kind of columns.
constexpr int32_t kLatentDim = 81;
constexpr int32_t kLatentHeadDim = 84;
constexpr int32_t kGroup = 3;  // query heads of a KV head
constexpr int32_t kBlockSize = 16;
constexpr int32_t kMostQueries = 10;  // 30 rows: more than a matrix unit takes at once
constexpr int32_t kContext = 75;      // two tiles, the last not full

struct AttentionCase {
  int32_t num_queries;  // the last of the context
  float softcap;
  int32_t sliding_window;
  const float* alibi_slopes;
  const float* sinks;
  int32_t attention_chunk = 0;
  int32_t num_after = 0;  // tokens of the context after the queries, which they see
  int32_t bias_reach = 0;
  const uint64_t* chosen = nullptr;  // of three queries two choices
  const int32_t* gathered = nullptr;
};
constexpr float kBiases[kGroup][5] = {{0.5F, 0.1F, -2.0F, 0.3F, 1.0F},
                                      {-0.5F, 0.4F, 0.0F, 3.0F, 0.25F},
                                      {0.0F, 1.5F, -0.7F, 0.2F, -1.0F}};
constexpr float kSlopes[kGroup] = {0.5F, 0.1F, 0.0039F};
// Decoding, some rows, and more than go through at once.
constexpr float kSinks[kGroup] = {2.0F, -0.5F, 90.0F};
constexpr int64_t kChosenWords = 2;
constexpr uint64_t kChosen[3 * 2 * kChosenWords] = {0x8000000000000001U,
                                                    0x1U,
                                                    0x00FF00F0A5A50000U,
                                                    0x0U,
                                                    0x0U,
                                                    0x280U,
                                                    0xFFFFFFFFFFFFFFFFU,
                                                    0xFFU,
                                                    0x1U,
                                                    0x0U,
                                                    0x123456789ABCDEFU,
                                                    0x7FFU};
constexpr int32_t kGathered[19] = {0,  3,  7,  15, 16, 17, 30, 31, 32, 40,
                                   41, 47, 48, 50, 62, 63, 64, 70, 74};
constexpr AttentionCase kAttentionCases[] = {{1, 0.0F, 0, nullptr, nullptr},
                                             {3, 20.0F, 0, nullptr, nullptr},
                                             {8, 0.0F, 50, nullptr, kSinks},
                                             {2, 0.0F, 0, kSlopes, nullptr},
                                             {7, 0.0F, 0, nullptr, nullptr, 24},
                                             {kMostQueries, 0.0F, 0, nullptr, nullptr, 0, 30},
                                             {5, 0.0F, 20, nullptr, nullptr, 0, 40, 2},
                                             {3, 0.0F, 0, nullptr, nullptr, 0, 0, 0, kChosen}};
// Of latents, whose products take most of the time, a few: what stands around them is the same.
constexpr AttentionCase kLatentCases[] = {
    {1, 0.0F, 0, nullptr, nullptr},
    {3, 20.0F, 0, nullptr, kSinks, 0, 0, 0, kChosen},
    {kMostQueries, 0.0F, 0, nullptr, nullptr, 0, 30},
    {1, 3.0F, 0, nullptr, kSinks, 0, 0, 0, nullptr, kGathered}};

// Positions lie in the blocks of this table.
constexpr std::array<int32_t, 5> kBlockTable = {3, 0, 4, 2, 1};

// Without values the keys hold them.
void fill_cache(PanelKvCache& cache, std::span<const float> keys, std::span<const float> values) {
  const int32_t head_dim = cache.layout().head_dim;
  for (int32_t position = 0; position < kContext; ++position) {
    const auto at = static_cast<size_t>(position * head_dim);
    cache.store({}, 0, kBlockTable[static_cast<size_t>(position / kBlockSize)],
                position % kBlockSize, keys.data() + at,
                values.empty() ? nullptr : values.data() + at);
  }
}

// ---- rows of numbers

constexpr int64_t kCols = 83;

// Ordinary numbers of several sizes, and all that is special. Not denormals: no op makes any (see
// flush_denormals.h), and a maximum of two numbers keeps or flushes them as the processor likes.
std::span<float> special_floats(KernelChecks& checks, int64_t count) {
  const std::span<float> out = checks.random_floats(count);
  for (size_t i = 0; i < out.size(); ++i) out[i] *= i % 3 == 0 ? 1.0F : i % 3 == 1 ? 8.0F : 90.0F;
  constexpr float kSpecial[] = {0.0F,   -0.0F, kInfinity, -kInfinity, kNan,
                                -1e30F, 1e30F, 88.7F,     -103.9F};
  for (size_t i = 0; i < std::size(kSpecial); ++i) out[7 * i + 2] = kSpecial[i];
  return out;
}

void add_norm_checks(KernelChecks& checks) {
  const std::span<const float> x = checks.random_floats(kCols);
  const std::span<const float> weight = checks.random_floats(kCols);
  const std::span<const float> bias = checks.random_floats(kCols);
  const std::span<const float> residual = checks.random_floats(kCols);
  const std::span<float> out = checks.floats(2 * kCols);
  const auto norm = [=](void (*kernel)(const NormRow&), const float* add) {
    const std::span<float> stream = out.last(kCols);
    std::copy(residual.begin(), residual.end(), stream.begin());
    kernel({.eps = 1e-5F,
            .weight = weight.data(),
            .bias = add,
            .x = x.data(),
            .residual = stream.data(),
            .x_multiplier = add == nullptr ? 1.0F : 0.22F,
            .out = out.data(),
            .cols = kCols});
    return std::span<const float>(out);
  };
  checks.add("rms_norm", [=](const KernelTable& k) { return norm(k.rms_norm, nullptr); });
  checks.add("layer_norm", [=](const KernelTable& k) { return norm(k.layer_norm, bias.data()); });
}

void add_activation_checks(KernelChecks& checks) {
  constexpr std::string_view kNames[] = {"silu", "gelu", "gelu_tanh", "relu", "relu_squared"};
  const std::span<const float> in = special_floats(checks, 2 * kCols);
  const std::span<float> out = checks.floats(kCols);
  for (size_t kind = 0; kind < std::size(kNames); ++kind) {
    checks.add(fmt::format("gated_activation {}", kNames[kind]), [=](const KernelTable& k) {
      k.gated_activation[kind](in.data(), out.data(), kCols);
      return std::span<const float>(out);
    });
    checks.add(fmt::format("activation {}", kNames[kind]), [=](const KernelTable& k) {
      k.activation[kind](in.data(), out.data(), kCols);
      return std::span<const float>(out);
    });
  }
  checks.add("limited_silu", [=](const KernelTable& k) {
    k.limited_silu(in.data(), out.data(), kCols,
                   {.limit = 7.0F, .up_limit = 6.0F, .slope = 1.702F, .up_offset = 1});
    return std::span<const float>(out);
  });
  checks.add("xielu", [=](const KernelTable& k) {
    k.xielu(in.data(), out.data(), kCols,
            {.alpha_p = 0.8F, .alpha_n = 1.3F, .beta = 0.5F, .eps = -1e-6F});
    return std::span<const float>(out);
  });
}

void add_elementwise_checks(KernelChecks& checks) {
  const std::span<const float> x = special_floats(checks, kCols);
  const std::span<const float> y = checks.random_floats(kCols);
  const std::span<float> out = checks.floats(kCols);
  checks.add("add", [=](const KernelTable& k) {
    k.add(x.data(), y.data(), 0.22F, out.data(), kCols);
    return std::span<const float>(out);
  });
  for (const float cap : {0.0F, 30.0F}) {
    checks.add(cap == 0.0F ? "scale_and_cap without a cap" : "scale_and_cap",
               [=](const KernelTable& k) {
                 std::copy(x.begin(), x.end(), out.begin());
                 k.scale_and_cap(out.data(), kCols, 0.3F, cap);
                 return std::span<const float>(out);
               });
  }
  constexpr int64_t kRotary = 38;
  const auto rotate = [=](void (*kernel)(float*, const float*, int64_t)) {
    std::copy(y.begin(), y.end(), out.begin());
    kernel(out.data(), y.data() + 40, kRotary);
    return std::span<const float>(out);
  };
  checks.add("rotate_half", [=](const KernelTable& k) { return rotate(k.rotate_half); });
  checks.add("rotate_interleaved",
             [=](const KernelTable& k) { return rotate(k.rotate_interleaved); });
  const auto map = [=](void (*kernel)(const float*, float*, int64_t)) {
    kernel(x.data(), out.data(), kCols);
    return std::span<const float>(out);
  };
  checks.add("exp", [=](const KernelTable& k) { return map(k.math.exp); });
  checks.add("tanh", [=](const KernelTable& k) { return map(k.math.tanh); });
  checks.add("erf", [=](const KernelTable& k) { return map(k.math.erf); });
  checks.add("exp_less_tangent",
             [=](const KernelTable& k) { return map(k.math.exp_less_tangent); });
}

// ---- the sampler

constexpr int64_t kLogits = 1100;  // more than are summed at once

void add_draw_checks(KernelChecks& checks, std::span<const float> logits) {
  constexpr int kDraws = 3;
  constexpr int64_t kIds = 300;
  const std::span<float> out = checks.floats(kDraws);
  const std::span<std::byte> room = checks.bytes(kCols * int64_t{sizeof(int32_t)});
  const std::span<int32_t> ids(reinterpret_cast<int32_t*>(room.data()), kCols);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(13 * i + i % 5);
  const auto draw = [=](const KernelTable& k, const int32_t* listed, int64_t count) {
    for (uint32_t i = 0; i < kDraws; ++i) {
      out[i] = static_cast<float>(k.sampler_math.draw(
          logits.data(), listed, count, 8.0F,
          {.seed = 0x123456789ABCDEFU + i, .position = 10 * i, .sequence_index = i % 3}));
    }
    return std::span<const float>(out);
  };
  checks.add("draw", [=](const KernelTable& k) { return draw(k, nullptr, kIds); });
  checks.add("draw from a list",
             [=](const KernelTable& k) { return draw(k, ids.data(), std::ssize(ids)); });
}

void add_sampler_checks(KernelChecks& checks) {
  const std::span<float> logits = checks.random_floats(kLogits);
  for (float& x : logits) x *= 8.0F;
  logits[3] = kNan;
  logits[20] = -kInfinity;
  const std::span<float> out = checks.floats(kLogits);
  const std::span<float> values = checks.floats(kLogits);
  const std::span<std::byte> room = checks.bytes(kLogits * int64_t{sizeof(int32_t)});
  auto* const indices = reinterpret_cast<int32_t*>(room.data());
  checks.add("max_value", [=](const KernelTable& k) {
    out[0] = k.sampler_math.max_value(logits.data(), kLogits);
    return std::span<const float>(out).first(1);
  });
  checks.add("sum_exp", [=](const KernelTable& k) {
    out[0] = k.sampler_math.sum_exp(logits.data(), kLogits, 8.0F);
    return std::span<const float>(out).first(1);
  });
  checks.add("exp_shifted", [=](const KernelTable& k) {
    k.sampler_math.exp_shifted(logits.data(), out.data(), kLogits, 8.0F);
    return std::span<const float>(out);
  });
  checks.add("temper", [=](const KernelTable& k) {
    k.sampler_math.temper(logits.data(), out.data(), kLogits, 0.7F);
    return std::span<const float>(out);
  });
  checks.add("list_from", [=](const KernelTable& k) {
    std::fill(out.begin(), out.end(), -1.0F);
    const int64_t count =
        k.sampler_math.list_from(logits.data(), kLogits, 2.5F, indices, values.data());
    out[0] = static_cast<float>(count);
    const auto listed = static_cast<size_t>(std::clamp<int64_t>(count, 0, kLogits / 2 - 1));
    for (size_t i = 0; i < listed; ++i) {
      out[2 * i + 1] = static_cast<float>(indices[i]);
      out[2 * i + 2] = values[i];
    }
    return std::span<const float>(out);
  });
  add_draw_checks(checks, logits);
}

}  // namespace

namespace {

// `latent_dim`: 0 where values are apart.
void add_attention_checks_of(KernelChecks& checks,
                             DType dtype,
                             int32_t head_dim,
                             int32_t latent_dim) {
  const std::span<const float> keys = checks.random_floats(kContext * head_dim);
  const std::span<const float> values =
      latent_dim > 0 ? std::span<const float>() : checks.random_floats(kContext * head_dim);
  const std::span<const float> q = checks.random_floats(kMostQueries * kGroup * head_dim);
  const std::span<float> out = checks.floats(kMostQueries * kGroup * head_dim);
  const std::span<std::byte> scratch =
      checks.bytes(attention_scratch_bytes(head_dim, latent_dim > 0 || is_cache_code(dtype)));
  constexpr PairOrder kOrders[] = {PairOrder::kAdjacent, PairOrder::kEvenOdd};
  std::array<std::shared_ptr<PanelKvCache>, 2> caches;  // by PairOrder
  for (const PairOrder order : kOrders) {
    const KvLayout layout{.num_layers = 1,
                          .num_kv_heads = 1,
                          .head_dim = head_dim,
                          .block_size = kBlockSize,
                          .num_blocks = static_cast<int32_t>(kBlockTable.size()),
                          .dtype = dtype,
                          .latent_dim = latent_dim};
    auto cache = std::make_shared<PanelKvCache>(layout, order);
    fill_cache(*cache, keys, values);
    caches[static_cast<size_t>(order)] = std::move(cache);
  }
  const std::span<const AttentionCase> cases =
      latent_dim > 0 ? std::span<const AttentionCase>(kLatentCases) : kAttentionCases;
  for (const AttentionCase& one : cases) {
    if (one.gathered != nullptr && is_cache_code(dtype)) continue;
    checks.add(fmt::format("attention over {}{}, {} rows", latent_dim > 0 ? "latents of " : "",
                           dtype_name(dtype), one.num_queries * kGroup),
               [=](const KernelTable& k) {
                 AttentionBlock block{.q = q.data(),
                                      .q_stride = kGroup * head_dim,
                                      .out = out.data(),
                                      .out_stride = kGroup * head_dim,
                                      .group_size = kGroup,
                                      .head_dim = head_dim,
                                      .value_dim = latent_dim > 0 ? latent_dim : head_dim,
                                      .num_rows = one.num_queries * kGroup,
                                      .first_position = kContext - one.num_queries - one.num_after,
                                      .block_table = kBlockTable.data(),
                                      .scale = 0.22F,
                                      .softcap = one.softcap,
                                      .sliding_window = one.sliding_window,
                                      .attention_chunk = one.attention_chunk,
                                      .alibi_slopes = one.alibi_slopes,
                                      .num_visible = one.num_after > 0 ? kContext : 0,
                                      .scratch = scratch.data()};
                 if (one.gathered != nullptr) {
                   block.gathered = one.gathered;
                   block.num_gathered = static_cast<int32_t>(std::size(kGathered));
                 }
                 if (one.chosen != nullptr) {
                   block.chosen = one.chosen;
                   block.chosen_words = kChosenWords;
                   block.num_choices = 2;
                   block.heads_per_choice = 2;
                 }
                 if (one.bias_reach > 0) {
                   block.distance_bias = &kBiases[0][0];
                   block.distance_bias_stride = std::ssize(kBiases[0]);
                   block.bias_reach = one.bias_reach;
                 }
                 caches[static_cast<size_t>(k.pair_order)]->describe({}, 0, block);
                 std::fill(out.begin(), out.end(), 0.0F);
                 k.attention[static_cast<size_t>(panel_type(dtype))](block);
                 return std::span<const float>(out);
               });
  }
}

// Each of the 256 codes of a KV cache.
void add_code_checks(KernelChecks& checks) {
  constexpr int64_t kCodes = 256;
  const std::span<std::byte> codes = checks.bytes(kCodes);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i);
  const std::span<std::byte> decoded = checks.bytes(kCodes * int64_t{sizeof(uint16_t)});
  const std::span<float> out = checks.floats(kCodes);
  using Decode = void (*)(const std::byte* codes, std::byte* out);
  const auto add = [&](const char* name, Decode KernelTable::*decode) {
    checks.add(name, [=](const KernelTable& k) {
      for (size_t i = 0; i < codes.size(); i += 64) {
        (k.*decode)(codes.data() + i, decoded.data() + i * sizeof(uint16_t));
      }
      for (size_t i = 0; i < out.size(); ++i) {
        uint16_t bits = 0;
        std::memcpy(&bits, decoded.data() + i * sizeof bits, sizeof bits);
        out[i] = bf16_to_f32(bits);
      }
      return std::span<const float>(out);
    });
  };
  add("decode_e4m3", &KernelTable::decode_e4m3);
  add("decode_int8", &KernelTable::decode_int8);
}

}  // namespace

void add_attention_checks(KernelChecks& checks) {
  for (const DType dtype : kDTypes) {
    add_attention_checks_of(checks, dtype, kHeadDim, 0);
    add_attention_checks_of(checks, dtype, kLatentHeadDim, kLatentDim);
  }
  add_code_checks(checks);
}

void add_row_checks(KernelChecks& checks) {
  add_norm_checks(checks);
  add_activation_checks(checks);
  add_elementwise_checks(checks);
  add_sampler_checks(checks);
}

}  // namespace tgi
