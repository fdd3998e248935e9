// Blocks of 256, see read_k_blocks.cc: the scales of the groups are integers times one number of
// the block, so they are chosen in three steps. Each group is fitted alone, its scale is rounded to
// one of the integers, and then number, integers and codes are moved in turn as long as the loss
// of the block falls.
#include <cmath>
#include <cstring>

#include "engine/weights/ggml/block_bytes.h"
#include "engine/weights/ggml/encode_blocks.h"
#include "engine/weights/ggml/fit_codes.h"
#include "engine/weights/ggml/table_codes.h"

namespace tgi {
namespace {

constexpr int kSuperBlock = 256;
constexpr int kRounds = 3;

int nearest_within(float value, int lowest, int highest) {
  if (!(value > static_cast<float>(lowest))) return lowest;
  if (!(value < static_cast<float>(highest))) return highest;
  return static_cast<int>(to_nearest(value));
}

// value = scale * scales[group] * code
template <typename Codes, int kGroup, int kLowest, int kHighest>
class ScaledBlock {
 public:
  static constexpr int kNumGroups = kSuperBlock / kGroup;

  ScaledBlock(const float* x, const float* w) : x_(x), w_(w) {
    float fitted[kNumGroups];
    for (int group = 0; group < kNumGroups; ++group) {
      fitted[group] = fit_scale<Codes, kGroup>(x + group * kGroup, w + group * kGroup);
    }
    set_scale(largest_of<kNumGroups>(fitted) / static_cast<float>(kLowest), fitted);
    for (int round = 0; round < kRounds; ++round) {
      if (!improve()) break;
    }
  }

  float scale() const { return scale_; }
  int factor(int group) const { return factors_[group]; }
  void choose(int8_t* codes) const {
    for (int group = 0; group < kNumGroups; ++group) {
      choose_codes<Codes, kGroup>(x_ + group * kGroup, scale_of(factors_[group]), 0.0F,
                                  codes + group * kGroup);
    }
  }

 private:
  float scale_of(int factor) const { return scale_ * static_cast<float>(factor); }
  float loss(int group, int factor) const {
    return loss_of<Codes, kGroup>(x_ + group * kGroup, w_ + group * kGroup, scale_of(factor), 0.0F);
  }

  void set_scale(float scale, const float* fitted) {
    scale_ = as_half(scale);
    for (int group = 0; group < kNumGroups; ++group) {
      const float factor = scale_ == 0.0F ? 0.0F : fitted[group] / scale_;
      factors_[group] = nearest_within(factor, kLowest, kHighest);
      losses_[group] = loss(group, factors_[group]);
    }
  }

  void move_factors() {
    for (int group = 0; group < kNumGroups; ++group) {
      const int middle = factors_[group];
      for (const int factor : {middle - 1, middle + 1}) {
        if (factor < kLowest || factor > kHighest) continue;
        const float other = loss(group, factor);
        if (other >= losses_[group]) continue;
        losses_[group] = other;
        factors_[group] = factor;
      }
    }
  }

  float total() const {
    float sum = 0.0F;
    for (const float loss : losses_) sum += loss;
    return sum;
  }

  bool improve() {
    const float before = total();
    move_factors();
    const ScaledBlock kept = *this;
    double products = 0;
    double squares = 0;
    for (int group = 0; group < kNumGroups; ++group) {
      const auto factor = static_cast<double>(factors_[group]);
      const float group_scale = scale_of(factors_[group]);
      if (group_scale == 0.0F) continue;
      const ScaleSums sums =
          sums_at<Codes, kGroup>(x_ + group * kGroup, w_ + group * kGroup, 1.0F / group_scale);
      products += factor * sums.products;
      squares += factor * factor * sums.squares;
    }
    if (squares > 0) {
      scale_ = as_half(static_cast<float>(products / squares));
      for (int group = 0; group < kNumGroups; ++group) {
        losses_[group] = loss(group, factors_[group]);
      }
      if (!(total() <= kept.total())) *this = kept;
    }
    return total() < before;
  }

  const float* x_;
  const float* w_;
  float scale_ = 0;
  int factors_[kNumGroups] = {};
  float losses_[kNumGroups] = {};
};

// value = scale * scales[group] * code - minimum * minima[group]; factors of 6 bits.
template <typename Codes>
class BlockWithMinima {
 public:
  static constexpr int kGroup = 32;
  static constexpr int kNumGroups = kSuperBlock / kGroup;
  static constexpr int kHighest = 63;

  BlockWithMinima(const float* x, const float* w) : x_(x), w_(w) {
    ScaleAndMinimum fitted[kNumGroups];
    ScaleAndMinimum largest;
    for (int group = 0; group < kNumGroups; ++group) {
      fitted[group] =
          fit_scale_and_minimum<Codes, kGroup>(x + group * kGroup, w + group * kGroup, false);
      largest.scale = std::max(largest.scale, fitted[group].scale);
      largest.minimum = std::max(largest.minimum, fitted[group].minimum);
    }
    scale_ = as_half(largest.scale / kHighest);
    minimum_ = as_half(largest.minimum / kHighest);
    for (int group = 0; group < kNumGroups; ++group) {
      const float scale = scale_ == 0.0F ? 0.0F : fitted[group].scale / scale_;
      const float minimum = minimum_ == 0.0F ? 0.0F : fitted[group].minimum / minimum_;
      factors_[group] = {.scale = nearest_within(scale, 0, kHighest),
                         .minimum = nearest_within(minimum, 0, kHighest)};
      losses_[group] = loss(group, factors_[group]);
    }
    for (int round = 0; round < kRounds; ++round) {
      if (!improve()) break;
    }
  }

  // d, dmin, the packed factors of 6 bits (see factors_of_q4_k), 16 bytes in all.
  void put_head(std::byte* block) const {
    store_half(block, scale_);
    store_half(block + 2, minimum_);
    std::byte* const packed = block + 4;
    for (int group = 0; group < 4; ++group) {
      const Factors& low = factors_[group];
      const Factors& high = factors_[group + 4];
      packed[group] = static_cast<std::byte>(low.scale | (high.scale >> 4) << 6);
      packed[group + 4] = static_cast<std::byte>(low.minimum | (high.minimum >> 4) << 6);
      packed[group + 8] = static_cast<std::byte>((high.scale & 15) | (high.minimum & 15) << 4);
    }
  }

  void choose(int8_t* codes) const {
    for (int group = 0; group < kNumGroups; ++group) {
      const Factors& factors = factors_[group];
      choose_codes<Codes, kGroup>(x_ + group * kGroup, scale_of(factors), minimum_of(factors),
                                  codes + group * kGroup);
    }
  }

 private:
  struct Factors {
    int scale = 0;
    int minimum = 0;
  };

  float scale_of(const Factors& factors) const {
    return scale_ * static_cast<float>(factors.scale);
  }
  float minimum_of(const Factors& factors) const {
    return minimum_ * static_cast<float>(factors.minimum);
  }
  float loss(int group, const Factors& factors) const {
    return loss_of<Codes, kGroup>(x_ + group * kGroup, w_ + group * kGroup, scale_of(factors),
                                  minimum_of(factors));
  }
  float total() const {
    float sum = 0.0F;
    for (const float loss : losses_) sum += loss;
    return sum;
  }

  void move_factors() {
    for (int group = 0; group < kNumGroups; ++group) {
      const Factors middle = factors_[group];
      for (int scale = middle.scale - 1; scale <= middle.scale + 1; ++scale) {
        for (int minimum = middle.minimum - 1; minimum <= middle.minimum + 1; ++minimum) {
          if (std::min(scale, minimum) < 0 || std::max(scale, minimum) > kHighest) continue;
          const Factors factors{.scale = scale, .minimum = minimum};
          const float other = loss(group, factors);
          if (other >= losses_[group]) continue;
          losses_[group] = other;
          factors_[group] = factors;
        }
      }
    }
  }

  // The numbers that both factors are multiplied by, from the normal equations of the block.
  bool solve() {
    double ss = 0;
    double sm = 0;
    double mm = 0;
    double sx = 0;
    double mx = 0;
    for (int group = 0; group < kNumGroups; ++group) {
      const Factors& factors = factors_[group];
      int8_t codes[kGroup];
      const float* const x = x_ + group * kGroup;
      const float* const w = w_ + group * kGroup;
      choose_codes<Codes, kGroup>(x, scale_of(factors), minimum_of(factors), codes);
      for (int i = 0; i < kGroup; ++i) {
        const double by_scale = static_cast<double>(factors.scale) * codes[i];
        const double by_minimum = -static_cast<double>(factors.minimum);
        const double weight = w[i];
        ss += weight * by_scale * by_scale;
        sm += weight * by_scale * by_minimum;
        mm += weight * by_minimum * by_minimum;
        sx += weight * by_scale * x[i];
        mx += weight * by_minimum * x[i];
      }
    }
    const double determinant = ss * mm - sm * sm;
    double scale = ss > 0 ? sx / ss : 0;
    double minimum = minimum_;
    if (determinant > 1e-9 * ss * mm) {
      scale = (sx * mm - mx * sm) / determinant;
      minimum = (mx * ss - sx * sm) / determinant;
    }
    if (!(scale > 0) || !(minimum >= 0)) return false;
    scale_ = as_half(static_cast<float>(scale));
    minimum_ = as_half(static_cast<float>(minimum));
    return true;
  }

  bool improve() {
    const float before = total();
    move_factors();
    const BlockWithMinima kept = *this;
    if (solve()) {
      for (int group = 0; group < kNumGroups; ++group) {
        losses_[group] = loss(group, factors_[group]);
      }
      if (!(total() <= kept.total())) *this = kept;
    }
    return total() < before;
  }

  const float* x_;
  const float* w_;
  float scale_ = 0;
  float minimum_ = 0;
  Factors factors_[kNumGroups] = {};
  float losses_[kNumGroups] = {};
};

template <int kBlockBytes, typename Encode>
void for_blocks_of_256(const float* values,
                       int64_t num_blocks,
                       const float* importance,
                       std::byte* out,
                       const Encode& encode) {
  float w[kSuperBlock];
  int8_t codes[kSuperBlock];
  for (int64_t block = 0; block < num_blocks; ++block) {
    const float* const x = values + block * kSuperBlock;
    weigh<kSuperBlock>(x, importance == nullptr ? nullptr : importance + block * kSuperBlock, w);
    std::memset(out, 0, kBlockBytes);
    encode(x, w, codes, out);
    out += kBlockBytes;
  }
}

// The lower halves of codes, groups 2i and 2i + 1 in 32 bytes.
void put_halves(const int8_t* codes, std::byte* bytes) {
  for (int pair = 0; pair < 4; ++pair) {
    for (int i = 0; i < 32; ++i) {
      const int both = (codes[pair * 64 + i] & 15) | (codes[pair * 64 + 32 + i] & 15) << 4;
      bytes[pair * 32 + i] = static_cast<std::byte>(both);
    }
  }
}

}  // namespace

void encode_q4_k(const float* values, int64_t num_blocks, const float* importance, std::byte* out) {
  for_blocks_of_256<144>(values, num_blocks, importance, out,
                         [](const float* x, const float* w, int8_t* codes, std::byte* block) {
                           const BlockWithMinima<IntegerCodes<0, 15>> fitted(x, w);
                           fitted.put_head(block);
                           fitted.choose(codes);
                           put_halves(codes, block + 16);
                         });
}

void encode_q5_k(const float* values, int64_t num_blocks, const float* importance, std::byte* out) {
  for_blocks_of_256<176>(values, num_blocks, importance, out,
                         [](const float* x, const float* w, int8_t* codes, std::byte* block) {
                           const BlockWithMinima<IntegerCodes<0, 31>> fitted(x, w);
                           fitted.put_head(block);
                           fitted.choose(codes);
                           put_halves(codes, block + 48);
                           for (int i = 0; i < kSuperBlock; ++i) {
                             const int bit = (codes[i] >> 4) << (i / 32);
                             block[16 + i % 32] |= static_cast<std::byte>(bit);
                           }
                         });
}

void encode_q6_k(const float* values, int64_t num_blocks, const float* importance, std::byte* out) {
  for_blocks_of_256<210>(values, num_blocks, importance, out,
                         [](const float* x, const float* w, int8_t* codes, std::byte* block) {
                           const ScaledBlock<IntegerCodes<-32, 31>, 16, -128, 127> fitted(x, w);
                           fitted.choose(codes);
                           for (int half = 0; half < 2; ++half) {
                             const int8_t* const own = codes + half * 128;
                             for (int i = 0; i < 64; ++i) {
                               const int both = ((own[i] + 32) & 15) | ((own[i + 64] + 32) & 15)
                                                                           << 4;
                               block[half * 64 + i] = static_cast<std::byte>(both);
                             }
                             for (int i = 0; i < 128; ++i) {
                               const int bits = ((own[i] + 32) >> 4) << (i / 32 * 2);
                               block[128 + half * 32 + i % 32] |= static_cast<std::byte>(bits);
                             }
                           }
                           for (int group = 0; group < 16; ++group) {
                             block[192 + group] = static_cast<std::byte>(fitted.factor(group));
                           }
                           store_half(block + 208, fitted.scale());
                         });
}

void encode_iq4_xs(const float* values,
                   int64_t num_blocks,
                   const float* importance,
                   std::byte* out) {
  for_blocks_of_256<136>(values, num_blocks, importance, out,
                         [](const float* x, const float* w, int8_t* codes, std::byte* block) {
                           const ScaledBlock<Iq4Codes, 32, -32, 31> fitted(x, w);
                           fitted.choose(codes);
                           store_half(block, fitted.scale());
                           uint16_t high_bits = 0;
                           for (int group = 0; group < 8; ++group) {
                             const int factor = fitted.factor(group) + 32;
                             const int low = (factor & 15) << (group % 2 * 4);
                             block[4 + group / 2] |= static_cast<std::byte>(low);
                             high_bits |= static_cast<uint16_t>((factor >> 4) << (2 * group));
                             int8_t* const own = codes + group * 32;
                             for (int i = 0; i < 16; ++i) {
                               const int both = index_of_iq4(own[i]) | index_of_iq4(own[16 + i])
                                                                           << 4;
                               block[8 + group * 16 + i] = static_cast<std::byte>(both);
                             }
                           }
                           std::memcpy(block + 2, &high_bits, sizeof high_bits);
                         });
}

}  // namespace tgi
