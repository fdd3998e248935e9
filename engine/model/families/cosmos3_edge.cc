// Cosmos 3 Edge, a checkpoint that sees: its text model is Llama's block with an MLP without a
// gate. What makes images and motions is beside it in published files. Source: models/cosmos3_edge
// in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/known_fields.h"
#include "engine/model/llama_fields.h"
#include "engine/model/multimodal_fields.h"

namespace tgi {
namespace {

constexpr DecoderFields kCosmosDecoder = {
    .default_vocab_size = 131072,
    .default_hidden_size = 2048,
    .default_num_layers = 28,
    .default_num_heads = 16,
    .default_num_kv_heads = 8,
    .default_head_dim = 128,
    .default_intermediate = 9216,
    .default_max_positions = 131072,
    .default_norm_eps = 1e-5,
    .default_activation = "relu2",
    .default_bos = 1,
    .default_eos = 11,
};

ModelConfig read_cosmos3_edge(const JsonReader& config) {
  return read_ungated_config(config, kCosmosDecoder, {.default_theta = 1e8});
}

constexpr auto kCosmosSeeingFields = join_fields(
    kMultimodalFields, std::to_array<KnownField>({harmless("projector_hidden_size", kImages)}));

constexpr auto kCosmosNames = std::to_array<std::string_view>({"Cosmos3EdgeTextModel"});
constexpr auto kCosmosTypes = std::to_array<std::string_view>({"cosmos3_edge_text"});
constexpr auto kCosmosSeeingNames =
    std::to_array<std::string_view>({"Cosmos3EdgeForConditionalGeneration"});
constexpr auto kCosmosSeeingTypes = std::to_array<std::string_view>({"cosmos3_edge"});

// As they are published, and as `transformers` calls the MLP's within.
constexpr auto kCosmosRenames = std::to_array<TensorRename>({
    {".self_attn.to_q.", ".self_attn.q_proj."},
    {".self_attn.to_k.", ".self_attn.k_proj."},
    {".self_attn.to_v.", ".self_attn.v_proj."},
    {".self_attn.to_out.", ".self_attn.o_proj."},
    {".mlp.fc1.", ".mlp.up_proj."},
    {".mlp.fc2.", ".mlp.down_proj."},
});

constexpr auto kCosmosIgnored = std::to_array<std::string_view>({
    "visual.*",
    "projector.*",
    // Of what makes images and motions.
    "action_modality_embed",
    "action_proj_in.*",
    "action_proj_out.*",
    "time_embedder.*",
    "proj_in.*",
    "proj_out.*",
    "norm_moe_gen.*",
    ".input_layernorm_moe_gen.weight",
    ".post_attention_layernorm_moe_gen.weight",
    ".mlp_moe_gen.up_proj.weight",
    ".mlp_moe_gen.down_proj.weight",
    ".self_attn.add_q_proj.weight",
    ".self_attn.add_k_proj.weight",
    ".self_attn.add_v_proj.weight",
    ".self_attn.to_add_out.weight",
    ".self_attn.norm_added_q.weight",
    ".self_attn.norm_added_k.weight",
    ".self_attn.k_norm_und_for_gen.weight",
});

}  // namespace

extern const Architecture kCosmos3Edge;
constexpr Architecture kCosmos3Edge = {
    .names = kCosmosNames,
    .model_types = kCosmosTypes,
    .prefix = "model.",
    .read_config = read_cosmos3_edge,
    .fields = kLlamaBlockFields,
    .tensors = kUngatedTensors,
    .renames = kCosmosRenames,
    .ignored = kCosmosIgnored,
};

extern const Architecture kCosmos3EdgeSeeing;
constexpr Architecture kCosmos3EdgeSeeing = multimodal_of(kCosmosSeeingNames,
                                                          kCosmosSeeingTypes,
                                                          R"({"model_type": "cosmos3_edge_text"})",
                                                          kCosmosSeeingFields,
                                                          kCosmosIgnored,
                                                          "model.");

}  // namespace tgi
