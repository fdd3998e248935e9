#include "engine/lora/merge_rules.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"
#include "engine/sample/philox.h"

namespace tgi {
namespace {

constexpr size_t kBlockSize = size_t{1} << 16;  // elements that a thread adds up at a time

template <typename Enum>
std::optional<Enum> from_name(Names names, std::string_view name) {
  const auto it = std::ranges::find(names, name);
  if (it == names.end()) return std::nullopt;
  return static_cast<Enum>(it - names.begin());
}

// Of a float without its sign: larger for larger numbers.
uint32_t size_bits(float value) {
  return std::bit_cast<uint32_t>(value) & 0x7FFFFFFFU;
}

struct Threshold {
  uint32_t bits = 0;     // all above stay,
  size_t num_equal = 0;  // and so many of those that are as large
};

// Of the bits of those whose upper bits are `upper`, `shift` of them further down, the piece at
// which `rank` larger ones have been counted.
uint32_t piece_at(
    const std::vector<float>& values, uint32_t upper, int upper_shift, int shift, size_t& rank) {
  const uint32_t num_pieces = 1U << (upper_shift - shift);
  std::vector<size_t> counts(num_pieces);
  for (const float value : values) {
    const uint32_t bits = size_bits(value);
    if (upper_shift < 31 && bits >> upper_shift != upper) continue;
    ++counts[(bits >> shift) & (num_pieces - 1)];
  }
  uint32_t piece = num_pieces - 1;
  while (piece > 0 && counts[piece] < rank) rank -= counts[piece--];
  return piece;
}

// The size of the `count`-th largest. REQUIRES: 1 <= count <= values.size().
Threshold threshold_of(const std::vector<float>& values, size_t count) {
  size_t rank = count;
  const uint32_t upper = piece_at(values, 0, 31, 16, rank);
  const uint32_t lower = piece_at(values, upper, 16, 0, rank);
  return {.bits = upper << 16 | lower, .num_equal = rank};
}

void prune_smallest(std::vector<float>& values, double density) {
  const auto count = static_cast<size_t>(density * static_cast<double>(values.size()));
  if (count == 0) return values.assign(values.size(), 0.0F);
  Threshold least = threshold_of(values, count);
  for (float& value : values) {
    const uint32_t bits = size_bits(value);
    if (bits > least.bits) continue;
    if (bits == least.bits && least.num_equal > 0) {
      --least.num_equal;
    } else {
      value = 0.0F;
    }
  }
}

void prune_at_random(std::vector<float>& values, uint64_t seed, const MergeRule& rule) {
  const auto density = static_cast<float>(rule.density);
  for (size_t begin = 0; begin < values.size(); begin += 4) {
    const uint64_t block = begin / 4;
    const auto words =
        philox4x32_10({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0},
                      {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
    for (size_t i = begin; i < std::min(begin + 4, values.size()); ++i) {
      const bool is_kept = static_cast<double>(words[i - begin]) < rule.density * 4294967296.0;
      if (!is_kept) {
        values[i] = 0.0F;
      } else if (rule.rescales) {
        values[i] /= density;
      }
    }
  }
}

int sign_of(float value) {
  return value > 0.0F ? 1 : value < 0.0F ? -1 : 0;
}

// At each place of [begin, end), of the terms of the sign that prevails; a sum of 0 counts as
// positive.
void sum_elected(const std::vector<MergeTerm>& terms,
                 MajoritySign majority_sign,
                 size_t begin,
                 size_t end,
                 std::vector<float>& out) {
  for (size_t i = begin; i < end; ++i) {
    float total = 0.0F;
    for (const MergeTerm& term : terms) {
      const float value = term.values[i];
      total += majority_sign == MajoritySign::kTotal ? value : static_cast<float>(sign_of(value));
    }
    const int elected = total >= 0.0F ? 1 : -1;
    float sum = 0.0F;
    int count = 0;
    for (const MergeTerm& term : terms) {
      if (sign_of(term.values[i]) != elected) continue;
      sum += term.weight * term.values[i];
      ++count;
    }
    out[i] = sum / static_cast<float>(std::max(count, 1));
  }
}

void sum_weighted(const std::vector<MergeTerm>& terms,
                  size_t begin,
                  size_t end,
                  std::vector<float>& out) {
  for (const MergeTerm& term : terms) {
    for (size_t i = begin; i < end; ++i) out[i] += term.weight * term.values[i];
  }
}

}  // namespace

std::optional<MergeStrategy> merge_strategy_from_name(std::string_view name) {
  return from_name<MergeStrategy>(kMergeStrategyNames, name);
}

std::optional<MajoritySign> majority_sign_from_name(std::string_view name) {
  return from_name<MajoritySign>(kMajoritySignNames, name);
}

std::vector<float> merge_terms(std::vector<MergeTerm> terms,
                               const MergeRule& rule,
                               int num_threads) {
  TGI_CHECK(!terms.empty());
  const size_t size = terms.front().values.size();
  for (const MergeTerm& term : terms) TGI_CHECK(term.values.size() == size);
  if (rule.strategy != MergeStrategy::kLinear && rule.density < 1.0) {
    parallel_for(num_threads, std::ssize(terms), [&](int64_t index) {
      MergeTerm& term = terms[static_cast<size_t>(index)];
      if (rule.is_pruned_at_random()) {
        prune_at_random(term.values, term.seed, rule);
      } else {
        prune_smallest(term.values, rule.density);
      }
    });
  }
  std::vector<float> out(size, 0.0F);
  const size_t num_blocks = (size + kBlockSize - 1) / kBlockSize;
  parallel_for(num_threads, static_cast<int64_t>(num_blocks), [&](int64_t index) {
    const size_t begin = static_cast<size_t>(index) * kBlockSize;
    const size_t end = std::min(begin + kBlockSize, size);
    if (rule.elects_signs()) {
      sum_elected(terms, rule.majority_sign, begin, end, out);
    } else {
      sum_weighted(terms, begin, end, out);
    }
  });
  return out;
}

}  // namespace tgi
