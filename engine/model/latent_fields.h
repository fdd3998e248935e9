// What the readers of families with latent attention share: its ranks and the parts of a head.
#pragma once

#include <array>
#include <cstdint>

#include "base/json.h"
#include "engine/model/config_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/model_config.h"
#include "engine/model/rope.h"

namespace tgi {

// The fields of latent attention, which stand before kDecoderFields.
inline constexpr auto kLatentFields = std::to_array<KnownField>({
    read("kv_lora_rank"),
    read_or_null("q_lora_rank"),
    read("qk_nope_head_dim"),
    read("qk_rope_head_dim"),
    read_or_null("v_head_dim"),
    read_or_null("attention_bias"),
    harmless("head_dim", "the head is qk_nope_head_dim and qk_rope_head_dim"),
    harmless("qk_head_dim", "the head is qk_nope_head_dim and qk_rope_head_dim"),
});

// What an absent field means: DeepSeek V3's, where a family does not say otherwise.
struct LatentFields {
  int64_t default_rank = 512;
  int64_t default_query_rank = 1536;
  int64_t default_kept_dim = 128;
  int64_t default_rotary_dim = 64;
  int64_t default_value_dim = 128;  // 0: hidden_size / num_heads
  bool scales_scores = true;        // by the square of yarn's mscale_all_dim
  bool rotates = true;              // else nothing tells positions apart
};

// Whether neighbours of a head are rotated, rather than its halves: unless the file says otherwise,
// and with null it does.
inline bool rotates_pairs(const JsonReader& config) {
  constexpr const char* kField = "rope_interleave";
  return config.boolean_or(kField, !config.json().contains(kField));
}

// Which names read_decoder_config looks at in a family with latent attention: all heads have keys
// and values of their own, and what of a head is rotated is a field.
DecoderFields latent_decoder_fields(DecoderFields fields, int64_t default_rotary_dim = 64);

// Latent attention and its rope, in all layers. REQUIRES: read_decoder_config with those names.
// Throws kInvalidArgument for sizes that don't fit.
void read_latent_attention(const JsonReader& config,
                           const LatentFields& fields,
                           const RopeTraits& rope,
                           ModelConfig& model);

}  // namespace tgi
