// Baichuan 1 and 2: Llama's block with q, k and v in one matrix; rotary embeddings (7B) or ALiBi
// (13B). The second divides each row of its head by its length.
// Source: modeling_baichuan.py of the published models.
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/error.h"
#include "engine/model/alibi.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr std::string_view kPositions = "max_position_embeddings";

ModelConfig read_baichuan(const JsonReader& config) {
  // Models with rotary embeddings say how many positions they have, those with ALiBi how long a
  // text may be.
  const bool has_alibi = config.has("model_max_length") && !config.has(kPositions);
  ModelConfig model = read_decoder_config(
      config, {.num_kv_heads = "",
               .head_dim = "",
               .max_positions = has_alibi ? std::string_view("model_max_length") : kPositions,
               .default_vocab_size = 64000,
               .default_max_positions = 4096});
  // Baichuan 2 alone has this field, whatever its value.
  const bool divides_head = config.json().contains("z_loss_weight");
  if (divides_head) model.head_division = HeadDivision::kRows;
  if (divides_head && model.tied_embeddings) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: Baichuan 2 divides each row of its head by its length, and can't "
                            "tie it to the embedding",
                            config.path_of("tie_word_embeddings")));
  }
  if (has_alibi) {
    model.alibi_slopes = alibi_slopes_of_lower_power(model.num_heads);
  } else {
    read_rope(config, model);
  }
  return model;
}

constexpr auto kBaichuanFields = std::to_array<KnownField>({
    read("vocab_size"),
    read("hidden_size"),
    read("intermediate_size"),
    read("num_hidden_layers"),
    read("num_attention_heads"),
    read("hidden_act"),
    read("max_position_embeddings"),
    read("model_max_length"),
    read("rms_norm_eps"),
    read_or_null("tie_word_embeddings"),
    read_or_null("z_loss_weight"),
});

constexpr auto kBaichuanNames =
    std::to_array<std::string_view>({"BaichuanForCausalLM", "BaiChuanForCausalLM"});
constexpr auto kBaichuanTypes = std::to_array<std::string_view>({"baichuan"});

constexpr auto kBaichuanTensors =
    join_tensors(kLlamaOuterTensors,
                 kLlamaNormTensors,
                 std::to_array<TensorSpec>({
                     {Role::kQkv, "model.layers.{layer}.self_attn.W_pack.weight", Dim::kQkv,
                      Dim::kHidden, Split::kRows},
                 }),
                 kLlamaOTensors,
                 kLlamaMlpTensors);

}  // namespace

extern const Architecture kBaichuan;
constexpr Architecture kBaichuan = {
    .names = kBaichuanNames,
    .model_types = kBaichuanTypes,
    .prefix = "model.",
    .read_config = read_baichuan,
    .fields = kBaichuanFields,
    .tensors = kBaichuanTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
