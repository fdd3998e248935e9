// What users may name: types of weights, formats, backends, instruction sets. One list each, down
// here because the commands, which see nothing of the engine, offer and check the same names as the
// engine knows. The registries of the engine are made from these lists or are compared with them:
//   kToolDialectNames, kReasoningDialectNames  engine/dialect/dialect.cc
//   kWeightFormatNames, kEncoderNames  engine/weights/weight_format.cc,
//   engine/weights/weight_encoder.cc kBackendNames engine/runtime/backend_loader.cc kCpuIsaNames
//   engine/cpu/kernel_sets.cc kDTypeNames, kRoundingNames        engine/tensor
//   (tests/weights/known_names_test.cc)
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace tgi {

using Names = std::span<const std::string_view>;

template <typename... Text>
constexpr auto names(Text... text) {
  return std::array<std::string_view, sizeof...(Text)>{text...};
}

// One list of several.
template <size_t... kSizes>
constexpr auto joined(const std::array<std::string_view, kSizes>&... lists) {
  std::array<std::string_view, (kSizes + ...)> out;
  auto* end = out.data();
  ((end = std::copy(lists.begin(), lists.end(), end)), ...);
  return out;
}

inline constexpr auto kAutoName = names("auto");

// Element types: of weights, and of a KV cache alone.
inline constexpr auto kDTypeNames = names("f32", "bf16", "f16");
inline constexpr auto kCacheOnlyDTypeNames = names("f8e4m3", "int8");

// What the matrices of layers can be rounded to while loading.
inline constexpr auto kRoundingNames = names("int8", "int4");

// In place of a folder with heads that draft: the layer for the next tokens of the model's own
// checkpoint.
inline constexpr std::string_view kOwnLayer = "mtp";

// Formats of quantised checkpoints. Each is one file of engine/weights/formats/.
inline constexpr auto kWeightFormatNames = names("compressed-tensors",
                                                 "gptq",
                                                 "awq",
                                                 "fp8",
                                                 "mxfp4",
                                                 "modelopt",
                                                 "bitnet",
                                                 "torchao",
                                                 "bitsandbytes",
                                                 "hqq",
                                                 "exl2",
                                                 "gguf");

// TGI's words for rounding while loading, and what is done for them; "bitsandbytes" also names a
// format, and means that where a checkpoint is so.
struct RoundingAlias {
  std::string_view name;
  std::string_view rounding;
};
inline constexpr auto kRoundingAliases = std::to_array<RoundingAlias>({
    {"eetq", "int8"},
    {"bitsandbytes", "int8"},
    {"bitsandbytes-nf4", "int4"},
    {"bitsandbytes-fp4", "int4"},
});
inline constexpr auto kRoundingAliasNames = names("eetq", "bitsandbytes-nf4", "bitsandbytes-fp4");

// How several adapters are merged into one, and which sign prevails where they differ
// (engine/lora/merge_rules.h).
inline constexpr auto kMergeStrategyNames = names("linear", "ties", "dare_linear", "dare_ties");
inline constexpr auto kMajoritySignNames = names("total", "frequency");

// What `tgi quantize` writes. Each is one constant in engine/weights/formats/*_encode.cc.
inline constexpr auto kEncoderNames = names("int8", "int4", "gptq", "awq", "fp8");

// How models write calls of tools and reasoning. Each is one file of engine/dialect/dialects/. The
// first that a chat template shows is meant: those whose marks hold another's go before it.
inline constexpr auto kToolDialectNames = names("gpt_oss",
                                                "deepseek_v32",
                                                "deepseek_v41",
                                                "deepseek_v4",
                                                "deepseek_v3",
                                                "deepseek_v31",
                                                "kimi_k2",
                                                "inkling",
                                                "kimi_k3",
                                                "minimax_m3",
                                                "minimax_m2",
                                                "minimax_m1",
                                                "seed_oss",
                                                "iquest_q1",
                                                "k2_horizon",
                                                "glm45",
                                                "longcat_keys",
                                                "longcat",
                                                "step3",
                                                "dots",
                                                "olmo3",
                                                "minicpm5",
                                                "qwen3_coder",
                                                "functionary",
                                                "functionary_v32",
                                                "functionary_v22",
                                                "muse_glimmer",
                                                "gemma4",
                                                "function_gemma",
                                                "mistral_v11",
                                                "mistral",
                                                "command_r7b",
                                                "command_r_plus",
                                                "lfm2",
                                                "granite",
                                                "phi4_mini",
                                                "firefunction_v2",
                                                "granite_20b_fc",
                                                "nemotron_json",
                                                "apriel",
                                                "hunyuan",
                                                "hunyuan_v3",
                                                "apertus",
                                                "solar_open2",
                                                "solar_open",
                                                "gigachat35",
                                                "gigachat",
                                                "internlm2",
                                                "glm4",
                                                "hermes",
                                                "pythonic",
                                                "xlam",
                                                "llama3_json",
                                                "generic");
inline constexpr auto kReasoningDialectNames = names("gpt_oss",
                                                     "command_r7b",
                                                     "seed_oss",
                                                     "mistral",
                                                     "apriel",
                                                     "hunyuan_v3",
                                                     "solar_open",
                                                     "gemma4",
                                                     "kimi_k3",
                                                     "longcat",
                                                     "minimax_m3",
                                                     "muse_glimmer",
                                                     "solar_open2",
                                                     "inkling",
                                                     "k2_horizon",
                                                     "apertus",
                                                     "gigachat35",
                                                     "ernie45",
                                                     "hunyuan",
                                                     "granite",
                                                     "kimi_vl",
                                                     "think");

inline constexpr auto kBackendNames = names("cpu", "cuda", "reference");

// Instruction sets of x86-64 that there are kernels for, best first; the last is there everywhere.
inline constexpr auto kCpuIsaNames =
    names("amx", "avx512bf16", "avx512vnni", "avx512", "avxvnni", "avx2", "generic");

}  // namespace tgi
