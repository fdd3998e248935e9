// Arcee (AFM): Llama's block with an MLP without a gate.
// Source: models/arcee in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/llama_fields.h"

namespace tgi {
namespace {

constexpr DecoderFields kArceeDecoder = {
    .default_hidden_size = 2560,
    .default_intermediate = 18432,
    .default_max_positions = 4096,
    .default_norm_eps = 1e-5,
    .default_activation = "relu2",
    .default_bos = 128000,
    .default_eos = 128001,
};

ModelConfig read_arcee(const JsonReader& config) {
  return read_ungated_config(config, kArceeDecoder);
}

constexpr auto kArceeNames = std::to_array<std::string_view>({"ArceeForCausalLM"});
constexpr auto kArceeTypes = std::to_array<std::string_view>({"arcee"});

}  // namespace

extern const Architecture kArcee;
constexpr Architecture kArcee = {
    .names = kArceeNames,
    .model_types = kArceeTypes,
    .prefix = "model.",
    .read_config = read_arcee,
    .fields = kLlamaBlockFields,
    .tensors = kUngatedTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
