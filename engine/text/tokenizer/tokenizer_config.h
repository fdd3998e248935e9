// What the tokenizers need of tokenizer_config.json, special_tokens_map.json and added_tokens.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/text/tokenizer/added_tokens.h"

namespace tgi {

class FileSource;

struct TokenizerConfig {
  std::string tokenizer_class;  // "": not said
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  std::string bos_token;  // "": none
  std::string eos_token;
  std::string unk_token;
  bool legacy = true;                    // of sentencepiece_tokenizer.h, as the next one
  bool add_prefix_space = true;          // false: none before a text, whatever the model says
  std::vector<AddedToken> added_tokens;  // added_tokens_decoder, then added_tokens.json
  // Added behind all others where they are not among them; without ids.
  std::vector<AddedToken> extra_tokens;
  bool split_special_tokens = false;  // special tokens in a text are text
};

// What vocab_txt.h needs besides.
struct VocabTxtConfig {
  std::string tokenizer_class;
  std::string cls_token;  // "": the class's own; so are the next ones
  std::string sep_token;
  std::string pad_token;
  std::string mask_token;
  bool do_lower_case = true;
  bool tokenize_chinese_chars = true;
  std::optional<bool> strip_accents;
};

// What vocab_merges.h needs besides.
struct VocabMergesConfig {
  std::string tokenizer_class;  // "": by the model's type
  std::string model_type;       // of config.json
  std::string cls_token;        // "": the class's own; so are the next ones
  std::string sep_token;
  std::string pad_token;
  std::string mask_token;
  bool add_prefix_space = false;
  bool trim_offsets = true;
};

// What tiktoken.h needs besides.
struct TiktokenConfig {
  std::string tokenizer_class;  // of a class in the folder's own code too; "": by the model's type
  std::vector<std::string> extra_special_tokens;  // additional_special_tokens too
  std::string model_type;                         // of config.json
  std::string rope_type;                          // of its rope_scaling; "": none
};

// Files that are not there count as empty. Throws kInvalidArgument with the file and the path of
// what is malformed.
TokenizerConfig read_tokenizer_config(const FileSource& files);
VocabTxtConfig read_vocab_txt_config(const FileSource& files);
VocabMergesConfig read_vocab_merges_config(const FileSource& files);
TiktokenConfig read_tiktoken_config(const FileSource& files);

}  // namespace tgi
