#include "engine/text/tokenizer/vocab_txt.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/text/tokenizer/folder_tokens.h"
#include "engine/text/unicode/unicode.h"

namespace tgi {
namespace {

// What a class of transformers has where tokenizer_config.json says nothing.
struct VocabTxtClass {
  std::string_view name;  // or followed by "Fast"
  std::string_view cls = "[CLS]";
  std::string_view sep = "[SEP]";
  std::string_view pad = "[PAD]";
  std::string_view mask = "[MASK]";
  bool mask_takes_space = false;  // the white space before it
  bool separates_twice = false;   // between the texts of a pair
};

constexpr VocabTxtClass kVocabTxtClasses[] = {
    {.name = "BertTokenizer"},
    {.name = "ConvBertTokenizer"},
    {.name = "DistilBertTokenizer"},
    {.name = "DPRContextEncoderTokenizer"},
    {.name = "DPRQuestionEncoderTokenizer"},
    {.name = "ElectraTokenizer"},
    {.name = "LayoutLMTokenizer"},
    {.name = "LxmertTokenizer"},
    {.name = "MobileBertTokenizer"},
    {.name = "RetriBertTokenizer"},
    {.name = "SqueezeBertTokenizer"},
    {.name = "MPNetTokenizer",
     .cls = "<s>",
     .sep = "</s>",
     .pad = "<pad>",
     .mask = "<mask>",
     .mask_takes_space = true,
     .separates_twice = true},
};

const VocabTxtClass& vocab_txt_class_of(const std::string& name) {
  if (name.empty()) return kVocabTxtClasses[0];
  std::string known;
  for (const VocabTxtClass& row : kVocabTxtClasses) {
    if (name == row.name || name == std::string(row.name) + "Fast") return row;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  }
  throw Error(Code::kUnsupported,
              fmt::format("tokenizer_class \"{}\" of tokenizer_config.json is not known to have a "
                          "vocab.txt; known are {}",
                          name, known));
}

// The white space that a line ends with is not part of its token.
std::string_view trimmed(std::string_view line) {
  while (!line.empty()) {
    const size_t last = character_begin(line, line.size() - 1);
    size_t offset = last;
    if (!is_white_space(next_character(line, offset))) break;
    line = line.substr(0, last);
  }
  return line;
}

Vocabulary read_lines(std::string_view text) {
  const size_t valid = valid_utf8_prefix(text);
  if (valid != text.size()) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format(
            "expected UTF-8, got other bytes on line {}",
            1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(valid), '\n')));
  }
  Vocabulary vocabulary;
  int64_t id = 0;
  for (size_t at = 0; at < text.size(); ++id) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (id > Vocabulary::kHighestId) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("expected at most {} lines", Vocabulary::kHighestId + 1));
    }
    vocabulary.add(trimmed(text.substr(at, end - at)), static_cast<int32_t>(id));
    at = end + 1;
  }
  if (vocabulary.size() == 0) throw Error(Code::kInvalidArgument, "expected tokens, got no line");
  vocabulary.index_ids();
  return vocabulary;
}

Json make_template(const std::string& cls,
                   int32_t cls_id,
                   const std::string& sep,
                   int32_t sep_id,
                   bool separates_twice) {
  const auto special = [](const std::string& token, int type) {
    return Json{{"SpecialToken", {{"id", token}, {"type_id", type}}}};
  };
  const auto sequence = [](const char* id, int type) {
    return Json{{"Sequence", {{"id", id}, {"type_id", type}}}};
  };
  const auto described = [](const std::string& token, int32_t id) {
    return Json{{"id", token}, {"ids", {id}}, {"tokens", {token}}};
  };
  const Json single = {special(cls, 0), sequence("A", 0), special(sep, 0)};
  Json pair = single;
  if (separates_twice) pair.push_back(special(sep, 0));
  pair.push_back(sequence("B", 1));
  pair.push_back(special(sep, 1));
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", pair},
          {"special_tokens", {{cls, described(cls, cls_id)}, {sep, described(sep, sep_id)}}}};
}

}  // namespace

TokenizerJson read_vocab_txt(std::string_view text,
                             const TokenizerConfig& config,
                             const VocabTxtConfig& more) {
  const VocabTxtClass& row = vocab_txt_class_of(more.tokenizer_class);
  TokenizerJson result;
  result.vocabulary = read_lines(text);
  result.has_vocab = true;
  const Vocabulary& vocabulary = result.vocabulary;
  const std::string unk = chosen(config.unk_token, "[UNK]");
  const std::string cls = chosen(more.cls_token, row.cls);
  const std::string sep = chosen(more.sep_token, row.sep);
  const std::string mask = chosen(more.mask_token, row.mask);
  const std::string place = fmt::format("on one of the {} lines", vocabulary.size());
  require_token(vocabulary, unk, "unk_token", place);
  const int32_t cls_id = require_token(vocabulary, cls, "cls_token", place);
  const int32_t sep_id = require_token(vocabulary, sep, "sep_token", place);

  const FolderToken special[] = {
      {unk}, {cls}, {sep}, {chosen(more.pad_token, row.pad)}, {mask, row.mask_takes_space}};
  result.tree = {{"version", "1.0"},
                 {"added_tokens", added_tokens_of_folder(config, vocabulary, special)},
                 {"normalizer",
                  {{"type", "BertNormalizer"},
                   {"clean_text", true},
                   {"handle_chinese_chars", more.tokenize_chinese_chars},
                   {"strip_accents", more.strip_accents ? Json(*more.strip_accents) : Json()},
                   {"lowercase", more.do_lower_case}}},
                 {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                 {"post_processor", make_template(cls, cls_id, sep, sep_id, row.separates_twice)},
                 {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
                 {"model",
                  {{"type", "WordPiece"},
                   {"unk_token", unk},
                   {"continuing_subword_prefix", "##"},
                   {"max_input_chars_per_word", 100}}}};
  return result;
}

}  // namespace tgi
