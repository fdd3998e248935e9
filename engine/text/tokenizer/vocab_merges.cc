#include "engine/text/tokenizer/vocab_merges.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/file_source.h"
#include "engine/text/tokenizer/folder_tokens.h"
#include "engine/text/tokenizer/tokenizer_classes.h"

namespace tgi {
namespace {

// How a class cuts texts: convert_slow_tokenizer.py of transformers.
struct VocabMergesClass {
  std::string_view name;
  std::string_view pattern{};  // "": that of ByteLevel
  bool normalizes = false;     // to NFC
};

constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr VocabMergesClass kVocabMergesClasses[] = {
    {.name = "GPT2Tokenizer"},
    {.name = "CodeGenTokenizer"},
    {.name = "Qwen2Tokenizer", .pattern = kQwen2Pattern, .normalizes = true},
    {.name = "RobertaTokenizer"},
};

struct FoundClass {
  const VocabMergesClass& cuts;
  const TokenizerClass& tokens;
};

FoundClass class_of(const VocabMergesConfig& config) {
  const TokenizerClass* const tokens =
      find_tokenizer_class(config.tokenizer_class, config.model_type);
  std::string known;
  for (const VocabMergesClass& row : kVocabMergesClasses) {
    if (tokens != nullptr && tokens->name == row.name) return {row, *tokens};
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  }
  const std::string said =
      config.tokenizer_class.empty()
          ? fmt::format(
                "tokenizer_config.json names no tokenizer_class, and config.json has "
                "model_type \"{}\"",
                config.model_type)
          : fmt::format("tokenizer_config.json has tokenizer_class \"{}\"", config.tokenizer_class);
  throw Error(
      Code::kUnsupported,
      fmt::format("vocab.json and merges.txt without a tokenizer.json are read for the classes {}; "
                  "{}",
                  known, said));
}

Vocabulary read_vocabulary(std::string_view text) {
  const Json tree = parse_json(text);
  if (!tree.is_object() || tree.empty()) {
    throw Error(Code::kInvalidArgument, "expected an object of tokens and their ids");
  }
  Vocabulary out;
  for (const auto& [token, id] : tree.items()) {
    const bool is_id =
        id.is_number_integer() && id >= 0 && id.get<int64_t>() <= Vocabulary::kHighestId;
    if (!is_id) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("token {}: expected an id from 0 to {}, got {}", Json(token).dump(),
                              Vocabulary::kHighestId, id.dump()));
    }
    out.add(token, id.get<int32_t>());
  }
  out.index_ids();
  return out;
}

std::vector<TextPair> read_merges(std::string_view text) {
  std::vector<TextPair> out;
  int64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    // Only the first line may be none: "# #" is a pair.
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const size_t space = line.find(' ');
    const bool is_pair = space != std::string_view::npos && space > 0 && space + 1 < line.size() &&
                         line.find(' ', space + 1) == std::string_view::npos;
    if (!is_pair) {
      throw Error(
          Code::kInvalidArgument,
          fmt::format("line {}: expected two tokens with a space between them, got {}", number,
                      Json(line).dump(-1, ' ', false, Json::error_handler_t::replace)));
    }
    out.push_back({std::string(line.substr(0, space)), std::string(line.substr(space + 1))});
  }
  return out;
}

template <typename Read>
auto read_from(const FileSource& files, const std::string& name, const Read& read) {
  try {
    return read(files.require_text(name));
  } catch (const Error& error) {
    if (error.code() == Code::kNotFound) throw;
    throw error.in(files.describe(name));
  }
}

Json byte_level(bool add_prefix_space, bool cuts, bool trims = true) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", trims},
          {"use_regex", cuts}};
}

Json pre_tokenizer_of(const VocabMergesClass& row, bool add_prefix_space) {
  if (row.pattern.empty()) return byte_level(add_prefix_space, true);
  const Json split = {{"type", "Split"},
                      {"pattern", {{"Regex", row.pattern}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  return {{"type", "Sequence"}, {"pretokenizers", {split, byte_level(add_prefix_space, false)}}};
}

Json roberta_processing(const Vocabulary& vocabulary,
                        const std::string& cls,
                        const std::string& sep,
                        const VocabMergesConfig& more) {
  const std::string place = fmt::format("among its {} tokens", vocabulary.size());
  const auto pair_of = [&](const std::string& token, std::string_view key) {
    try {
      return Json{token, require_token(vocabulary, token, key, place)};
    } catch (const Error& error) {
      throw error.in("vocab.json");
    }
  };
  return {{"type", "RobertaProcessing"},
          {"sep", pair_of(sep, "sep_token")},
          {"cls", pair_of(cls, "cls_token")},
          {"trim_offsets", more.trim_offsets},
          {"add_prefix_space", more.add_prefix_space}};
}

}  // namespace

TokenizerJson read_vocab_merges(const FileSource& files,
                                const TokenizerConfig& config,
                                const VocabMergesConfig& more) {
  const auto& [cuts, tokens] = class_of(more);
  TokenizerJson out;
  out.vocabulary = read_from(files, "vocab.json", read_vocabulary);
  out.has_vocab = true;
  out.merges = read_from(files, "merges.txt", read_merges);
  out.has_merges = true;
  const std::string cls = chosen(more.cls_token, tokens.cls);
  const std::string sep = chosen(more.sep_token, tokens.sep);
  const FolderToken special[] = {{chosen(config.bos_token, tokens.bos)},
                                 {chosen(config.eos_token, tokens.eos)},
                                 {chosen(config.unk_token, tokens.unk)},
                                 {cls},
                                 {sep},
                                 {chosen(more.pad_token, tokens.pad)},
                                 {chosen(more.mask_token, tokens.mask)}};
  out.tree = {
      {"version", "1.0"},
      {"added_tokens", added_tokens_of_folder(config, out.vocabulary, special)},
      {"normalizer", cuts.normalizes ? Json{{"type", "NFC"}} : Json(nullptr)},
      {"pre_tokenizer", pre_tokenizer_of(cuts, more.add_prefix_space)},
      {"post_processor", tokens.cls.empty() ? byte_level(true, true, /*trims=*/false)
                                            : roberta_processing(out.vocabulary, cls, sep, more)},
      {"decoder", byte_level(true, true)},
      {"model", {{"type", "BPE"}, {"fuse_unk", false}, {"byte_fallback", false}}}};
  return out;
}

}  // namespace tgi
