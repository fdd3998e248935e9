// What attention is tried with: heads, caches, masks, norms and rotations.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/device/backend.h"
#include "tests/conformance/harness.h"

namespace tgi {

struct AttentionSetup {
  std::string name;
  int32_t num_heads = 4;
  int32_t num_kv_heads = 2;
  int32_t head_dim = 16;
  int32_t value_dim = 0;  // 0: head_dim
  DType dtype = DType::kF32;
  int32_t block_size = 16;
  int32_t window = 0;
  float softcap = 0.0F;
  bool norms = false;
  bool norm_after_rope = false;
  NormKind norm_kind = NormKind::kRms;
  bool own_norms = false;  // of each head
  bool norm_biases = false;
  float clip = 0.0F;
  int32_t chunk = 0;
  bool alibi = false;
  RopeSpec rope = {};  // rotary_dim 0: none
  PositionScale query_scale = {};
  bool head_scales = false;
  bool sinks = false;
  bool causal = true;
  int32_t bias_reach = -1;  // of distances; -1: none
  int32_t num_kinds = 0;    // of distances that have products with queries and keys
  bool of_queries = true;   // whether they have
  bool of_keys = true;
  bool value_norm = false;
  bool unlike = false;  // other layers have other heads; where values have their own size, they do
  std::vector<int32_t> lengths = {70, 5, 130};

  int32_t value_cols() const { return value_dim > 0 ? value_dim : head_dim; }
  int32_t width() const {
    return (num_heads + num_kv_heads) * head_dim + num_kv_heads * value_cols();
  }
  int64_t total_tokens() const {
    int64_t total = 0;
    for (const int32_t length : lengths) total += length;
    return total;
  }
};

inline RopeSpec make_rope(int32_t rotary_dim, bool interleaved = false) {
  RopeSpec rope;
  rope.rotary_dim = rotary_dim;
  rope.interleaved = interleaved;
  for (int32_t i = 0; i < rotary_dim / 2; ++i) {
    rope.inv_freq.push_back(
        std::pow(10000.0F, -2.0F * static_cast<float>(i) / static_cast<float>(rotary_dim)));
  }
  return rope;
}

inline RopeSpec dynamic_rope() {
  RopeSpec rope = make_rope(16);
  rope.dynamic_original_positions = 40;
  rope.dynamic_factor = 4.0F;
  rope.attention_factor = 1.25F;
  return rope;
}

inline std::vector<AttentionSetup> attention_setups() {
  std::vector<AttentionSetup> out = {
      {.name = "plain"},
      {.name = "f16 cache", .dtype = DType::kF16},
      {.name = "bf16 cache", .dtype = DType::kBF16},
      {.name = "int8 cache", .dtype = DType::kInt8},
      {.name = "f8e4m3 cache", .dtype = DType::kF8E4M3},
      {.name = "int8 cache, head_dim 24, window",
       .num_heads = 3,
       .num_kv_heads = 1,
       .head_dim = 24,
       .dtype = DType::kInt8,
       .block_size = 48,
       .window = 33},
      {.name = "f8e4m3 cache, head_dim 100, sinks",
       .num_heads = 6,
       .head_dim = 100,
       .dtype = DType::kF8E4M3,
       .block_size = 32,
       .sinks = true},
      {.name = "int8 cache, head_dim 128, ALiBi and softcap",
       .num_heads = 16,
       .head_dim = 128,
       .dtype = DType::kInt8,
       .softcap = 5.0F,
       .alibi = true},
      {.name = "int8 cache, layers of unlike heads", .dtype = DType::kInt8, .unlike = true},
      {.name = "rope with norms, int8 cache",
       .dtype = DType::kInt8,
       .norms = true,
       .rope = make_rope(16)},
      {.name = "encoder, int8 cache", .dtype = DType::kInt8, .causal = false, .bias_reach = 9},
      {.name = "encoder with ALiBi", .alibi = true, .causal = false},
      {.name = "encoder with products of distances",
       .num_kv_heads = 4,
       .causal = false,
       .num_kinds = 12},
      {.name = "encoder with products of distances and queries, bf16 cache",
       .num_heads = 3,
       .num_kv_heads = 3,
       .head_dim = 64,
       .dtype = DType::kBF16,
       .block_size = 48,
       .causal = false,
       .num_kinds = 400,
       .of_keys = false},
      {.name = "encoder with products of distances and keys, softcap",
       .num_kv_heads = 4,
       .head_dim = 40,
       .softcap = 6.0F,
       .causal = false,
       .num_kinds = 33,
       .of_queries = false},
      {.name = "one kv head, head_dim 8", .num_heads = 5, .num_kv_heads = 1, .head_dim = 8},
      {.name = "head_dim 24, bf16",
       .num_heads = 3,
       .num_kv_heads = 3,
       .head_dim = 24,
       .dtype = DType::kBF16},
      {.name = "head_dim 40, blocks of 32",
       .num_heads = 6,
       .num_kv_heads = 2,
       .head_dim = 40,
       .dtype = DType::kF16,
       .block_size = 32},
      {.name = "head_dim 80, window",
       .num_heads = 2,
       .num_kv_heads = 1,
       .head_dim = 80,
       .window = 20},
      {.name = "window of one", .window = 1},
      {.name = "chunks of one", .chunk = 1},
      {.name = "chunks that end within tiles, bf16", .dtype = DType::kBF16, .chunk = 40},
      {.name = "chunks longer than a tile, a window",
       .num_heads = 6,
       .num_kv_heads = 2,
       .head_dim = 32,
       .window = 20,
       .chunk = 100},
      {.name = "chunks of a tile, sinks",
       .num_kv_heads = 1,
       .head_dim = 64,
       .chunk = 64,
       .sinks = true},
      {.name = "window past a tile, softcap", .window = 70, .softcap = 3.0F},
      {.name = "thirty heads to one",
       .num_heads = 30,
       .num_kv_heads = 1,
       .head_dim = 32,
       .dtype = DType::kBF16,
       .softcap = 20.0F},
      {.name = "head_dim 128",
       .num_heads = 8,
       .num_kv_heads = 2,
       .head_dim = 128,
       .lengths = {33, 65}},
      {.name = "rope", .rope = make_rope(16)},
      {.name = "rope on a part, interleaved", .head_dim = 40, .rope = make_rope(20, true)},
      {.name = "rope with norms", .norms = true, .rope = make_rope(16)},
      {.name = "layer norms of each head, part of it rotated",
       .norms = true,
       .norm_kind = NormKind::kLayer,
       .own_norms = true,
       .rope = make_rope(8)},
      {.name = "layer norms with biases",
       .norms = true,
       .norm_kind = NormKind::kLayer,
       .norm_biases = true,
       .rope = make_rope(16)},
      {.name = "layer norms with biases of each head, clipped",
       .norms = true,
       .norm_kind = NormKind::kLayer,
       .own_norms = true,
       .norm_biases = true,
       .clip = 0.9F},
      {.name = "clipped", .clip = 0.5F, .rope = make_rope(16)},
      {.name = "alibi", .num_heads = 6, .num_kv_heads = 3, .alibi = true},
      {.name = "alibi, window, softcap, bf16 cache",
       .num_heads = 5,
       .num_kv_heads = 1,
       .dtype = DType::kBF16,
       .window = 70,
       .softcap = 4.0F,
       .alibi = true},
      {.name = "alibi, f16 cache, blocks of 32",
       .num_heads = 12,
       .num_kv_heads = 3,
       .head_dim = 40,
       .dtype = DType::kF16,
       .block_size = 32,
       .alibi = true},
      {.name = "alibi and sinks, twenty heads to one, bf16 cache",
       .num_heads = 20,
       .num_kv_heads = 1,
       .head_dim = 64,
       .dtype = DType::kBF16,
       .alibi = true,
       .sinks = true},
      {.name = "sinks", .num_heads = 6, .num_kv_heads = 2, .sinks = true},
      {.name = "sinks, f16 cache, a head for each",
       .num_heads = 3,
       .num_kv_heads = 3,
       .dtype = DType::kF16,
       .sinks = true},
      {.name = "sinks, window, bf16 cache",
       .num_heads = 16,
       .num_kv_heads = 2,
       .head_dim = 64,
       .dtype = DType::kBF16,
       .window = 20,
       .rope = make_rope(64),
       .sinks = true},
      {.name = "sinks, a window of one, softcap",
       .num_heads = 20,
       .num_kv_heads = 1,
       .head_dim = 24,
       .dtype = DType::kBF16,
       .window = 1,
       .softcap = 3.0F,
       .sinks = true},
      {.name = "not causal", .causal = false},
      {.name = "not causal, window, bf16 cache, rope",
       .num_heads = 6,
       .num_kv_heads = 6,
       .head_dim = 32,
       .dtype = DType::kBF16,
       .window = 20,
       .rope = make_rope(32),
       .causal = false},
      {.name = "not causal, a window past a tile, f16 cache, blocks of 32",
       .head_dim = 40,
       .dtype = DType::kF16,
       .block_size = 32,
       .window = 70,
       .causal = false},
      {.name = "not causal, distances of a bias that ends early",
       .num_heads = 6,
       .num_kv_heads = 3,
       .causal = false,
       .bias_reach = 7},
      {.name = "not causal, alibi, sinks and distances past the context",
       .num_heads = 5,
       .num_kv_heads = 1,
       .alibi = true,
       .sinks = true,
       .causal = false,
       .bias_reach = 150},
      {.name = "causal, distances", .bias_reach = 40},
      {.name = "heads of v normed too", .norms = true, .rope = make_rope(16), .value_norm = true},
      {.name = "heads of v normed alone, f16 cache", .dtype = DType::kF16, .value_norm = true},
      {.name = "heads of v normed too, after the rotation, bf16 cache",
       .num_heads = 6,
       .num_kv_heads = 3,
       .head_dim = 40,
       .dtype = DType::kBF16,
       .norms = true,
       .norm_after_rope = true,
       .norm_kind = NormKind::kLayer,
       .own_norms = true,
       .rope = make_rope(16),
       .value_norm = true},
      {.name = "heads wider than 256, bf16 cache",
       .num_heads = 4,
       .num_kv_heads = 2,
       .head_dim = 512,
       .dtype = DType::kBF16,
       .norms = true,
       .rope = make_rope(512),
       .value_norm = true,
       .lengths = {70, 1, 33}},
      {.name = "heads wider than 256 of odd size, a window, softcap, sinks, f16 cache",
       .num_heads = 5,
       .num_kv_heads = 1,
       .head_dim = 270,
       .dtype = DType::kF16,
       .block_size = 32,
       .window = 20,
       .softcap = 4.0F,
       .sinks = true,
       .lengths = {50, 5, 90}},
      {.name = "layers with other heads", .unlike = true},
      {.name = "layers with other heads, f16 cache, others wider than 256",
       .num_heads = 4,
       .num_kv_heads = 2,
       .head_dim = 240,
       .dtype = DType::kF16,
       .alibi = true,
       .unlike = true,
       .lengths = {70, 5, 40}},
      {.name = "layers with other heads, bf16, blocks of 32, a window",
       .num_heads = 6,
       .num_kv_heads = 3,
       .head_dim = 24,
       .dtype = DType::kBF16,
       .block_size = 32,
       .window = 20,
       .norms = true,
       .value_norm = true,
       .unlike = true},
      {.name = "values shorter than keys", .head_dim = 24, .value_dim = 16, .unlike = true},
      {.name = "values shorter than keys, of no whole panel, a window, sinks, rope, bf16 cache",
       .num_heads = 6,
       .num_kv_heads = 3,
       .head_dim = 48,
       .value_dim = 20,
       .dtype = DType::kBF16,
       .window = 20,
       .rope = make_rope(16),
       .sinks = true,
       .unlike = true},
      {.name = "values longer than keys, blocks of 32, f16 cache",
       .num_heads = 3,
       .num_kv_heads = 1,
       .head_dim = 16,
       .value_dim = 40,
       .dtype = DType::kF16,
       .block_size = 32,
       .unlike = true},
      {.name = "values shorter than keys, int8 cache, ALiBi and softcap",
       .head_dim = 40,
       .value_dim = 24,
       .dtype = DType::kInt8,
       .softcap = 5.0F,
       .alibi = true,
       .unlike = true},
      {.name = "values shorter than keys, f8e4m3 cache, normed and clipped",
       .num_heads = 16,
       .num_kv_heads = 1,
       .head_dim = 96,
       .value_dim = 64,
       .dtype = DType::kF8E4M3,
       .norms = true,
       .clip = 0.7F,
       .value_norm = true,
       .unlike = true},
      {.name = "dynamic rope", .rope = dynamic_rope()},
      {.name = "norms after the rotation",
       .norms = true,
       .norm_after_rope = true,
       .own_norms = true,
       .rope = make_rope(16)},
      {.name = "clamped", .clip = 0.7F},
      {.name = "clamped, normed and rotated", .norms = true, .clip = 0.7F, .rope = make_rope(16)},
      {.name = "queries scaled by position",
       .query_scale = {.beta = 0.3F, .positions = 7, .offset = 1}},
      {.name = "rotated queries scaled by position",
       .rope = make_rope(8),
       .query_scale = {.beta = 0.1F, .positions = 16}},
      {.name = "queries scaled by a power of the position",
       .norms = true,
       .query_scale = {.positions = 9, .offset = 1, .power = 0.3F}},
      {.name = "queries scaled by head and position, bf16 cache",
       .dtype = DType::kBF16,
       .rope = make_rope(8, true),
       .head_scales = true},
      {.name = "queries scaled by both",
       .query_scale = {.beta = 0.1F, .positions = 16},
       .head_scales = true},
      {.name = "rope with norms, bf16 cache",
       .dtype = DType::kBF16,
       .norms = true,
       .rope = make_rope(16)},
  };
  Random random(31);
  for (int i = 0; i < 6; ++i) {
    const int32_t num_kv_heads = random.integer(1, 3);
    out.push_back({.name = fmt::format("random {}", i),
                   .num_heads = num_kv_heads * random.integer(1, 7),
                   .num_kv_heads = num_kv_heads,
                   .head_dim = 2 * random.integer(1, 50),
                   .dtype = kDTypes[static_cast<size_t>(random.integer(0, 4))],
                   .block_size = 16 * random.integer(1, 3),
                   .window = random.integer(0, 1) * random.integer(1, 100),
                   .softcap = random.integer(0, 1) == 0 ? 0.0F : 5.0F,
                   .alibi = random.integer(0, 1) == 0,
                   .sinks = i % 2 == 0,
                   .lengths = {random.integer(1, 150), random.integer(1, 150), 1}});
  }
  return out;
}

}  // namespace tgi
