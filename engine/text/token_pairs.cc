#include "engine/text/token_pairs.h"

#include <utility>

#include "base/error.h"

namespace tgi {

TypedIds encode_typed(const Tokenizer& tokenizer,
                      std::string_view text,
                      std::optional<std::string_view> pair,
                      bool add_special) {
  if (const auto* typed = dynamic_cast<const PairTokenizer*>(&tokenizer)) {
    return typed->encode_typed(text, pair, add_special);
  }
  if (pair) {
    throw Error(Code::kUnsupported,
                "pairs of texts: the model's tokenizer doesn't say how they are put together; that "
                "stands in a tokenizer.json");
  }
  std::vector<int32_t> ids = tokenizer.encode(text, add_special);
  std::vector<int32_t> type_ids(ids.size(), 0);
  return {std::move(ids), std::move(type_ids)};
}

}  // namespace tgi
