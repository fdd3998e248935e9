// See candidates.h. No filter sorts the vocabulary: a histogram of 1/16 wide bins finds the one bin
// in which the cut falls, and only that is sorted.
#include "engine/sample/candidates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace tgi {
namespace {

constexpr int kNumBins = 512;  // the last one takes all that is 32 or more away from the best
constexpr float kBinsPerUnit = 16.0F;

// The bin of a distance from the best, which is >= 0.
int bin_of(float distance) {
  return static_cast<int>(std::min(distance * kBinsPerUnit, static_cast<float>(kNumBins - 1)));
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

Candidates::Candidates(const SamplingParams& params,
                       float highest,
                       const SamplerMath& math,
                       SamplerScratch& scratch)
    : scratch_(scratch), math_(math), highest_(highest) {
  if (params.top_k > 0) {
    list_top_k(params.top_k);
  } else if (params.top_p < 1.0F) {
    list_top_p(params.top_p);
  } else if (params.typical_p < 1.0F) {
    list_within(kInfinity);
  } else {
    list_within(0.01F - std::log(params.min_p));  // a hair more than min-p will keep
  }
}

void Candidates::list_within(float distance) {
  const float least = std::max(highest_ - distance, std::numeric_limits<float>::lowest());
  count_ = math_.list_from(scratch_.logits.data(), static_cast<int64_t>(scratch_.logits.size()),
                           least, scratch_.ids.data(), scratch_.values.data());
}

// Most rows have what is asked for near the top; the others are passed over again.
void Candidates::list_top_k(int32_t k) {
  for (const float distance : {4.0F, 12.0F, kInfinity}) {
    list_within(distance);
    if (count_ >= k) break;
  }
  if (count_ <= k) return;
  std::copy_n(scratch_.values.begin(), count_, scratch_.keys.begin());
  const auto kth = scratch_.keys.begin() + k - 1;
  std::nth_element(scratch_.keys.begin(), kth, scratch_.keys.begin() + count_, std::greater<>());
  const float lowest = *kth;
  thin([&](size_t i) { return scratch_.values[i] >= lowest; });
}

void Candidates::list_top_p(float mass) {
  total_ = static_cast<double>(math_.sum_exp(
      scratch_.logits.data(), static_cast<int64_t>(scratch_.logits.size()), highest_));
  for (const float distance : {2.0F, 5.0F, 12.0F, kInfinity}) {
    list_within(distance);
    if (weigh() >= static_cast<double>(mass) * total_) break;
  }
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
  const double listed = weigh();
  const double total = total_ > 0.0 ? total_ : listed;
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
