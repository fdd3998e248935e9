// Small vocabularies, and what a mask allows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/guide/matcher.h"
#include "engine/guide/vocabulary.h"

namespace tgi::guide {

// Tokens <|...|> are special; after all of them comes the end token.
inline std::shared_ptr<const Vocabulary> vocabulary_of(const std::vector<std::string>& tokens) {
  std::vector<Vocabulary::Token> all;
  for (const std::string& token : tokens) {
    const bool special = token.starts_with("<|");
    all.push_back({special ? "" : token, special ? token : ""});
  }
  all.push_back({"", "<|end|>"});
  return std::make_shared<const Vocabulary>(std::move(all),
                                            std::vector{static_cast<int32_t>(tokens.size())});
}

inline std::vector<int32_t> allowed_tokens(Matcher& matcher,
                                           int32_t vocab_size,
                                           int64_t max_tokens = -1) {
  std::vector<uint32_t> mask(static_cast<size_t>(vocab_size + 31) / 32);
  matcher.fill_mask(mask, max_tokens);
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < vocab_size; ++id) {
    if ((mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0) ids.push_back(id);
  }
  return ids;
}

}  // namespace tgi::guide
