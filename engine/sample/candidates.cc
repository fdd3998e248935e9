// See candidates.h. No filter sorts the vocabulary: a histogram of 1/16 wide bins finds the one bin
// in which the cut falls, and only that is sorted.
#include "engine/sample/candidates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tgi {
namespace {

constexpr int kNumBins = 512;  // the last one takes all that is 32 or more away from the best
constexpr float kBinsPerUnit = 16.0F;

// Of a distance from the best, >= 0.
int bin_of(float distance) {
  return static_cast<int>(std::min(distance * kBinsPerUnit, static_cast<float>(kNumBins - 1)));
}

// The bin that holds the k-th highest of the logits; the last one when there are fewer.
int bin_of_kth(const std::vector<float>& logits, float highest, int32_t k) {
  std::array<int32_t, kNumBins> counts{};
  for (const float x : logits) {
    if (x > -std::numeric_limits<float>::infinity()) {
      ++counts[static_cast<size_t>(bin_of(highest - x))];
    }
  }
  int64_t seen = 0;
  for (int bin = 0; bin < kNumBins; ++bin) {
    seen += counts[static_cast<size_t>(bin)];
    if (seen >= k) return bin;
  }
  return kNumBins - 1;
}

}  // namespace

Candidates::Candidates(SamplerScratch& scratch,
                       const SamplerMath& math,
                       float highest,
                       int32_t top_k)
    : scratch_(scratch), math_(math), highest_(highest) {
  const int last_bin = top_k > 0 ? bin_of_kth(scratch.logits, highest, top_k) : kNumBins;
  for (size_t id = 0; id < scratch.logits.size(); ++id) {
    const float x = scratch.logits[id];
    if (!(x > -std::numeric_limits<float>::infinity()) || bin_of(highest - x) > last_bin) continue;
    scratch.ids[static_cast<size_t>(count_)] = static_cast<int32_t>(id);
    scratch.values[static_cast<size_t>(count_++)] = x;
  }
  if (top_k <= 0 || count_ <= top_k) return;
  std::copy_n(scratch.values.begin(), count_, scratch.keys.begin());
  const auto kth = scratch.keys.begin() + top_k - 1;
  std::nth_element(scratch.keys.begin(), kth, scratch.keys.begin() + count_, std::greater<>());
  const float lowest = *kth;
  thin([&](size_t i) { return scratch.values[i] >= lowest; });
}

template <typename Keep>
void Candidates::thin(Keep keep) {
  size_t kept = 0;
  for (size_t i = 0; i < static_cast<size_t>(count_); ++i) {
    if (!keep(i)) continue;
    scratch_.ids[kept] = scratch_.ids[i];
    scratch_.values[kept] = scratch_.values[i];
    scratch_.weights[kept] = scratch_.weights[i];
    ++kept;
  }
  count_ = static_cast<int64_t>(kept);
}

double Candidates::weigh() {
  math_.exp_shifted(scratch_.values.data(), scratch_.weights.data(), count_, highest_);
  double total = 0.0;
  for (size_t i = 0; i < static_cast<size_t>(count_); ++i) {
    total += static_cast<double>(scratch_.weights[i]);
  }
  return total;
}

Candidates::Cut Candidates::find_cut(double mass) {
  const auto count = static_cast<size_t>(count_);
  const std::vector<float>& keys = scratch_.keys;
  const float lowest = *std::min_element(keys.begin(), keys.begin() + count_);
  std::array<double, kNumBins> masses{};
  for (size_t i = 0; i < count; ++i) {
    masses[static_cast<size_t>(bin_of(keys[i] - lowest))] +=
        static_cast<double>(scratch_.weights[i]);
  }
  // Rounding may leave the sum a little below `mass`: then the cut is in the last bin used.
  double before = 0.0;
  double reached = 0.0;
  int cut_bin = 0;
  for (int bin = 0; bin < kNumBins && reached < mass; ++bin) {
    const double in_bin = masses[static_cast<size_t>(bin)];
    if (in_bin == 0.0) continue;
    cut_bin = bin;
    before = reached;
    reached += in_bin;
  }
  size_t num_sorted = 0;
  for (size_t i = 0; i < count; ++i) {
    if (bin_of(keys[i] - lowest) == cut_bin) scratch_.order[num_sorted++] = static_cast<int32_t>(i);
  }
  const auto begin = scratch_.order.begin();
  const auto end = begin + static_cast<int64_t>(num_sorted);
  std::sort(begin, end, [&](int32_t a, int32_t b) {
    const auto i = static_cast<size_t>(a);
    const auto j = static_cast<size_t>(b);
    return keys[i] != keys[j] ? keys[i] < keys[j] : scratch_.ids[i] < scratch_.ids[j];
  });
  size_t last = 0;
  for (auto it = begin; it != end; ++it) {
    last = static_cast<size_t>(*it);
    before += static_cast<double>(scratch_.weights[last]);
    if (before >= mass) break;
  }
  return {keys[last], scratch_.ids[last]};
}

void Candidates::keep_top_p(float mass) {
  const double total = weigh();
  for (size_t i = 0; i < static_cast<size_t>(count_); ++i) scratch_.keys[i] = -scratch_.values[i];
  const Cut cut = find_cut(static_cast<double>(mass) * total);
  thin([&](size_t i) {
    const float key = -scratch_.values[i];
    return key < cut.key || (key == cut.key && scratch_.ids[i] <= cut.id);
  });
}

// Meister et al., "Locally Typical Sampling", 2023.
void Candidates::keep_typical(float mass) {
  const double total = weigh();
  const double log_total = std::log(total);
  const auto surprise = [&](size_t i) {
    return log_total - static_cast<double>(scratch_.values[i] - highest_);
  };
  double entropy = 0.0;
  for (size_t i = 0; i < static_cast<size_t>(count_); ++i) {
    const double weight = static_cast<double>(scratch_.weights[i]);
    if (weight > 0.0) entropy += weight / total * surprise(i);
  }
  for (size_t i = 0; i < static_cast<size_t>(count_); ++i) {
    scratch_.keys[i] = static_cast<float>(std::abs(surprise(i) - entropy));
  }
  const Cut cut = find_cut(static_cast<double>(mass) * total);
  thin([&](size_t i) { return scratch_.keys[i] <= cut.key; });
  highest_ = *std::max_element(scratch_.values.begin(), scratch_.values.begin() + count_);
}

void Candidates::keep_min_p(float ratio) {
  weigh();
  thin([&](size_t i) { return scratch_.weights[i] >= ratio; });
}

}  // namespace tgi
