#include "engine/text/tokenizer/tokenizer_classes.h"

#include <algorithm>

namespace tgi {
namespace {

constexpr std::string_view kGpt2Types[] = {"gpt2",  "codegen", "dbrx", "gpt_neo",   "gptj",
                                           "jais2", "opt",     "phi",  "starcoder2"};
constexpr std::string_view kCodeLlamaTypes[] = {"code_llama"};
constexpr std::string_view kGemmaTypes[] = {
    "gemma", "gemma2", "gemma3", "gemma3_text", "gemma3n", "gemma3n_text", "recurrent_gemma"};
constexpr std::string_view kQwen2Types[] = {
    "qwen2",        "qwen2_moe",  "qwen2_vl",  "qwen2_5_vl", "qwen2_audio",
    "qwen3",        "qwen3_moe",  "qwen3_asr", "qwen3_next", "qwen3_vl",
    "qwen3_vl_moe", "hunyuan_vl", "internvl",  "ovis2",      "qianfan_ocr"};
constexpr std::string_view kQwen35Types[] = {"qwen3_5", "qwen3_5_moe", "qwen3_5_moe_text",
                                             "qwen3_5_text"};
constexpr std::string_view kCohereTypes[] = {"cohere", "cohere2", "aya_vision"};
constexpr std::string_view kNeoxTypes[] = {"gpt_neox", "falcon_mamba", "mamba", "mamba2",
                                           "mpt",      "olmo",         "olmoe", "rwkv"};
constexpr std::string_view kRobertaTypes[] = {"roberta", "bart"};

constexpr std::string_view kEndOfText = "<|endoftext|>";

// As transformers 5 has them, and CodeGenTokenizer of version 4.
constexpr TokenizerClass kTokenizerClasses[] = {
    {.name = "GPT2Tokenizer",
     .model_types = kGpt2Types,
     .bos = kEndOfText,
     .eos = kEndOfText,
     .unk = kEndOfText},
    {.name = "CodeGenTokenizer", .bos = kEndOfText, .eos = kEndOfText, .unk = kEndOfText},
    {.name = "LlamaTokenizer", .bos = "<s>", .eos = "</s>", .unk = "<unk>"},
    {.name = "CodeLlamaTokenizer",
     .model_types = kCodeLlamaTypes,
     .bos = "<s>",
     .eos = "</s>",
     .unk = "<unk>"},
    {.name = "GemmaTokenizer",
     .model_types = kGemmaTypes,
     .bos = "<bos>",
     .eos = "<eos>",
     .unk = "<unk>",
     .pad = "<pad>",
     .mask = "<mask>"},
    {.name = "Qwen2Tokenizer",
     .model_types = kQwen2Types,
     .eos = kEndOfText,
     .unk = kEndOfText,
     .pad = kEndOfText},
    {.name = "Qwen3_5Tokenizer",
     .model_types = kQwen35Types,
     .eos = kEndOfText,
     .unk = kEndOfText,
     .pad = kEndOfText},
    {.name = "CohereTokenizer",
     .model_types = kCohereTypes,
     .bos = "<BOS_TOKEN>",
     .eos = "<|END_OF_TURN_TOKEN|>",
     .unk = "<UNK>",
     .sep = "<SEP>",
     .pad = "<PAD>",
     .cls = "<CLS>",
     .mask = "<MASK_TOKEN>"},
    {.name = "GPTNeoXTokenizer",
     .model_types = kNeoxTypes,
     .bos = kEndOfText,
     .eos = kEndOfText,
     .unk = kEndOfText,
     .pad = "<|padding|>"},
    {.name = "RobertaTokenizer",
     .model_types = kRobertaTypes,
     .bos = "<s>",
     .eos = "</s>",
     .unk = "<unk>",
     .sep = "</s>",
     .pad = "<pad>",
     .cls = "<s>",
     .mask = "<mask>"},
};

}  // namespace

const TokenizerClass* find_tokenizer_class(std::string_view name, std::string_view model_type) {
  constexpr std::string_view kFast = "Fast";
  if (name.ends_with(kFast)) name.remove_suffix(kFast.size());
  for (const TokenizerClass& row : kTokenizerClasses) {
    const bool is_meant =
        name.empty() ? std::ranges::find(row.model_types, model_type) != row.model_types.end()
                     : name == row.name;
    if (is_meant) return &row;
  }
  return nullptr;
}

}  // namespace tgi
