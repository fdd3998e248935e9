// What a tokenizer is made of, for who writes it down in another form.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files/file_source.h"
#include "base/json.h"

namespace tgi {

struct NamedToken {
  std::string text;
  int32_t id = 0;
  bool is_special = false;
};

struct TokenizerParts {
  // tokenizer.json without vocabulary and merges, or as it would be for a file of ranks
  // (engine/text/tokenizer/rank_files.h); null where there is neither.
  Json tree;
  std::vector<NamedToken> vocabulary{};  // of it, in its order
  std::vector<std::pair<std::string, std::string>> merges{};
  std::vector<NamedToken> added{};  // of tokenizer.json and tokenizer_config.json; later ones count
  std::string bos{};                // of tokenizer_config.json; "": none
  std::string eos{};
  std::string unknown{};
};

// Throws kInvalidArgument with the file and the place in it when one is malformed.
TokenizerParts read_tokenizer_parts(const FileSource& files);

// The pieces into which a "pre_tokenizer" of tokenizer.json cuts the beginning of an input.
class TextCutter {
 public:
  // Throws kInvalidArgument or kUnsupported with the path of what is wrong.
  explicit TextCutter(const Json& pre_tokenizer);
  ~TextCutter();
  TextCutter(const TextCutter&) = delete;
  TextCutter& operator=(const TextCutter&) = delete;

  std::vector<std::string> cut(std::string_view text) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tgi
