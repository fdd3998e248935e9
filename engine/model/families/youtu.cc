// Youtu-LLM: DeepSeek V3's latent attention in a Llama block without experts. Source: models/youtu
// in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/latent_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_youtu(const JsonReader& config) {
  ModelConfig model =
      read_decoder_config(config, latent_decoder_fields({.default_vocab_size = 128256,
                                                         .default_hidden_size = 2048,
                                                         .default_num_heads = 16,
                                                         .default_intermediate = 6144,
                                                         .default_max_positions = 131072,
                                                         .default_tied = true,
                                                         .default_bos = 128000,
                                                         .default_eos = 128001}));
  read_latent_attention(config, {}, {.interleaved = rotates_pairs(config)}, model);
  return model;
}

constexpr auto kYoutuFields =
    join_fields(std::to_array<KnownField>({
                    read_or_null("rope_interleave"),
                    harmless_if("mlp_bias", "[false]", "MLPs have no biases"),
                    harmless("embedding_initializer_range", kOnlyTraining),
                }),
                kLatentFields,
                kDecoderFields);

constexpr auto kYoutuNames = std::to_array<std::string_view>({"YoutuForCausalLM"});
constexpr auto kYoutuTypes = std::to_array<std::string_view>({"youtu"});

constexpr auto kYoutuTensors =
    join_tensors(kLlamaOuterTensors, kLlamaNormTensors, kLatentAttentionTensors, kLlamaMlpTensors);

}  // namespace

extern const Architecture kYoutu;
constexpr Architecture kYoutu = {
    .names = kYoutuNames,
    .model_types = kYoutuTypes,
    .prefix = "model.",
    .read_config = read_youtu,
    .fields = kYoutuFields,
    .tensors = kYoutuTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
