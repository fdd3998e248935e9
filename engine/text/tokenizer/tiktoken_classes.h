// What the classes of tokenizers know that read files of ranks (tiktoken.h): where texts are cut,
// and the special tokens of folders that list none.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer/tokenizer_config.h"

namespace tgi {

struct TiktokenClass {
  std::span<const std::string_view> names;
  std::string_view model_type{};  // that stands for it where no class is named; "": none
  std::string_view pattern;
  bool normalizes = false;  // to NFC
  // Special tokens behind the ranks of a folder that lists none. Throws kUnsupported when the class
  // doesn't know.
  std::vector<std::string> (*special)(const TiktokenConfig& config, size_t num_ranks);
  std::span<const std::string_view> before{};  // tokens put before a text
  bool needs_before = false;                   // else they are where the tokens are there
  bool only_first = false;                     // of a pair, before the first alone
};

// Throws kUnsupported naming the class when it is none of them.
const TiktokenClass& find_tiktoken_class(const TiktokenConfig& config);

}  // namespace tgi
