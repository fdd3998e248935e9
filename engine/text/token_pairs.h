// Texts for models that are told apart by type what their tokens belong to: one text, or a pair of
// them (a question and a passage, as rerankers read them).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer.h"

namespace tgi {

enum class TokenPart : uint8_t { kAdded, kFirst, kSecond };  // of which text; kAdded: of none

// Each has one for each of ids.
struct TypedIds {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids{};  // what token_type_ids are in transformers
  std::vector<TokenPart> parts{};   // kAdded is what special_tokens_mask marks there
};

// The side of a text that is lost where it is too long.
enum class CutSide : uint8_t { kRight, kLeft };

// A tokenizer whose format says how pairs are put together and which types their tokens have.
class PairTokenizer {
 public:
  virtual ~PairTokenizer() = default;

  // The ids of `text` alone are those of Tokenizer::encode. Throws kUnsupported when the format has
  // nothing for pairs.
  virtual TypedIds encode_typed(std::string_view text,
                                std::optional<std::string_view> pair,
                                bool add_special) const = 0;

  // As its own file has it. Nothing: it says none.
  virtual std::optional<CutSide> cut_side() const = 0;
};

// The same of any tokenizer. One that is no PairTokenizer gives type 0 to a text alone and throws
// kUnsupported for a pair.
TypedIds encode_typed(const Tokenizer& tokenizer,
                      std::string_view text,
                      std::optional<std::string_view> pair,
                      bool add_special);

// Of any tokenizer.
std::optional<CutSide> cut_side(const Tokenizer& tokenizer);

// "left", "right". Nothing for another.
std::optional<CutSide> cut_side_from_name(std::string_view name);

// Which tokens are left, in order, where at most so many are taken: those that were added, and of
// each text what truncation_strategy "longest_first" of the Hugging Face library leaves of it.
// Nothing: those that were added are too many already.
std::optional<std::vector<size_t>> kept_tokens(const TypedIds& whole,
                                               int64_t max_tokens,
                                               CutSide side);

// Those of `whole`.
TypedIds pick_tokens(const TypedIds& whole, const std::vector<size_t>& kept);

}  // namespace tgi
