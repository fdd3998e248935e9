// One function for each architecture of GGUF files, or for several that differ in name alone: fills
// in the config and the names of tensors of a model. Each stands in a file of architectures/.
#pragma once

#include "engine/gguf/model_reader.h"

namespace tgi::gguf {

void read_afmoe(ModelReader& model);
void read_apertus(ModelReader& model);
void read_arcee(ModelReader& model);
void read_baichuan(ModelReader& model);
void read_bailingmoe2(ModelReader& model);
void read_bert(ModelReader& model);
void read_bloom(ModelReader& model);
void read_chatglm(ModelReader& model);
void read_codeshell(ModelReader& model);
void read_cohere2(ModelReader& model);
void read_cohere2moe(ModelReader& model);
void read_command_r(ModelReader& model);
void read_dbrx(ModelReader& model);
void read_deci(ModelReader& model);
void read_deepseek(ModelReader& model);
void read_deepseek2(ModelReader& model);
void read_deepseek32(ModelReader& model);
void read_dots1(ModelReader& model);
void read_ernie4_5(ModelReader& model);
void read_ernie4_5_moe(ModelReader& model);
void read_exaone(ModelReader& model);
void read_exaone4(ModelReader& model);
void read_exaone_moe(ModelReader& model);
void read_falcon(ModelReader& model);
void read_falcon_h1(ModelReader& model);
void read_gemma(ModelReader& model);
void read_gemma2(ModelReader& model);
void read_gemma3(ModelReader& model);
void read_gemma3n(ModelReader& model);
void read_gemma4(ModelReader& model);
void read_gemma_embedding(ModelReader& model);
void read_glm4(ModelReader& model);
void read_glm4moe(ModelReader& model);
void read_glm_dsa(ModelReader& model);
void read_gpt2(ModelReader& model);
void read_gpt_oss(ModelReader& model);
void read_gptneox(ModelReader& model);
void read_granite(ModelReader& model);
void read_granite_swa(ModelReader& model);
void read_granitehybrid(ModelReader& model);
void read_granitemoe(ModelReader& model);
void read_hunyuan_dense(ModelReader& model);
void read_hunyuan_moe(ModelReader& model);
void read_hunyuan_vl(ModelReader& model);
void read_hy_v3(ModelReader& model);
void read_jais2(ModelReader& model);
void read_jamba(ModelReader& model);
void read_jina_bert_v2(ModelReader& model);
void read_kimi_linear(ModelReader& model);
void read_laguna(ModelReader& model);
void read_lfm2(ModelReader& model);
void read_lfm2moe(ModelReader& model);
void read_llama(ModelReader& model);
void read_llama4(ModelReader& model);
void read_maincoder(ModelReader& model);
void read_mamba(ModelReader& model);
void read_mamba2(ModelReader& model);
void read_mellum(ModelReader& model);
void read_minicpm(ModelReader& model);
void read_minicpm3(ModelReader& model);
void read_minimax_m2(ModelReader& model);
void read_mistral3(ModelReader& model);
void read_mistral4(ModelReader& model);
void read_modern_bert(ModelReader& model);
void read_mpt(ModelReader& model);
void read_muse_glimmer(ModelReader& model);
void read_nanbeige(ModelReader& model);
void read_nemotron(ModelReader& model);
void read_nemotron_h(ModelReader& model);
void read_nemotron_h_moe(ModelReader& model);
void read_nomic_bert(ModelReader& model);
void read_olmo(ModelReader& model);
void read_olmo2(ModelReader& model);
void read_olmoe(ModelReader& model);
void read_orion(ModelReader& model);
void read_paddleocr(ModelReader& model);
void read_pangu_embedded(ModelReader& model);
void read_phi2(ModelReader& model);
void read_phi3(ModelReader& model);
void read_phimoe(ModelReader& model);
void read_qwen(ModelReader& model);
void read_qwen2(ModelReader& model);
void read_qwen2moe(ModelReader& model);
void read_qwen2vl(ModelReader& model);
void read_qwen3(ModelReader& model);
void read_qwen35(ModelReader& model);
void read_qwen3moe(ModelReader& model);
void read_qwen3next(ModelReader& model);
void read_qwen3vl(ModelReader& model);
void read_qwen3vlmoe(ModelReader& model);
void read_seed_oss(ModelReader& model);
void read_smollm3(ModelReader& model);
void read_stablelm(ModelReader& model);
void read_starcoder(ModelReader& model);
void read_starcoder2(ModelReader& model);

// What some of them share.

// The multipliers of Granite and its followers; the names of their experts.
void read_granite_multipliers(ModelReader& model);
// DeepSeek's latent attention.
void read_latents(ModelReader& model);
void name_latents(ModelReader& model);
void name_granite_experts(ModelReader& model);
void name_mixtral_experts(ModelReader& model);
void name_qwen_experts(ModelReader& model);  // with one that all tokens go to, behind a gate

}  // namespace tgi::gguf
