#include "engine/text/token_pairs.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace tgi {
namespace {

// Of a tokenizer that puts tokens around a text and changes nothing in it.
std::vector<TokenPart> parts_of(const std::vector<int32_t>& ids,
                                const std::vector<int32_t>& of_text) {
  std::vector<TokenPart> out(ids.size(), TokenPart::kFirst);
  const auto at = std::search(ids.begin(), ids.end(), of_text.begin(), of_text.end());
  if (of_text.size() > static_cast<size_t>(ids.end() - at)) return out;
  std::ranges::fill(out, TokenPart::kAdded);
  std::fill_n(out.begin() + (at - ids.begin()), of_text.size(), TokenPart::kFirst);
  return out;
}

struct Lengths {
  int64_t first;
  int64_t second;
};

// How long the texts of a pair may stay: the shorter one whole, as long as it has no more than
// half; of an odd number the longer one has one more, of equals the second.
Lengths longest_first(Lengths given, int64_t max_tokens) {
  const bool is_first_longer = given.first > given.second;
  int64_t shorter = std::min(given.first, given.second);
  int64_t longer = shorter > max_tokens ? shorter : std::max(shorter, max_tokens - shorter);
  if (shorter + longer > max_tokens) {
    shorter = max_tokens / 2;
    longer = max_tokens - shorter;
  }
  return is_first_longer ? Lengths{longer, shorter} : Lengths{shorter, longer};
}

}  // namespace

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
  std::vector<TokenPart> parts = parts_of(ids, tokenizer.encode(text, false));
  return {std::move(ids), std::move(type_ids), std::move(parts)};
}

std::optional<CutSide> cut_side(const Tokenizer& tokenizer) {
  const auto* typed = dynamic_cast<const PairTokenizer*>(&tokenizer);
  return typed == nullptr ? std::nullopt : typed->cut_side();
}

std::optional<CutSide> cut_side_from_name(std::string_view name) {
  if (name == "left") return CutSide::kLeft;
  if (name == "right") return CutSide::kRight;
  return std::nullopt;
}

std::optional<std::vector<size_t>> kept_tokens(const TypedIds& whole,
                                               int64_t max_tokens,
                                               CutSide side) {
  const int64_t num_first = std::ranges::count(whole.parts, TokenPart::kFirst);
  const int64_t num_second = std::ranges::count(whole.parts, TokenPart::kSecond);
  const int64_t num_added = static_cast<int64_t>(whole.ids.size()) - num_first - num_second;
  if (num_added > max_tokens) return std::nullopt;
  const Lengths left = longest_first({num_first, num_second}, max_tokens - num_added);
  // The places of a text's tokens that stay.
  const auto range_of = [&](int64_t count, int64_t kept) {
    kept = std::min(kept, count);
    return side == CutSide::kLeft ? std::pair(count - kept, count) : std::pair(int64_t{0}, kept);
  };
  const auto first = range_of(num_first, left.first);
  const auto second = range_of(num_second, left.second);
  std::vector<size_t> out;
  int64_t at_first = 0;
  int64_t at_second = 0;
  for (size_t i = 0; i < whole.ids.size(); ++i) {
    bool is_kept = true;
    if (whole.parts[i] != TokenPart::kAdded) {
      const bool is_first = whole.parts[i] == TokenPart::kFirst;
      const int64_t at = is_first ? at_first++ : at_second++;
      const auto& [begin, end] = is_first ? first : second;
      is_kept = begin <= at && at < end;
    }
    if (is_kept) out.push_back(i);
  }
  return out;
}

TypedIds pick_tokens(const TypedIds& whole, const std::vector<size_t>& kept) {
  TypedIds out;
  for (const size_t i : kept) {
    out.ids.push_back(whole.ids[i]);
    out.type_ids.push_back(whole.type_ids[i]);
    out.parts.push_back(whole.parts[i]);
  }
  return out;
}

}  // namespace tgi
