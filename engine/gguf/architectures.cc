// The architectures of GGUF files that can be read.
#include "engine/gguf/architectures.h"

#include <span>

namespace tgi::gguf {

namespace {

// clang-format off: one line each
constexpr GgufArchitecture kArchitectures[] = {
    {"afmoe", read_afmoe},
    {"apertus", read_apertus},
    {"arcee", read_arcee},
    {"baichuan", read_baichuan},
    {"bailingmoe2", read_bailingmoe2},
    {"bert", read_bert},
    {"bloom", read_bloom},
    {"chatglm", read_chatglm},
    {"cohere2", read_cohere2},
    {"cohere2moe", read_cohere2moe},
    {"command-r", read_command_r},
    {"dbrx", read_dbrx},
    {"deepseek2", read_deepseek2},
    {"deepseek32", read_deepseek32},
    {"dots1", read_dots1},
    {"ernie4_5", read_ernie4_5},
    {"ernie4_5-moe", read_ernie4_5_moe},
    {"exaone", read_exaone},
    {"exaone-moe", read_exaone_moe},
    {"exaone4", read_exaone4},
    {"falcon", read_falcon},
    {"falcon-h1", read_falcon_h1},
    {"gemma", read_gemma},
    {"gemma-embedding", read_gemma_embedding},
    {"gemma2", read_gemma2},
    {"gemma3", read_gemma3},
    {"gemma3n", read_gemma3n},
    {"gemma4", read_gemma4},
    {"glm-dsa", read_glm_dsa},
    {"glm4", read_glm4},
    {"glm4moe", read_glm4moe},
    {"gpt-oss", read_gpt_oss},
    {"gpt2", read_gpt2},
    {"gptneox", read_gptneox},
    {"granite", read_granite},
    {"granite_swa", read_granite_swa},
    {"granitehybrid", read_granitehybrid},
    {"granitemoe", read_granitemoe},
    {"hunyuan-dense", read_hunyuan_dense},
    {"hunyuan-moe", read_hunyuan_moe},
    {"hy_v3", read_hy_v3},
    {"internlm2", read_llama},
    {"jais2", read_jais2},
    {"jamba", read_jamba},
    {"laguna", read_laguna},
    {"lfm2", read_lfm2},
    {"lfm2moe", read_lfm2moe},
    {"llama", read_llama},
    {"llama4", read_llama4},
    {"mamba", read_mamba},
    {"mamba2", read_mamba2},
    {"mellum", read_mellum},
    {"minicpm", read_minicpm},
    {"minicpm3", read_minicpm3},
    {"minimax-m2", read_minimax_m2},
    {"mistral3", read_mistral3},
    {"mistral4", read_mistral4},
    {"modern-bert", read_modern_bert},
    {"mpt", read_mpt},
    {"nemotron", read_nemotron},
    {"nemotron_h", read_nemotron_h},
    {"nemotron_h_moe", read_nemotron_h_moe},
    {"nomic-bert", read_nomic_bert},
    {"olmo", read_olmo},
    {"olmo2", read_olmo2},
    {"olmoe", read_olmoe},
    {"orion", read_orion},
    {"pangu-embedded", read_pangu_embedded},
    {"phi2", read_phi2},
    {"phi3", read_phi3},
    {"phimoe", read_phimoe},
    {"qwen", read_qwen},
    {"qwen2", read_qwen2},
    {"qwen2moe", read_qwen2moe},
    {"qwen2vl", read_qwen2vl},
    {"qwen3", read_qwen3},
    {"qwen35", read_qwen35},
    {"qwen35moe", read_qwen35},
    {"qwen3moe", read_qwen3moe},
    {"qwen3next", read_qwen3next},
    {"qwen3vl", read_qwen3vl},
    {"qwen3vlmoe", read_qwen3vlmoe},
    {"seed_oss", read_seed_oss},
    {"smollm3", read_smollm3},
    {"stablelm", read_stablelm},
    {"starcoder", read_starcoder},
    {"starcoder2", read_starcoder2},
    {"xverse", read_llama},
};
// clang-format on

}  // namespace

std::span<const GgufArchitecture> gguf_architectures() {
  return kArchitectures;
}

}  // namespace tgi::gguf
