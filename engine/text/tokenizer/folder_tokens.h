// Special and added tokens of folders that have no tokenizer.json, as one would list them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "engine/text/tokenizer/tokenizer_config.h"
#include "engine/text/tokenizer/vocabulary.h"

namespace tgi {

struct FolderToken {
  std::string content;
  bool lstrip = false;
};

// What the folder's files say, or the class's own.
inline std::string chosen(const std::string& configured, std::string_view fallback) {
  return configured.empty() ? std::string(fallback) : configured;
}

// The id of the token that is the folder's `key`. Throws kInvalidArgument saying in which `place`
// it was expected.
int32_t require_token(const Vocabulary& vocabulary,
                      const std::string& token,
                      std::string_view key,
                      std::string_view place);

// The "added_tokens" of a tokenizer.json: those that the folder's files list, then these that the
// vocabulary has and that are not listed, as special ones.
Json added_tokens_of_folder(const TokenizerConfig& config,
                            const Vocabulary& vocabulary,
                            std::span<const FolderToken> special);

}  // namespace tgi
