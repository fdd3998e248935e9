#include "engine/model/latent_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tgi {
namespace {

constexpr int64_t kMaxRank = 1 << 16;

// Absent, null and a number are three things: null is none.
int32_t read_rank_or_none(const JsonReader& config, std::string_view key, int64_t fallback) {
  if (config.json().contains(key) && !config.has(key)) return 0;
  return fallback == 0 && !config.has(key) ? 0 : read_size(config, key, fallback, kMaxRank);
}

void check_heads_agree(const JsonReader& config, const ModelConfig& model) {
  static constexpr std::string_view kKey = "num_key_value_heads";
  const int64_t given = config.integer_or(kKey, model.num_heads);
  if (given == model.num_heads) return;
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: expected as many as num_attention_heads = {}, since every head has "
                          "a key and a value of its own in latent attention, got {}",
                          config.path_of(kKey), model.num_heads, given));
}

void check_product(const JsonReader& config,
                   std::string_view key,
                   const ModelConfig& model,
                   int64_t columns) {
  if (int64_t{model.num_heads} * columns <= kMaxQuerySize) return;
  throw Error(
      Code::kInvalidArgument,
      fmt::format("{}: {} heads of {} columns are {}, expected at most {}", config.path_of(key),
                  model.num_heads, columns, int64_t{model.num_heads} * columns, kMaxQuerySize));
}

// What is cached has its rotated columns all the same: by an angle of 0 they stay what they are.
void use_no_rotation(ModelConfig& model) {
  const auto half = static_cast<size_t>(model.latent.rotary_dim) / 2;
  model.ropes = {{.rotary_dim = model.latent.rotary_dim, .inv_freq = std::vector<float>(half)}};
  for (LayerPlan& layer : model.layers) layer.rope = 0;
}

int64_t default_value_dim(const JsonReader& config,
                          const LatentFields& fields,
                          const ModelConfig& model) {
  if (fields.default_value_dim > 0 || config.has("v_head_dim")) return fields.default_value_dim;
  if (model.hidden_size % model.num_heads == 0) return model.hidden_size / model.num_heads;
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: missing, and hidden_size {} is not a multiple of "
                          "num_attention_heads = {}",
                          config.path_of("v_head_dim"), model.hidden_size, model.num_heads));
}

}  // namespace

DecoderFields latent_decoder_fields(DecoderFields fields, int64_t default_rotary_dim) {
  fields.num_kv_heads = {};
  fields.head_dim = "qk_rope_head_dim";
  fields.default_head_dim = default_rotary_dim;
  return fields;
}

void read_latent_attention(const JsonReader& config,
                           const LatentFields& fields,
                           const RopeTraits& rope,
                           ModelConfig& model) {
  check_heads_agree(config, model);
  LatentConfig& latent = model.latent;
  latent.rotary_dim = model.head_dim;
  if (latent.rotary_dim % 2 != 0) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: rotary embeddings need an even number, got {}",
                            config.path_of("qk_rope_head_dim"), latent.rotary_dim));
  }
  latent.rank = read_size(config, "kv_lora_rank", fields.default_rank, kMaxRank);
  latent.query_rank = read_rank_or_none(config, "q_lora_rank", fields.default_query_rank);
  latent.kept_dim = read_size(config, "qk_nope_head_dim", fields.default_kept_dim, kMaxHeadDim);
  latent.value_dim =
      read_size(config, "v_head_dim", default_value_dim(config, fields, model), kMaxHeadDim);
  check_product(config, "kv_lora_rank", model, latent.key_dim());
  check_product(config, "qk_nope_head_dim", model, latent.kept_dim + latent.rotary_dim);
  check_product(config, "v_head_dim", model, latent.value_dim);
  if (fields.rotates) {
    read_rope(config, model, rope);
  } else {
    use_no_rotation(model);
  }
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.head_dim = latent.kept_dim + latent.rotary_dim;
  model.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(model.head_dim)));
  if (fields.scales_scores) model.attention_scale *= read_score_multiplier(config, rope);
}

}  // namespace tgi
