#include "engine/gguf/tokenizer_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "engine/gguf/gguf_vocabulary.h"
#include "engine/gguf/pre_tokenizers.h"
#include "engine/gguf/sentencepiece_proto.h"

namespace tgi::gguf {
namespace {

constexpr const char* kTokenizerJson = "tokenizer.json";
constexpr std::string_view kPrefix = "tokenizer.";
constexpr std::string_view kWordMark = "\xE2\x96\x81";  // U+2581

// What is read here or by GgufVocabulary, and what need not be.
constexpr std::string_view kKnownKeys[] = {
    "ggml.model",
    "ggml.pre",
    "ggml.tokens",
    "ggml.token_type",
    "ggml.scores",
    "ggml.merges",
    "ggml.bos_token_id",
    "ggml.eos_token_id",
    "ggml.eot_token_id",
    "ggml.eom_token_id",
    "ggml.unknown_token_id",
    "ggml.seperator_token_id",
    "ggml.cls_token_id",
    "ggml.mask_token_id",
    "ggml.add_bos_token",
    "ggml.add_eos_token",
    "ggml.add_sep_token",
    "ggml.add_space_prefix",
    "ggml.remove_extra_whitespaces",
    "ggml.precompiled_charsmap",
    "ggml.normalizer.lowercase",
    "ggml.normalizer.strip_accents",
    "ggml.token_type_count",  // of segments, which the embeddings' tensor counts
    "ggml.padding_token_id",  // nothing is padded
    "chat_template",
    "chat_templates",    // the names of those below
    "huggingface.json",  // says the same once more
    // For filling in the middle, whose prompts are written out by whoever asks.
    "ggml.fim_pre_token_id",
    "ggml.fim_suf_token_id",
    "ggml.fim_mid_token_id",
    "ggml.fim_pad_token_id",
    "ggml.fim_rep_token_id",
    "ggml.fim_sep_token_id",
    "ggml.prefix_token_id",
    "ggml.suffix_token_id",
    "ggml.middle_token_id",
    "ggml.image_token_id",
    "ggml.start_header_id",
    "ggml.end_header_id",
};

void check_keys(const GgufMetadata& metadata) {
  for (std::string_view key : metadata.keys()) {
    if (!key.starts_with(kPrefix)) continue;
    const std::string_view name = key.substr(kPrefix.size());
    const bool is_known = std::ranges::find(kKnownKeys, name) != std::end(kKnownKeys) ||
                          name.starts_with("chat_template.");
    if (is_known) continue;
    throw Error(Code::kUnsupported, fmt::format("{}: this build does not know what it means", key));
  }
}

// Tokens that end a turn, by the names that families gave them. llama.cpp's list, so that a file
// ends here where it ends there.
constexpr std::string_view kEndTokens[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
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
    "<\xEF\xBD\x9C"
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",
    "[e~[",
};

std::vector<int64_t> end_ids(const GgufVocabulary& vocabulary, const GgufMetadata& metadata) {
  std::set<int64_t> ids;
  for (const char* key : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
    if (const auto id = vocabulary.id_of_key(metadata, key)) ids.insert(*id);
  }
  std::set<int64_t> of_names;
  for (int64_t id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary.is_special(id)) continue;
    const bool ends = std::ranges::find(kEndTokens, vocabulary.token(id)) != std::end(kEndTokens);
    if (ends) of_names.insert(id);
  }
  // Harmony ends a message with <|end|> and goes on with the next one: a turn ends elsewhere.
  const bool is_harmony = std::ranges::any_of(
      of_names, [&](int64_t id) { return vocabulary.token(id) == "<|return|>"; });
  for (const int64_t id : of_names) {
    if (!is_harmony || vocabulary.token(id) != "<|end|>") ids.insert(id);
  }
  return {ids.begin(), ids.end()};
}

// Special ones of Phi 3 take the white space behind them, which files don't say.
bool takes_space_behind(const GgufMetadata& metadata, std::string_view token) {
  std::string name(metadata.find_text("general.name").value_or(""));
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  const bool is_phi3 =
      name.find("phi-3") != std::string::npos || name.find("phi3") != std::string::npos;
  return is_phi3 && token != "<unk>" && token != "<s>" && token != "<|endoftext|>";
}

Json added_tokens(const GgufVocabulary& vocabulary, const GgufMetadata& metadata) {
  Json out = Json::array();
  for (int64_t id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary.is_special(id) && !vocabulary.is_user_defined(id)) continue;
    out.push_back({{"id", id},
                   {"content", vocabulary.text(id)},
                   {"single_word", false},
                   {"lstrip", false},
                   {"rstrip", vocabulary.is_special(id) &&
                                  takes_space_behind(metadata, vocabulary.token(id))},
                   {"normalized", false},
                   {"special", vocabulary.is_special(id)}});
  }
  return out;
}

// "model": {..., "vocab": {...}, "merges": [...]} written by hand: a tree of a hundred thousand
// strings takes longer to build than to read.
std::string vocabulary_object(const GgufVocabulary& vocabulary) {
  std::string out = "{";
  for (int64_t id = 0; id < vocabulary.size(); ++id) {
    out += fmt::format("{}{}:{}", id == 0 ? "" : ",", Json(vocabulary.text(id)).dump(), id);
  }
  return out + "}";
}

std::string merges_array(const GgufMetadata& metadata) {
  std::string out = "[";
  bool is_first = true;
  constexpr const char* kMerges = "tokenizer.ggml.merges";
  if (!metadata.has(kMerges)) return "[]";
  for (const std::string_view merge : metadata.texts(kMerges)) {
    // "a b"; a space may be part of a token, but the first character of one it is not.
    const size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("tokenizer.ggml.merges: \"{}\" is not two tokens", merge));
    }
    out += fmt::format("{}[{},{}]", is_first ? "" : ",",
                       Json(std::string(merge.substr(0, space))).dump(),
                       Json(std::string(merge.substr(space + 1))).dump());
    is_first = false;
  }
  return out + "]";
}

Json byte_level(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

std::string joined(const Json& head, const std::string& model) {
  std::string out = head.dump();
  out.pop_back();
  return out + ",\"model\":" + model + "}";
}

std::string byte_level_json(const GgufVocabulary& vocabulary,
                            const GgufMetadata& metadata,
                            const PreTokenizer& pre) {
  Json cuts = Json::array();
  for (const std::string_view pattern : pre.patterns) {
    cuts.push_back({{"type", "Split"},
                    {"pattern", {{"Regex", pattern}}},
                    {"behavior", "Isolated"},
                    {"invert", false}});
  }
  cuts.push_back(byte_level(false));
  Json head = {{"version", "1.0"},
               {"truncation", nullptr},
               {"padding", nullptr},
               {"added_tokens", added_tokens(vocabulary, metadata)},
               {"normalizer", nullptr},
               {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", cuts}}},
               {"post_processor", nullptr},
               {"decoder", byte_level(false)}};
  const bool has_separator =
      metadata.find_boolean("tokenizer.ggml.add_sep_token").value_or(pre.adds_separator);
  if (has_separator) {
    const auto end = [&](const char* key, const char* other) -> Json {
      const auto id = vocabulary.id_of_key(metadata, key);
      const int64_t found = id ? *id : vocabulary.require_id_of_key(metadata, other);
      return Json::array({vocabulary.text(found), found});
    };
    head["post_processor"] = {{"type", "RobertaProcessing"},
                              {"sep", end("seperator_token_id", "eos_token_id")},
                              {"cls", end("cls_token_id", "bos_token_id")},
                              {"trim_offsets", true},
                              {"add_prefix_space", false}};
  }
  const std::string options = Json({{"type", "BPE"},
                                    {"dropout", nullptr},
                                    {"unk_token", nullptr},
                                    {"continuing_subword_prefix", nullptr},
                                    {"end_of_word_suffix", nullptr},
                                    {"fuse_unk", false},
                                    {"byte_fallback", false},
                                    {"ignore_merges", pre.ignore_merges}})
                                  .dump();
  return joined(head, options.substr(0, options.size() - 1) +
                          ",\"vocab\":" + vocabulary_object(vocabulary) +
                          ",\"merges\":" + merges_array(metadata) + "}");
}

// ggml marks the pieces that begin a word, where WordPiece marks those that don't.
std::string word_piece_json(const GgufVocabulary& vocabulary, const GgufMetadata& metadata) {
  std::string vocab = "{";
  for (int64_t id = 0; id < vocabulary.size(); ++id) {
    std::string piece(vocabulary.token(id));
    const bool is_own = vocabulary.is_special(id) ||
                        (piece.starts_with('[') && piece.ends_with(']') && piece.size() > 2);
    if (piece.starts_with(kWordMark)) {
      piece.erase(0, kWordMark.size());
    } else if (!is_own) {
      piece.insert(0, "##");
    }
    vocab += fmt::format("{}{}:{}", id == 0 ? "" : ",", Json(piece).dump(), id);
  }
  vocab += "}";
  const auto token = [&](const char* key) { return vocabulary.require_id_of_key(metadata, key); };
  const int64_t cls =
      vocabulary.id_of_key(metadata, "cls_token_id").value_or(token("bos_token_id"));
  const int64_t sep = token("seperator_token_id");
  const int64_t unk = token("unknown_token_id");
  const bool lowers = metadata.find_boolean("tokenizer.ggml.normalizer.lowercase").value_or(true);
  const auto strips = metadata.find_boolean("tokenizer.ggml.normalizer.strip_accents");
  const Json head = {{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", added_tokens(vocabulary, metadata)},
                     {"normalizer",
                      {{"type", "BertNormalizer"},
                       {"clean_text", true},
                       {"handle_chinese_chars", true},
                       {"strip_accents", strips ? Json(*strips) : Json(nullptr)},
                       {"lowercase", lowers}}},
                     {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                     {"post_processor",
                      {{"type", "BertProcessing"},
                       {"sep", Json::array({vocabulary.text(sep), sep})},
                       {"cls", Json::array({vocabulary.text(cls), cls})}}},
                     {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}}};
  const std::string options = Json({{"type", "WordPiece"},
                                    {"unk_token", vocabulary.text(unk)},
                                    {"continuing_subword_prefix", "##"},
                                    {"max_input_chars_per_word", 100}})
                                  .dump();
  return joined(head, options.substr(0, options.size() - 1) + ",\"vocab\":" + vocab + "}");
}

// The text of a template may be under its own name too.
Json chat_templates(const GgufMetadata& metadata) {
  constexpr std::string_view kDefault = "tokenizer.chat_template";
  Json named = Json::array();
  for (const std::string_view key : metadata.keys()) {
    if (!key.starts_with("tokenizer.chat_template.")) continue;
    named.push_back({{"name", key.substr(kDefault.size() + 1)}, {"template", metadata.text(key)}});
  }
  const auto own = metadata.find_text(kDefault);
  if (named.empty()) return own ? Json(*own) : Json(nullptr);
  if (own) named.push_back({{"name", "default"}, {"template", *own}});
  return named;
}

struct Ends {
  bool bos = false;
  bool eos = false;
};

Json tokenizer_config(const GgufVocabulary& vocabulary, const GgufMetadata& metadata, Ends ends) {
  Json config = {
      {"add_bos_token", metadata.find_boolean("tokenizer.ggml.add_bos_token").value_or(ends.bos)},
      {"add_eos_token", metadata.find_boolean("tokenizer.ggml.add_eos_token").value_or(ends.eos)}};
  const auto name = [&](const char* field, const char* key) {
    if (const auto id = vocabulary.id_of_key(metadata, key)) config[field] = vocabulary.text(*id);
  };
  name("bos_token", "bos_token_id");
  name("eos_token", "eos_token_id");
  name("unk_token", "unknown_token_id");
  for (const auto& [flag, token] :
       {std::pair("add_bos_token", "bos_token"), std::pair("add_eos_token", "eos_token")}) {
    if (!config.contains(token)) config[flag] = false;
  }
  if (Json templates = chat_templates(metadata); !templates.is_null())
    config["chat_template"] = std::move(templates);
  return config;
}

Json generation_config(const GgufVocabulary& vocabulary, const GgufMetadata& metadata) {
  Json config = Json::object();
  if (const auto bos = vocabulary.id_of_key(metadata, "bos_token_id"))
    config["bos_token_id"] = *bos;
  if (const auto ends = end_ids(vocabulary, metadata); !ends.empty()) config["eos_token_id"] = ends;
  return config;
}

// {"32000": {...}}: what SentencePiece's own tables don't say.
Json added_tokens_decoder(const GgufVocabulary& vocabulary, const GgufMetadata& metadata) {
  Json out = Json::object();
  for (Json token : added_tokens(vocabulary, metadata)) {
    const std::string id = token.at("id").dump();
    token.erase("id");
    out[id] = std::move(token);
  }
  return out;
}

}  // namespace

std::map<std::string, std::string> tokenizer_files(const GgufMetadata& metadata) {
  check_keys(metadata);
  const std::string_view kind = metadata.text("tokenizer.ggml.model");
  const GgufVocabulary vocabulary(metadata);
  std::map<std::string, std::string> files;
  Ends ends;
  Json added = nullptr;
  if (kind == "gpt2") {
    const PreTokenizer& pre =
        find_pre_tokenizer(metadata.find_text("tokenizer.ggml.pre").value_or("default"));
    ends.bos = pre.adds_bos;
    files[kTokenizerJson] = byte_level_json(vocabulary, metadata, pre);
  } else if (kind == "llama" || kind == "t5") {
    const bool is_unigram = kind == "t5";
    ends = is_unigram ? Ends{.bos = false, .eos = true} : Ends{.bos = true, .eos = false};
    files["tokenizer.model"] = sentencepiece_proto(vocabulary, metadata, is_unigram);
    added = added_tokens_decoder(vocabulary, metadata);
  } else if (kind == "bert") {
    files[kTokenizerJson] = word_piece_json(vocabulary, metadata);
  } else {
    throw Error(
        Code::kUnsupported,
        fmt::format("tokenizer.ggml.model: '{}' is not supported; known are bert, gpt2, llama, t5",
                    kind));
  }
  Json config = tokenizer_config(vocabulary, metadata, ends);
  if (!added.is_null()) config["added_tokens_decoder"] = std::move(added);
  if (kind == "bert")
    config["add_bos_token"] = config["add_eos_token"] = false;  // the post-processor's
  files["tokenizer_config.json"] = config.dump();
  files["generation_config.json"] = generation_config(vocabulary, metadata).dump();
  return files;
}

}  // namespace tgi::gguf
