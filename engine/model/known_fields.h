// What is known of the fields of config.json: one table of all models (known_fields.cc) and one of
// each family (families/).
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "base/known_fields.h"

namespace tgi {

// Reasons that many tables give.
inline constexpr std::string_view kOnlyTraining = "is used in training only";
inline constexpr std::string_view kOnlyDrafts = "is of a layer that may draft, not of answers";
inline constexpr std::string_view kSameSums = "chooses how the same sums are computed";

// The fields of decoders with a Llama block. What a family spells otherwise it lists itself.
inline constexpr auto kDecoderFields = std::to_array<KnownField>({
    read("vocab_size"),
    read("hidden_size"),
    read("intermediate_size"),
    read("num_hidden_layers"),
    read("num_attention_heads"),
    read_or_null("num_key_value_heads"),
    read_or_null("head_dim"),
    read("hidden_act"),
    read("max_position_embeddings"),
    read("rms_norm_eps"),
    read_or_null("tie_word_embeddings"),
    read("rope_theta"),
    read_or_null("rope_scaling"),
    read_or_null("rope_parameters"),
    read_or_null("partial_rotary_factor"),
    read_or_null("original_max_position_embeddings"),
    harmless_if("rope_interleaved", "[false]", "halves of a head are rotated, not pairs"),
    harmless_if("rope_traditional", "[false]", "halves of a head are rotated, not pairs"),
    harmless_if("use_mrope", "[false]", "positions are of text alone"),
});

// Fields of every model, whatever its family.
std::span<const KnownField> generic_fields();

}  // namespace tgi
