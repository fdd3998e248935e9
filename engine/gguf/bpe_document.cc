#include "engine/gguf/bpe_document.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"

namespace tgi::gguf {
namespace {

constexpr std::string_view kMerges = "tokenizer.ggml.merges";

bool has_more_than_bytes(const GgufVocabulary& vocabulary) {
  int64_t num_normal = 0;
  for (int64_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.type(id) == TokenType::kNormal) ++num_normal;
  }
  return num_normal > 256;
}

std::string merges_array(const GgufVocabulary& vocabulary, const GgufMetadata& metadata) {
  // Writers leave empty lists out; the first files of Kimi K2 have none although they need them.
  if (!metadata.has(kMerges) && !has_more_than_bytes(vocabulary)) return "[]";
  std::string out = "[";
  for (const std::string_view merge : metadata.texts(kMerges)) {
    if (!is_valid_utf8(merge)) {
      throw Error(Code::kInvalidArgument, fmt::format("{}: not UTF-8", kMerges));
    }
    // "a b": that a token begins with a space is possible, that it has one elsewhere is not.
    const size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: \"{}\" is not two tokens", kMerges, merge));
    }
    out += fmt::format("{}[{},{}]", out.size() == 1 ? "" : ",",
                       Json(std::string(merge.substr(0, space))).dump(),
                       Json(std::string(merge.substr(space + 1))).dump());
  }
  return out + "]";
}

Json byte_level() {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", false}};
}

Json replace(std::string_view found, std::string_view content) {
  return {{"type", "Replace"}, {"pattern", {{"String", found}}}, {"content", content}};
}

struct Alphabet {
  Json normalizer;
  Json pre_tokenizer;
  Json decoder;
};

Alphabet byte_level_alphabet(const PreTokenizer& pre) {
  return {.normalizer = pre.normalizes ? Json{{"type", "NFC"}} : Json(nullptr),
          .pre_tokenizer = pre_tokenizer_document(pre),
          .decoder = byte_level()};
}

Alphabet text_alphabet() {
  return {
      .normalizer = replace(" ", kLowerBlock),
      .pre_tokenizer = nullptr,
      .decoder = {{"type", "Sequence"},
                  {"decoders",
                   {replace(kLowerBlock, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}}};
}

// Of Jina's Chinese embeddings: a tokenizer.json cuts words and punctuation apart.
Alphabet word_alphabet(const GgufMetadata& metadata) {
  const bool lowers = metadata.find_boolean("tokenizer.ggml.normalizer.lowercase").value_or(false);
  return {.normalizer = lowers ? Json{{"type", "Lowercase"}} : Json(nullptr),
          .pre_tokenizer = {{"type", "Whitespace"}},
          .decoder = {{"type", "Fuse"}}};
}

Alphabet alphabet_of(const PreTokenizer& pre, const GgufMetadata& metadata) {
  switch (pre.alphabet) {
    case TokenAlphabet::kText:
      return text_alphabet();
    case TokenAlphabet::kWords:
      return word_alphabet(metadata);
    case TokenAlphabet::kByteLevel:
      break;
  }
  return byte_level_alphabet(pre);
}

}  // namespace

Json pre_tokenizer_document(const PreTokenizer& pre) {
  Json cuts = Json::array();
  for (const std::string_view pattern : pre.patterns) {
    cuts.push_back({{"type", "Split"},
                    {"pattern", {{"Regex", pattern}}},
                    {"behavior", "Isolated"},
                    {"invert", false}});
  }
  cuts.push_back(byte_level());
  return {{"type", "Sequence"}, {"pretokenizers", std::move(cuts)}};
}

std::string bpe_document(const GgufVocabulary& vocabulary,
                         const GgufMetadata& metadata,
                         const PreTokenizer& pre,
                         const SpecialIds& ids,
                         const AddedEnds& ends) {
  const bool is_text = pre.alphabet == TokenAlphabet::kText;
  Alphabet alphabet = alphabet_of(pre, metadata);
  Json unknown = nullptr;
  if (pre.alphabet != TokenAlphabet::kByteLevel && ids.unknown)
    unknown = vocabulary.text(*ids.unknown);
  std::vector<std::string> tokens;
  tokens.reserve(static_cast<size_t>(vocabulary.size()));
  for (int64_t id = 0; id < vocabulary.size(); ++id) tokens.push_back(vocabulary.text(id));
  const Json members = {{"added_tokens", added_tokens(vocabulary, metadata)},
                        {"normalizer", std::move(alphabet.normalizer)},
                        {"pre_tokenizer", std::move(alphabet.pre_tokenizer)},
                        {"post_processor", ends_document(vocabulary, ids, ends)},
                        {"decoder", std::move(alphabet.decoder)}};
  const Json model = {{"type", "BPE"},
                      {"dropout", nullptr},
                      {"unk_token", std::move(unknown)},
                      {"continuing_subword_prefix", nullptr},
                      {"end_of_word_suffix", nullptr},
                      {"fuse_unk", is_text},
                      {"byte_fallback", is_text},
                      {"ignore_merges", pre.ignore_merges}};
  return tokenizer_document(members, model, vocabulary_object(tokens),
                            merges_array(vocabulary, metadata));
}

}  // namespace tgi::gguf
