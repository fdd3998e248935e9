// What GPT-NeoX and its Japanese sister have in common.
#pragma once

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {

inline constexpr auto kNeoxFields = std::to_array<KnownField>({
    read("vocab_size"),
    read("hidden_size"),
    read("num_hidden_layers"),
    read("num_attention_heads"),
    read("hidden_act"),
    read("max_position_embeddings"),
    read("layer_norm_eps"),
    read_or_null("tie_word_embeddings"),
    read("rotary_pct"),
    read("rotary_emb_base"),
    read("partial_rotary_factor"),
    read("rope_theta"),
    read_or_null("rope_scaling"),
    read_or_null("rope_parameters"),
    read_or_null("original_max_position_embeddings"),
});

// Causal masks and rotary tables that old checkpoints carry as buffers.
inline constexpr auto kNeoxIgnored = std::to_array<std::string_view>(
    {".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq"});

// transformers 4.46 to 4.57 write the rotation under the common names beside the class's own, and
// no class reads them. Throws kInvalidArgument where the common name says another number than what
// counts: that of rope_parameters, of the class's own field, or the class's default.
inline void check_common_name(const JsonReader& config,
                              std::string_view common,
                              std::string_view own,
                              double fallback) {
  if (!config.has(common)) return;
  double counts = config.number_or(own, fallback);
  if (config.has("rope_parameters"))
    counts = config.object("rope_parameters").number_or(common, counts);
  const double said = config.number_or(common, counts);
  if (said == counts) return;
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: {}, but {} is what counts, and it is {}; leave one of them",
                          config.path_of(common), said, own, counts));
}

inline void read_neox_rope(const JsonReader& config, double default_partial, ModelConfig& model) {
  check_common_name(config, "rope_theta", "rotary_emb_base", 10000.0);
  check_common_name(config, "partial_rotary_factor", "rotary_pct", default_partial);
  read_rope(config, model,
            {.theta_name = "rotary_emb_base",
             .takes_partial = true,
             .partial_name = "rotary_pct",
             .default_partial = default_partial});
}

}  // namespace tgi
