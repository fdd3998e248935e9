#include "engine/guide/token_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "base/error.h"

namespace tgi::guide {
namespace {

using Bits = std::vector<uint32_t>;

constexpr int64_t kMostNumber = 1'000'000'000;

int32_t parse_number(SourceText& source) {
  const size_t begin = source.at;
  int64_t value = 0;
  for (; source.peek() >= '0' && source.peek() <= '9'; ++source.at)
    value = std::min<int64_t>(value * 10 + (source.peek() - '0'), kMostNumber);
  if (source.at == begin) source.refuse("expected the number of a token");
  return static_cast<int32_t>(value);
}

void skip_blanks(SourceText& source) {
  while (source.peek() == ' ') ++source.at;
}

std::string written(const TokenSet& set) {
  if (!set.name.empty()) return (set.is_negated ? "!" : "") + set.name;
  std::string out = set.is_negated ? "^" : "";
  for (const auto& [first, last] : set.numbers) {
    if (out.size() > size_t{set.is_negated}) out += ",";
    out += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
  }
  return set.is_negated && set.numbers.empty() ? "<[*]>" : "<[" + out + "]>";
}

[[noreturn]] void refuse(const std::string& what) {
  throw Error(Code::kInvalidArgument, what);
}

int32_t number_of(const TokenSet& set, const Vocabulary& vocabulary) {
  const std::optional<int32_t> id = vocabulary.special_id(set.name);
  if (id) return *id;
  refuse("the grammar needs the special token \"" + set.name +
         "\", which the model's vocabulary does not have");
}

// Ids without a meaning are in no set.
bool is_meant(int32_t id, const Vocabulary& vocabulary) {
  return !vocabulary.bytes(id).empty() || !vocabulary.special_name(id).empty();
}

int32_t first_bit(const Bits& bits) {
  for (size_t i = 0; i < bits.size(); ++i)
    if (bits[i] != 0) return static_cast<int32_t>(i * 32) + std::countr_zero(bits[i]);
  return -1;
}

}  // namespace

TokenSet parse_token_set(SourceText& source) {
  const size_t begin = source.at;
  TokenSet set;
  if (!source.take("<[")) {
    const size_t end = source.text.find('>', begin);
    const std::string_view name = source.text.substr(begin, end - begin + 1);
    if (end == std::string_view::npos || name.find('\n') != std::string_view::npos)
      source.refuse("expected a token <...>");
    source.at = end + 1;
    set.name = name;
    return set;
  }
  skip_blanks(source);
  if (source.take("*")) {
    set.is_negated = true;
    skip_blanks(source);
  } else {
    set.is_negated = source.take("^");
    do {
      skip_blanks(source);
      const size_t place = source.at;
      const int32_t first = parse_number(source);
      const int32_t last = source.take("-") ? parse_number(source) : first;
      if (last < first)
        source.refuse(place, "a range that ends before it begins", Code::kInvalidArgument);
      set.numbers.emplace_back(first, last);
      skip_blanks(source);
    } while (source.take(","));
  }
  if (!source.take("]>")) source.refuse("expected \"]>\" after numbers of tokens");
  return set;
}

TokenIds TokenIds::of(const TokenSet& set, const Vocabulary& vocabulary) {
  TokenIds out;
  if (!set.name.empty() && !set.is_negated) {
    out.first_ = number_of(set, vocabulary);
    return out;
  }
  const int32_t size = vocabulary.size();
  Bits bits((static_cast<size_t>(size) + 31) / 32, 0);
  const auto put = [&](int32_t id) {
    bits[static_cast<size_t>(id) / 32] |= uint32_t{1} << (static_cast<uint32_t>(id) % 32);
  };
  if (!set.name.empty()) put(number_of(set, vocabulary));
  for (const auto& [first, last] : set.numbers) {
    if (last >= size) {
      refuse(fmt::format("the grammar needs the token {}, and the model's vocabulary has {}", last,
                         size));
    }
    for (int32_t id = first; id <= last; ++id)
      if (is_meant(id, vocabulary)) put(id);
  }
  for (int32_t id = 0; set.is_negated && id < size; ++id) {
    const bool was_in = (bits[static_cast<size_t>(id) / 32] >> (id % 32) & 1U) != 0;
    const bool is_in = !was_in && is_meant(id, vocabulary) && !vocabulary.is_end_token(id);
    if (was_in != is_in)
      bits[static_cast<size_t>(id) / 32] ^= uint32_t{1} << (static_cast<uint32_t>(id) % 32);
  }
  out.first_ = first_bit(bits);
  if (out.first_ < 0) refuse(fmt::format("no token that can be written is in {}", written(set)));
  out.bits_ = std::move(bits);
  return out;
}

void TokenIds::add_to(std::span<uint32_t> mask) const {
  for (size_t i = 0; i < bits_.size(); ++i) mask[i] |= bits_[i];
  if (bits_.empty())
    mask[static_cast<size_t>(first_) / 32] |= uint32_t{1} << (static_cast<uint32_t>(first_) % 32);
}

std::vector<TokenIds> disjoint_parts(std::span<const TokenIds* const> sets) {
  std::vector<TokenIds> out;
  size_t num_words = 0;
  for (const TokenIds* set : sets) num_words = std::max(num_words, set->bits_.size());
  if (num_words == 0) {
    for (const TokenIds* set : sets) {
      const bool is_new = std::ranges::none_of(
          out, [&](const TokenIds& part) { return part.first_ == set->first_; });
      if (is_new) out.push_back(*set);
    }
    return out;
  }
  std::vector<Bits> parts;
  for (const TokenIds* set : sets) {
    Bits left(num_words, 0);
    set->add_to(left);
    const size_t num_before = parts.size();
    for (size_t i = 0; i < num_before; ++i) {
      Bits common(num_words);
      Bits rest(num_words);
      for (size_t word = 0; word < num_words; ++word) {
        common[word] = parts[i][word] & left[word];
        rest[word] = parts[i][word] & ~left[word];
        left[word] &= ~common[word];
      }
      if (first_bit(common) < 0) continue;
      if (first_bit(rest) >= 0) parts.push_back(std::move(rest));
      parts[i] = std::move(common);
    }
    if (first_bit(left) >= 0) parts.push_back(std::move(left));
  }
  for (Bits& part : parts) {
    TokenIds ids;
    ids.first_ = first_bit(part);
    ids.bits_ = std::move(part);
    out.push_back(std::move(ids));
  }
  return out;
}

}  // namespace tgi::guide
