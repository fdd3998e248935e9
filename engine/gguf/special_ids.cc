#include "engine/gguf/special_ids.h"

#include <algorithm>
#include <set>
#include <string>

namespace tgi::gguf {
namespace {

using Member = std::optional<int64_t> SpecialIds::*;

struct KeyRow {
  const char* key;
  Member member;
};
constexpr KeyRow kKeys[] = {
    {"bos_token_id", &SpecialIds::bos},
    {"eos_token_id", &SpecialIds::eos},
    {"eot_token_id", &SpecialIds::eot},
    {"eom_token_id", &SpecialIds::eom},
    {"unknown_token_id", &SpecialIds::unknown},
    {"seperator_token_id", &SpecialIds::separator},  // spelled so in all files
    {"padding_token_id", &SpecialIds::padding},
    {"cls_token_id", &SpecialIds::cls},
    {"mask_token_id", &SpecialIds::mask},
};

// Of the vocabularies that the kinds were made for.
struct DefaultRow {
  std::string_view kind;
  Member member;
  int64_t id;
};
constexpr DefaultRow kDefaults[] = {
    {"llama", &SpecialIds::bos, 1},        {"llama", &SpecialIds::eos, 2},
    {"llama", &SpecialIds::unknown, 0},    {"t5", &SpecialIds::eos, 1},
    {"t5", &SpecialIds::unknown, 2},       {"t5", &SpecialIds::padding, 0},
    {"bert", &SpecialIds::bos, 101},       {"bert", &SpecialIds::unknown, 100},
    {"bert", &SpecialIds::separator, 102}, {"bert", &SpecialIds::padding, 0},
    {"bert", &SpecialIds::mask, 103},
};

// Sorted by where they come from: chats, then code, where a model that begins another file is done.
constexpr std::string_view kEndTexts[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<\uFF5Cend\u2581of\u2581sentence\uFF5C>",
    "[e~[",
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
    "<|ifm|im_end|>",
};
constexpr const char* kEndKeys[] = {"eos_token_id",     "eot_token_id",     "eom_token_id",
                                    "fim_pad_token_id", "fim_rep_token_id", "fim_sep_token_id"};

// What a page in HTML has, which a vocabulary may list as a token that is no special one.
constexpr std::string_view kStrikeThrough = "</s>";

bool ends_by_text(const GgufVocabulary& vocabulary, int64_t id) {
  const std::string_view text = vocabulary.token(id);
  if (std::ranges::find(kEndTexts, text) == std::end(kEndTexts)) return false;
  return vocabulary.is_special(id) || (vocabulary.is_user_defined(id) && text != kStrikeThrough);
}

}  // namespace

SpecialIds read_special_ids(const GgufVocabulary& vocabulary,
                            const GgufMetadata& metadata,
                            std::string_view kind) {
  SpecialIds ids;
  for (const DefaultRow& row : kDefaults) {
    if (row.kind == kind && row.id < vocabulary.size()) ids.*row.member = row.id;
  }
  for (const KeyRow& row : kKeys) {
    if (const auto id = vocabulary.id_of_key(metadata, row.key)) ids.*row.member = id;
  }
  return ids;
}

std::vector<int64_t> find_end_ids(const GgufVocabulary& vocabulary,
                                  const GgufMetadata& metadata,
                                  const SpecialIds& ids) {
  std::set<int64_t> ends;
  for (const char* key : kEndKeys) {
    if (const auto id = vocabulary.id_of_key(metadata, key)) ends.insert(*id);
  }
  if (ids.eos) ends.insert(*ids.eos);
  for (const int64_t id : vocabulary.ids_of_key(metadata, "eos_token_ids")) ends.insert(id);
  std::set<std::string_view> texts;
  for (int64_t id = 0; id < vocabulary.size(); ++id) {
    if (ends_by_text(vocabulary, id)) ends.insert(id);
    if (ends.contains(id)) texts.insert(vocabulary.token(id));
  }
  const auto drop = [&](std::string_view text) {
    std::erase_if(ends, [&](int64_t id) { return vocabulary.token(id) == text; });
  };
  // Harmony and Solar end a message with <|end|> and go on with the next one: a turn ends with one
  // of the others.
  const bool calls = texts.contains("<|call|>") || texts.contains("<|calls|>");
  if (calls && (texts.contains("<|return|>") || texts.contains("<|flush|>"))) drop("<|end|>");
  if (texts.contains("<|tool_response>")) drop(kStrikeThrough);  // Gemma 4 has its own
  return {ends.begin(), ends.end()};
}

}  // namespace tgi::gguf
