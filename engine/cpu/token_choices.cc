#include "engine/cpu/token_choices.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <vector>

#include "engine/cpu/host_resources.h"

namespace tgi {
namespace {

constexpr int64_t kWordBits = 64;

int64_t words_of(const SlotLayout& layout) {
  const int64_t context = int64_t{layout.max_blocks_per_slot} * layout.block_size;
  return (context + kWordBits - 1) / kWordBits;
}

// Positions [begin, end).
void add_range(int64_t begin, int64_t end, uint64_t* out) {
  while (begin < end) {
    const int64_t bit = begin % kWordBits;
    const int64_t count = std::min(end - begin, kWordBits - bit);
    const uint64_t run = count == kWordBits ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
    out[begin / kWordBits] |= run << bit;
    begin += count;
  }
}

}  // namespace

int64_t TokenChoices::bytes(const SlotLayout& layout) {
  return int64_t{layout.max_batch_tokens} * layout.num_choices * words_of(layout) *
         int64_t{sizeof(uint64_t)};
}

TokenChoices::TokenChoices(const SlotLayout& layout)
    : num_words_(words_of(layout)),
      bits_(map_memory(static_cast<size_t>(bytes(layout)), "chosen tokens")) {}

void TokenChoices::choose(const ChoiceRule& rule,
                          int64_t position,
                          int64_t last,
                          std::span<float> scores,
                          std::vector<float>& sorted,
                          uint64_t* out) {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  std::fill_n(out, last / kWordBits + 1, uint64_t{0});
  const auto num_blocks = static_cast<int64_t>(scores.size());
  if (num_blocks <= rule.top_k) return add_range(0, position + 1, out);

  for (int64_t i = 0; i < rule.local_blocks && i < num_blocks; ++i) {
    scores[static_cast<size_t>(num_blocks - 1 - i)] = std::numeric_limits<float>::infinity();
  }
  sorted.assign(scores.begin(), scores.end());
  const auto border = sorted.begin() + rule.top_k - 1;
  std::nth_element(sorted.begin(), border, sorted.end(), std::greater<>());
  const float least = *border;
  int64_t equals = rule.top_k - std::count_if(scores.begin(), scores.end(),
                                              [least](float x) { return x > least; });
  for (int64_t i = 0; i < num_blocks; ++i) {
    const float score = scores[static_cast<size_t>(i)];
    if (score < least || score == kLowest || (score == least && equals-- <= 0)) continue;
    const int64_t begin = i * rule.block_size;
    add_range(begin, std::min(begin + rule.block_size, position + 1), out);
  }
}

void TokenChoices::list(const uint64_t* chosen, int64_t position, std::vector<int32_t>& out) {
  out.clear();
  for (int64_t first = 0; first <= position; first += kWordBits) {
    uint64_t word = chosen[first / kWordBits];
    if (position - first + 1 < kWordBits) word &= (uint64_t{1} << (position - first + 1)) - 1;
    for (; word != 0; word &= word - 1) {
      out.push_back(static_cast<int32_t>(first + std::countr_zero(word)));
    }
  }
}

}  // namespace tgi
