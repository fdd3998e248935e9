#include "engine/text/tokenizer/tiktoken_classes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace tgi {
namespace {

using Names = std::vector<std::string>;

// Of TikTokenConverter in transformers' convert_slow_tokenizer.py; GLM 4's class has it too.
constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Of tokenization_qwen.py beside Qwen's first models.
constexpr std::string_view kQwenPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Of tokenization_kimi.py beside Kimi K2.
constexpr std::string_view kKimiPattern =
    R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

[[noreturn]] void fail_without_list() {
  throw Error(Code::kUnsupported,
              "which tokens are special is known neither from an added_tokens_decoder of a "
              "tokenizer_config.json nor from the tokenizer's class; put the model's "
              "tokenizer_config.json or tokenizer.json beside it");
}

Names no_list(const TiktokenConfig& /*config*/, size_t /*num_ranks*/) {
  fail_without_list();
}

// None when the folder lists some under another name, else
// DEFAULT_LLAMA_SPECIAL_TOKENS of transformers' convert_llama_weights_to_hf.py. Llama 3.1 and later
// ones, which scale their rope, have names for three that Llama 3 reserved.
Names llama3_list(const TiktokenConfig& config, size_t num_ranks) {
  constexpr size_t kNumRanks = 128'000;
  constexpr size_t kNumSpecial = 256;
  if (!config.extra_special_tokens.empty()) return {};
  if (config.model_type != "llama" || num_ranks != kNumRanks) fail_without_list();
  Names out = {"<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>",
               "<|reserved_special_token_1|>"};
  size_t reserved = 2;
  const auto reserve = [&] {
    out.push_back(fmt::format("<|reserved_special_token_{}|>", reserved++));
  };
  if (config.rope_type == "llama3") {
    out.emplace_back("<|finetune_right_pad_id|>");
    reserve();
    out.insert(out.end(), {"<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>",
                           "<|python_tag|>"});
  } else {
    reserve();
    reserve();
    out.insert(out.end(), {"<|start_header_id|>", "<|end_header_id|>"});
    reserve();
    out.emplace_back("<|eot_id|>");
  }
  while (out.size() < kNumSpecial) reserve();
  return out;
}

Names qwen_list(const TiktokenConfig& /*config*/, size_t /*num_ranks*/) {
  constexpr int kNumExtra = 205;
  Names out = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  for (int i = 0; i < kNumExtra; ++i) out.push_back(fmt::format("<|extra_{}|>", i));
  return out;
}

// Those that transformers reads such files by.
constexpr std::string_view kGeneralNames[] = {"PreTrainedTokenizerFast", "TokenizersBackend",
                                              "LlamaTokenizerFast", "LlamaTokenizer"};
constexpr std::string_view kQwenNames[] = {"QWenTokenizer"};
constexpr std::string_view kKimiNames[] = {"TikTokenTokenizer"};
constexpr std::string_view kGlmNames[] = {"ChatGLM4Tokenizer"};
constexpr std::string_view kLlama3Before[] = {"<|begin_of_text|>"};
constexpr std::string_view kGlmBefore[] = {"[gMASK]", "<sop>"};

constexpr TiktokenClass kClasses[] = {
    {.names = kGeneralNames,
     .model_type = "llama",
     .pattern = kLlama3Pattern,
     .special = llama3_list,
     .before = kLlama3Before},
    {.names = kQwenNames,
     .model_type = "qwen",
     .pattern = kQwenPattern,
     .normalizes = true,
     .special = qwen_list},
    {.names = kKimiNames, .model_type = "kimi_k2", .pattern = kKimiPattern, .special = no_list},
    {.names = kGlmNames,
     .pattern = kLlama3Pattern,
     .special = no_list,
     .before = kGlmBefore,
     .needs_before = true,
     .only_first = true},
};

}  // namespace

const TiktokenClass& find_tiktoken_class(const TiktokenConfig& config) {
  std::string known;
  for (const TiktokenClass& row : kClasses) {
    const bool is_named =
        std::find(row.names.begin(), row.names.end(), config.tokenizer_class) != row.names.end();
    const bool is_meant = config.tokenizer_class.empty() && !row.model_type.empty() &&
                          config.model_type == row.model_type;
    if (is_named || is_meant) return row;
    for (const std::string_view name : row.names) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
    }
  }
  throw Error(Code::kUnsupported,
              fmt::format("ranks of tiktoken without a tokenizer.json are read for the classes {}; "
                          "tokenizer_config.json has tokenizer_class \"{}\"; put a tokenizer.json "
                          "beside it, as copies of the model that transformers wrote have one",
                          known, config.tokenizer_class));
}

}  // namespace tgi
