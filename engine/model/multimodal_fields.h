// What config.json of a multimodal checkpoint has beside its text_config, and which tensors it has
// beside those of its text model. Only text is read.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/known_fields.h"

namespace tgi {

inline constexpr std::string_view kImages = "is about images, and only text is read";
inline constexpr std::string_view kSounds = "is about sounds, and only text is read";

inline constexpr auto kMultimodalFields = std::to_array<KnownField>({
    read_or_null("text_config"),
    read_or_null("tie_word_embeddings"),
    harmless_if("is_causal", "[true]", "the text model's own part says it"),
    harmless("_vocab_size", "the text model's own part says it"),
    harmless("vision_config", kImages),
    harmless("boi_token_index", kImages),
    harmless("eoi_token_index", kImages),
    harmless("image_token_index", kImages),
    harmless("image_token_id", kImages),
    harmless("video_token_id", kImages),
    harmless("vision_start_token_id", kImages),
    harmless("vision_end_token_id", kImages),
    harmless("mm_tokens_per_image", kImages),
    harmless("projector_hidden_act", kImages),
    harmless("multimodal_projector_bias", kImages),
    harmless("vision_feature_layer", kImages),
    harmless("vision_feature_select_strategy", kImages),
    harmless("image_seq_length", kImages),
    harmless("spatial_merge_size", kImages),
});

inline constexpr auto kMultimodalIgnored = std::to_array<std::string_view>({
    "vision_tower.*",
    "vision_model.*",
    "visual.*",
    "multi_modal_projector.*",
});

// `default_text`, `prefix`: Architecture's.
constexpr Architecture multimodal_of(std::span<const std::string_view> names,
                                     std::span<const std::string_view> model_types,
                                     std::string_view default_text,
                                     std::span<const KnownField> fields = kMultimodalFields,
                                     std::span<const std::string_view> ignored = kMultimodalIgnored,
                                     std::string_view prefix = "language_model.") {
  return {.names = names,
          .model_types = model_types,
          .prefix = prefix,
          .read_config = nullptr,
          .fields = fields,
          .tensors = {},
          .ignored = ignored,
          .default_text = default_text};
}

constexpr Architecture with_gaps_filled(Architecture outer) {
  outer.default_text_fills_gaps = true;
  return outer;
}

constexpr Architecture with_repeated_text(Architecture outer) {
  outer.repeats_text = true;
  return outer;
}

// With this row before those of kMultimodalFields.
inline constexpr KnownField kNeverTied =
    harmless("tie_word_embeddings", "the head is the class's own, whatever it says");

constexpr Architecture with_own_head(Architecture outer) {
  outer.has_own_head = true;
  return outer;
}

}  // namespace tgi
