// The passes of the sampler over a whole row of logits (engine/sample/sampler_math.h says what each
// must do). Philox works on sixteen counters side by side.
#pragma once

#include <limits>

#include "engine/cpu/kernels/vector_math.h"
#include "engine/sample/sampler_math.h"

namespace tgi {

template <typename V>
float max_value(const float* x, int64_t count) {
  const V lowest = V::set1(-std::numeric_limits<float>::infinity());
  V highest = lowest;
  for (int64_t i = 0; i < count; i += 16) {
    const V value = V::select(V::first_lanes(count - i), V::load_first(x + i, count - i), lowest);
    highest = V::max(value, highest);  // this way round NaN is passed over
  }
  return highest.max_lane();
}

template <typename V>
V exp_or_zero(V x) {
  return V::select(V::is_nan(x), V::zero(), vector_exp(x));
}

// In stretches, so that a long row loses no more bits than a short one.
template <typename V>
float sum_exp(const float* x, int64_t count, float shift) {
  constexpr int64_t kStretch = 1024;
  V total = V::zero();
  for (int64_t begin = 0; begin < count; begin += kStretch) {
    const int64_t end = begin + kStretch < count ? begin + kStretch : count;
    V part = V::zero();
    for (int64_t i = begin; i < end; i += 16) {
      const V e = vector_exp(V::load_first(x + i, count - i) - V::set1(shift));  // NaN stays
      part = part + V::select(V::first_lanes(count - i), e, V::zero());
    }
    total = total + part;
  }
  return total.sum();
}

template <typename V>
void exp_shifted(const float* x, float* out, int64_t count, float shift) {
  for (int64_t i = 0; i < count; i += 16) {
    exp_or_zero(V::load_first(x + i, count - i) - V::set1(shift)).store_first(out + i, count - i);
  }
}

// word[w][lane] = word w of the block with counter (counter[lane], c1, c2, 0).
template <typename V>
void philox_lanes(const uint32_t* counter, const DrawKey& key, uint32_t (&word)[4][16]) {
  uint32_t key0 = static_cast<uint32_t>(key.seed);
  uint32_t key1 = static_cast<uint32_t>(key.seed >> 32);
  uint32_t a[16], b[16], c[16], d[16];
  for (int i = 0; i < 16; ++i) {
    a[i] = counter[i];
    b[i] = key.position;
    c[i] = key.sequence_index;
    d[i] = 0;
  }
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 16; ++i) {
      const uint64_t first = uint64_t{0xD2511F53U} * a[i];
      const uint64_t second = uint64_t{0xCD9E8D57U} * c[i];
      a[i] = static_cast<uint32_t>(second >> 32) ^ b[i] ^ key0;
      b[i] = static_cast<uint32_t>(second);
      c[i] = static_cast<uint32_t>(first >> 32) ^ d[i] ^ key1;
      d[i] = static_cast<uint32_t>(first);
    }
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  for (int i = 0; i < 16; ++i) {
    word[0][i] = a[i];
    word[1][i] = b[i];
    word[2][i] = c[i];
    word[3][i] = d[i];
  }
}

// (bits + 1/2) / 2^32, rounded once, kept below 1.
template <typename V>
V uniform_from_bits(const uint32_t* bits) {
  int32_t upper[16], lower[16];
  for (int i = 0; i < 16; ++i) {
    upper[i] = static_cast<int32_t>(bits[i] >> 16);
    lower[i] = static_cast<int32_t>(bits[i] & 0xFFFFU);
  }
  const V rest = V::fma(V::from_ints(lower), V::set1(0x1p-32F), V::set1(0x1p-33F));
  const V u = V::fma(V::from_ints(upper), V::set1(0x1p-16F), rest);
  return V::min(u, V::set1(1.0F - 0x1p-24F));
}

template <typename V>
struct Race {
  V best = V::zero();
  int32_t winner[16] = {};

  void run(V weight, V time, const int32_t* ids) {
    const V speed = weight / time;
    const auto faster = V::less(best, speed);
    best = V::select(faster, speed, best);
    for (uint32_t bits = V::mask_bits(faster); bits != 0; bits &= bits - 1) {
      const int lane = __builtin_ctz(bits);
      winner[lane] = ids[lane];
    }
  }

  int32_t result() const {
    float speed[16];
    best.store(speed);
    float highest = 0.0F;
    int32_t id = -1;
    for (int i = 0; i < 16; ++i) {
      const bool tie = speed[i] == highest && id >= 0 && winner[i] < id;
      if (speed[i] > highest || tie) {
        highest = speed[i];
        id = winner[i];
      }
    }
    return id;
  }
};

template <typename V>
void temper(const float* x, float* out, int64_t count, float temperature) {
  const V lowest = V::set1(-std::numeric_limits<float>::infinity());
  const V largest = V::set1(std::numeric_limits<float>::max());
  for (int64_t i = 0; i < count; i += 16) {
    const V scaled = V::load_first(x + i, count - i) / V::set1(temperature);
    const V value = V::select(V::is_nan(scaled), lowest, V::min(scaled, largest));
    value.store_first(out + i, count - i);
  }
}

template <typename V>
int64_t list_from(const float* x, int64_t count, float least, int32_t* indices, float* values) {
  int64_t size = 0;
  for (int64_t i = 0; i < count; i += 16) {
    const V value = V::load_first(x + i, count - i);
    const auto in_range = V::and_not(V::first_lanes(count - i), V::less(value, V::set1(least)));
    for (uint32_t bits = V::mask_bits(V::and_not(in_range, V::is_nan(value))); bits != 0;
         bits &= bits - 1) {
      const int64_t index = i + __builtin_ctz(bits);
      indices[size] = static_cast<int32_t>(index);
      values[size++] = x[index];
    }
  }
  return size;
}

template <typename V>
V race_weight(const float* x, int64_t count, float shift) {
  const V weight = exp_or_zero(V::load_first(x, count) - V::set1(shift));
  return V::select(V::first_lanes(count), weight, V::zero());
}

template <typename V>
int32_t draw_dense(const float* x, int64_t count, float shift, const DrawKey& key) {
  Race<V> race;
  for (int64_t base = 0; base < count; base += 64) {
    uint32_t counter[16];
    for (int i = 0; i < 16; ++i) counter[i] = static_cast<uint32_t>(base / 4 + i);
    uint32_t word[4][16];
    philox_lanes<V>(counter, key, word);
    for (int w = 0; w < 4 && base + 16 * w < count; ++w) {
      const int64_t first = base + 16 * w;
      int32_t ids[16];
      for (int lane = 0; lane < 16; ++lane) ids[lane] = static_cast<int32_t>(first) + lane;
      const V weight = race_weight<V>(x + first, count - first, shift);
      race.run(weight, vector_exponential(uniform_from_bits<V>(word[w])), ids);
    }
  }
  return race.result();
}

template <typename V>
int32_t draw_listed(
    const float* x, const int32_t* ids, int64_t count, float shift, const DrawKey& key) {
  Race<V> race;
  for (int64_t i = 0; i < count; i += 16) {
    int32_t id[16];
    uint32_t counter[16];
    for (int lane = 0; lane < 16; ++lane) {
      id[lane] = i + lane < count ? ids[i + lane] : 0;
      const auto number = static_cast<uint32_t>(id[lane]);
      counter[lane] = number / 64 * 16 + number % 16;
    }
    uint32_t word[4][16];
    philox_lanes<V>(counter, key, word);
    uint32_t bits[16];
    for (int lane = 0; lane < 16; ++lane) bits[lane] = word[id[lane] / 16 % 4][lane];
    const V weight = race_weight<V>(x + i, count - i, shift);
    race.run(weight, vector_exponential(uniform_from_bits<V>(bits)), id);
  }
  return race.result();
}

template <typename V>
int32_t draw(const float* x, const int32_t* ids, int64_t count, float shift, const DrawKey& key) {
  return ids == nullptr ? draw_dense<V>(x, count, shift, key)
                        : draw_listed<V>(x, ids, count, shift, key);
}

}  // namespace tgi
