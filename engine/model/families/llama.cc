// Llama 1 to 3 and the many models that took its block as it is.
// Source: models/llama in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/llama_fields.h"

namespace tgi {
namespace {

ModelConfig read_llama(const JsonReader& config) {
  return read_llama_block(config, {});
}

constexpr auto kLlamaFields = join_fields(
    kLlamaBlockFields,
    std::to_array<KnownField>({
        harmless("max_window_layers", "says where windows begin, and there are none"),
        harmless_if("qkv_bias", "[false]", "attention_bias says which biases there are"),
        harmless_if("bias", "[false]", "attention_bias and mlp_bias say which biases there are"),
    }));

constexpr auto kLlamaTypes = std::to_array<std::string_view>({"llama"});

constexpr auto kLlamaNames =
    std::to_array<std::string_view>({"LlamaForCausalLM", "LLaMAForCausalLM"});

}  // namespace

extern const Architecture kLlama;
constexpr Architecture kLlama = {
    .names = kLlamaNames,
    .model_types = kLlamaTypes,
    .prefix = "model.",
    .read_config = read_llama,
    .fields = kLlamaFields,
    .tensors = kLlamaBlockTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
