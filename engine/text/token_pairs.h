// Texts for models that are told apart by type what their tokens belong to: one text, or a pair of
// them (a question and a passage, as rerankers read them).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer.h"

namespace tgi {

struct TypedIds {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;  // one for each of ids; what token_type_ids are in transformers
};

// A tokenizer whose format says how pairs are put together and which types their tokens have.
class PairTokenizer {
 public:
  virtual ~PairTokenizer() = default;

  // The ids of `text` alone are those of Tokenizer::encode. Throws kUnsupported when the format has
  // nothing for pairs.
  virtual TypedIds encode_typed(std::string_view text,
                                std::optional<std::string_view> pair,
                                bool add_special) const = 0;
};

// The same of any tokenizer. One that is no PairTokenizer gives type 0 to a text alone and throws
// kUnsupported for a pair.
TypedIds encode_typed(const Tokenizer& tokenizer,
                      std::string_view text,
                      std::optional<std::string_view> pair,
                      bool add_special);

}  // namespace tgi
