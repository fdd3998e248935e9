// The architectures of GGUF files that can be read; each stands in a file of architectures/.
#include <span>

#include "engine/gguf/model_reader.h"

namespace tgi::gguf {

void read_arcee(ModelReader& model);
void read_chatglm(ModelReader& model);
void read_cohere2(ModelReader& model);
void read_command_r(ModelReader& model);
void read_deepseek2(ModelReader& model);
void read_ernie4_5(ModelReader& model);
void read_ernie4_5_moe(ModelReader& model);
void read_exaone(ModelReader& model);
void read_exaone4(ModelReader& model);
void read_falcon(ModelReader& model);
void read_gemma(ModelReader& model);
void read_gemma2(ModelReader& model);
void read_gemma3(ModelReader& model);
void read_glm4(ModelReader& model);
void read_glm4moe(ModelReader& model);
void read_gpt_oss(ModelReader& model);
void read_gptneox(ModelReader& model);
void read_granite(ModelReader& model);
void read_granitemoe(ModelReader& model);
void read_hunyuan_dense(ModelReader& model);
void read_lfm2(ModelReader& model);
void read_lfm2moe(ModelReader& model);
void read_llama(ModelReader& model);
void read_minicpm(ModelReader& model);
void read_nemotron(ModelReader& model);
void read_olmo(ModelReader& model);
void read_olmo2(ModelReader& model);
void read_olmoe(ModelReader& model);
void read_phi2(ModelReader& model);
void read_phi3(ModelReader& model);
void read_qwen2(ModelReader& model);
void read_qwen2moe(ModelReader& model);
void read_qwen2vl(ModelReader& model);
void read_qwen3(ModelReader& model);
void read_qwen3moe(ModelReader& model);
void read_qwen3vl(ModelReader& model);
void read_qwen3vlmoe(ModelReader& model);
void read_seed_oss(ModelReader& model);
void read_smollm3(ModelReader& model);
void read_stablelm(ModelReader& model);
void read_starcoder2(ModelReader& model);

namespace {

// clang-format off: one line each
constexpr GgufArchitecture kArchitectures[] = {
    {"arcee", read_arcee},
    {"chatglm", read_chatglm},
    {"cohere2", read_cohere2},
    {"command-r", read_command_r},
    {"deepseek2", read_deepseek2},
    {"ernie4_5", read_ernie4_5},
    {"ernie4_5-moe", read_ernie4_5_moe},
    {"exaone", read_exaone},
    {"exaone4", read_exaone4},
    {"falcon", read_falcon},
    {"gemma", read_gemma},
    {"gemma2", read_gemma2},
    {"gemma3", read_gemma3},
    {"glm4", read_glm4},
    {"glm4moe", read_glm4moe},
    {"gpt-oss", read_gpt_oss},
    {"gptneox", read_gptneox},
    {"granite", read_granite},
    {"granitemoe", read_granitemoe},
    {"hunyuan-dense", read_hunyuan_dense},
    {"internlm2", read_llama},
    {"lfm2", read_lfm2},
    {"lfm2moe", read_lfm2moe},
    {"llama", read_llama},
    {"minicpm", read_minicpm},
    {"nemotron", read_nemotron},
    {"olmo", read_olmo},
    {"olmo2", read_olmo2},
    {"olmoe", read_olmoe},
    {"phi2", read_phi2},
    {"phi3", read_phi3},
    {"qwen2", read_qwen2},
    {"qwen2moe", read_qwen2moe},
    {"qwen2vl", read_qwen2vl},
    {"qwen3", read_qwen3},
    {"qwen3moe", read_qwen3moe},
    {"qwen3vl", read_qwen3vl},
    {"qwen3vlmoe", read_qwen3vlmoe},
    {"seed_oss", read_seed_oss},
    {"smollm3", read_smollm3},
    {"stablelm", read_stablelm},
    {"starcoder2", read_starcoder2},
    {"xverse", read_llama},
};
// clang-format on

}  // namespace

std::span<const GgufArchitecture> gguf_architectures() {
  return kArchitectures;
}

}  // namespace tgi::gguf
