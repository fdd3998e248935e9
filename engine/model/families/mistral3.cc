// Mistral Small 3.1 and 3.2, and Ministral 3 with eyes: multimodal checkpoints whose text model is
// Mistral, Ministral 3 or Mistral 4, as text_config says. Source: models/mistral3 in
// `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/known_fields.h"
#include "engine/model/multimodal_fields.h"

namespace tgi {
namespace {

constexpr auto kMistral3Names =
    std::to_array<std::string_view>({"Mistral3ForConditionalGeneration"});
constexpr auto kMistral3Types = std::to_array<std::string_view>({"mistral3"});

}  // namespace

extern const Architecture kMistral3;
constexpr Architecture kMistral3 =
    multimodal_of(kMistral3Names,
                  kMistral3Types,
                  R"({"model_type": "mistral", "head_dim": 128, "hidden_size": 5120,
                        "intermediate_size": 32768, "max_position_embeddings": 131072,
                        "num_attention_heads": 32, "num_hidden_layers": 40,
                        "num_key_value_heads": 8, "rms_norm_eps": 1e-05,
                        "rope_theta": 1000000000.0, "sliding_window": null,
                        "tie_word_embeddings": true,
                        "vocab_size": 131072})");

}  // namespace tgi
