#include "engine/gguf/pre_tokenizers.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"

namespace tgi::gguf {
namespace {

using std::string_view;

// Where a tokenizer.json cuts numbers into threes counted from their ends, it looks ahead anew at
// each digit, which takes a minute for a long number; here the first of a number's cuts is found
// so, and the others follow from it (\G).
// clang-format off: a pattern is one line
constexpr string_view kDefaultPatterns[] = {
    R"~([\p{P}\$\+<=>\^~\|]+)~",
    R"~('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))~",
    R"~(\p{N}+)~",
    R"~([0-9][0-9][0-9])~",
};
constexpr string_view kMinicpm5Patterns[] = {
    R"~(\p{N}{1,3})~",
    R"~((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)~",
};
constexpr string_view kLlama3Patterns[] = {
    R"~((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)~",
};
constexpr string_view kDeepseekLlmPatterns[] = {
    R"~([\r\n])~",
    R"~(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)~",
    R"~(\s?[!-/:-~！-／：-～‘-‟　-。]+)~",
    R"~(\s+$)~",
    R"~([一-龥ࠀ-一가-퟿]+)~",
    R"~(\p{N}+)~",
};
constexpr string_view kDeepseekCoderPatterns[] = {
    R"~([\r\n])~", R"~(\s?\p{L}+)~", R"~(\s?\p{P}+)~", R"~([一-龥ࠀ-一가-퟿]+)~",
    R"~(\p{N})~",
};
constexpr string_view kDeepseekV3Patterns[] = {
    R"~(\p{N}{1,3})~",
    R"~([一-龥぀-ゟ゠-ヿ]+)~",
    R"~([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)~",
};
constexpr string_view kSpark25Patterns[] = {
    R"~(\p{N}{1,3})~",
    R"~([一-龥぀-ゟ゠-ヿ]+)~",
    R"~([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)~",
    R"~(\p{N})~",
};
constexpr string_view kYoutuPatterns[] = {
    R"~([가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+)~",
    R"~([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)~",
};
constexpr string_view kFalconPatterns[] = {
    R"~([\p{P}\$\+<=>\^~\|`]+)~",
    R"~('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))~",
    R"~([0-9][0-9][0-9])~",
};
constexpr string_view kGpt2Patterns[] = {
    R"~('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))~",
};
constexpr string_view kStarcoderPatterns[] = {
    R"~(\p{N})~",
    R"~('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))~",
};
constexpr string_view kJais2Patterns[] = {
    R"~((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})~",
};
constexpr string_view kQwen2Patterns[] = {
    R"~((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)~",
};
constexpr string_view kQwen35Patterns[] = {
    R"~((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)~",
};
constexpr string_view kPoroChatPatterns[] = {
    R"~( ?[^(\s|.,!?…。，、।۔،)]+)~",
};
constexpr string_view kVikingPatterns[] = {
    R"~( ?[^(\s|.,!?…。，、।۔،)]+)~",
    R"~(\p{N})~",
};
constexpr string_view kTekkenPatterns[] = {
    R"~([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)~",
};
constexpr string_view kExaoneMoePatterns[] = {
    R"~((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)~",
};
constexpr string_view kGpt4oPatterns[] = {
    R"~([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)~",
};
constexpr string_view kTinyAyaPatterns[] = {
    R"~((?<!\d)\d{1,3}(?=(?:\d{3})*+\b)|(?<=\d)\G\d{3})~",
    R"~([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)~",
};
constexpr string_view kSuperbpePatterns[] = {
    R"~(\p{N}+)~",
    R"~([^\d]\K(?=(?:\d{3})++(?!\d))|(?<!\d)\d{1,3}(?=(?:\d{3})++(?!\d))\K|(?<=\d)\G\d{3}\K(?=\d))~",
};
constexpr string_view kBailingmoePatterns[] = {
    R"~('(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)~",
};
constexpr string_view kSeedCoderPatterns[] = {
    R"~((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)~",
};
constexpr string_view kAfmoePatterns[] = {
    R"~((?<!\p{N})\p{N}{1,2}(?=(?:\p{N}{3})*+(?!\p{N}))|\p{N}{3})~",
    R"~([一-鿿㐀-䶿豈-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+)~",
    R"~([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)~",
};
constexpr string_view kChameleonPatterns[] = {
    R"~(<sentinel:[0-9]+>)~",
    R"~((IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z)~",
    R"~(([\t\n]|    |  ))~",
    R"~(\p{N})~",
    R"~([\p{P}!-/:-@\[-`{-~])~",
    R"~('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))~",
};
constexpr string_view kKimiK2Patterns[] = {
    R"~(\p{Han}+|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])*(?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])+(?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])*(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)~",
};
constexpr string_view kUfakzekaPatterns[] = {
    R"~([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)~",
};
constexpr string_view kLagunaPatterns[] = {
    R"~([^\n]+|[\n]+)~",
    R"~((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)~",
};

constexpr string_view kDefaultNames[] = {"default"};
constexpr string_view kMinicpm5Names[] = {"minicpm5"};
constexpr string_view kLlama3Names[] = {"llama3",   "llama-v3",  "llama-bpe",
                                        "falcon3",  "falcon-h1", "pixtral",
                                        "midm-2.0", "lfm2",      "jina-v5-nano"};
constexpr string_view kDeepseekLlmNames[] = {"deepseek-llm"};
constexpr string_view kDeepseekCoderNames[] = {"deepseek-coder"};
constexpr string_view kDeepseekV3Names[] = {"deepseek-v3", "hunyuan-dense", "hy_v4", "joyai-llm"};
constexpr string_view kSpark25Names[] = {"spark2_5"};
constexpr string_view kYoutuNames[] = {"youtu"};
constexpr string_view kFalconNames[] = {"falcon"};
constexpr string_view kNeoxNames[] = {"mpt", "olmo", "modern-bert"};
constexpr string_view kGpt2Names[] = {
    "gpt-2",   "phi-2",  "jina-es", "jina-de", "gigachat", "jina-v2-es",     "jina-v2-de",
    "a.x-4.0", "mellum", "jais",    "exaone4", "trillion", "granite-docling"};
constexpr string_view kStarcoderNames[] = {"starcoder", "refact",     "smollm", "codeshell",
                                           "exaone",    "minerva-7b", "mellum2"};
constexpr string_view kCommandRNames[] = {"command-r"};
constexpr string_view kJais2Names[] = {"jais-2"};
constexpr string_view kJinaV1EnNames[] = {"jina-v1-en", "jina-v2-code", "roberta-bpe"};
constexpr string_view kQwen2LikeNames[] = {"deepseek-r1-qwen", "kormo",   "f2llmv2", "stablelm2",
                                           "megrez",           "hunyuan", "grok-2",  "solar-open"};
constexpr string_view kQwen2Names[] = {"qwen2"};
constexpr string_view kQwen35Names[] = {"qwen35"};
constexpr string_view kDbrxNames[] = {"dbrx", "smaug-bpe", "chatglm-bpe"};
constexpr string_view kPoroChatNames[] = {"poro-chat", "bloom", "gpt3-finnish"};
constexpr string_view kGlm4Names[] = {"glm4", "glm5"};
constexpr string_view kVikingNames[] = {"viking"};
constexpr string_view kTekkenNames[] = {"tekken"};
constexpr string_view kExaoneMoeNames[] = {"exaone-moe"};
constexpr string_view kGpt4oNames[] = {"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"};
constexpr string_view kGraniteEmbedMulti97mNames[] = {"granite-embed-multi-97m"};
constexpr string_view kTinyAyaNames[] = {"tiny_aya", "cohere2moe"};
constexpr string_view kSuperbpeNames[] = {"superbpe"};
constexpr string_view kBailingmoeNames[] = {"bailingmoe", "bailingmoe2", "llada-moe"};
constexpr string_view kSeedCoderNames[] = {"seed-coder"};
constexpr string_view kAfmoeNames[] = {"afmoe"};
constexpr string_view kChameleonNames[] = {"chameleon"};
constexpr string_view kTextNames[] = {"gemma4", "granite-embed-multi-311m", "sarvam-moe"};
constexpr string_view kWordNames[] = {"whitespace"};
constexpr string_view kKimiK2Names[] = {"kimi-k2"};
constexpr string_view kUfakzekaNames[] = {"ufakzeka"};
constexpr string_view kLagunaNames[] = {"laguna"};

constexpr PreTokenizer kPreTokenizers[] = {
    {.names = kDefaultNames, .patterns = kDefaultPatterns},
    {.names = kMinicpm5Names, .patterns = kMinicpm5Patterns, .ignore_merges = true},
    {.names = kLlama3Names, .patterns = kLlama3Patterns, .ignore_merges = true, .adds_bos = true},
    {.names = kDeepseekLlmNames, .patterns = kDeepseekLlmPatterns},
    {.names = kDeepseekCoderNames, .patterns = kDeepseekCoderPatterns},
    {.names = kDeepseekV3Names, .patterns = kDeepseekV3Patterns},
    {.names = kSpark25Names, .patterns = kSpark25Patterns},
    {.names = kYoutuNames, .patterns = kYoutuPatterns, .ignore_merges = true},
    {.names = kFalconNames, .patterns = kFalconPatterns},
    {.names = kGpt2Names, .patterns = kGpt2Patterns},
    {.names = kNeoxNames, .patterns = kGpt2Patterns, .normalizes = true},
    {.names = kStarcoderNames, .patterns = kStarcoderPatterns},
    {.names = kCommandRNames, .patterns = kStarcoderPatterns, .normalizes = true},
    {.names = kJais2Names, .patterns = kJais2Patterns},
    {.names = kJinaV1EnNames, .patterns = kGpt2Patterns, .adds_separator = true},
    {.names = kQwen2Names, .patterns = kQwen2Patterns, .normalizes = true},
    {.names = kQwen2LikeNames, .patterns = kQwen2Patterns},
    {.names = kQwen35Names, .patterns = kQwen35Patterns, .normalizes = true},
    {.names = kDbrxNames, .patterns = kLlama3Patterns},
    {.names = kPoroChatNames, .patterns = kPoroChatPatterns},
    {.names = kGlm4Names, .patterns = kLlama3Patterns, .ignore_merges = true},
    {.names = kVikingNames, .patterns = kVikingPatterns},
    {.names = kTekkenNames, .patterns = kTekkenPatterns, .ignore_merges = true, .adds_bos = true},
    {.names = kExaoneMoeNames, .patterns = kExaoneMoePatterns},
    {.names = kGpt4oNames, .patterns = kGpt4oPatterns},
    {.names = kGraniteEmbedMulti97mNames, .patterns = kGpt4oPatterns, .ignore_merges = true},
    {.names = kTinyAyaNames, .patterns = kTinyAyaPatterns},
    {.names = kSuperbpeNames, .patterns = kSuperbpePatterns},
    {.names = kBailingmoeNames, .patterns = kBailingmoePatterns},
    {.names = kSeedCoderNames, .patterns = kSeedCoderPatterns},
    {.names = kAfmoeNames, .patterns = kAfmoePatterns},
    {.names = kChameleonNames, .patterns = kChameleonPatterns, .adds_bos = true},
    {.names = kTextNames, .alphabet = TokenAlphabet::kText},
    {.names = kWordNames, .alphabet = TokenAlphabet::kWords},
    {.names = kKimiK2Names, .patterns = kKimiK2Patterns},
    {.names = kUfakzekaNames, .patterns = kUfakzekaPatterns},
    {.names = kLagunaNames, .patterns = kLagunaPatterns},
};
// clang-format on

}  // namespace

std::span<const PreTokenizer> all_pre_tokenizers() {
  return kPreTokenizers;
}

const PreTokenizer& find_pre_tokenizer(string_view name) {
  std::string known;
  for (const PreTokenizer& one : kPreTokenizers) {
    if (std::ranges::find(one.names, name) != one.names.end()) return one;
    for (const string_view other : one.names) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", other);
    }
  }
  throw Error(Code::kUnsupported,
              fmt::format("tokenizer.ggml.pre: '{}' is not known to this build; known are {}", name,
                          known));
}

}  // namespace tgi::gguf
