// The passes of the sampler in plain double precision: the definition of SamplerMath.
#include "engine/sample/sampler_math.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/sample/philox.h"

namespace tgi {
namespace {

float max_value(const float* x, int64_t count) {
  float highest = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < count; ++i) {
    if (x[i] > highest) highest = x[i];
  }
  return highest;
}

double exp_or_zero(float x, float shift) {
  const double difference = static_cast<double>(x) - static_cast<double>(shift);
  return std::isnan(difference) ? 0.0 : std::exp(difference);
}

float sum_exp(const float* x, int64_t count, float shift) {
  double total = 0.0;
  for (int64_t i = 0; i < count; ++i) {
    total += std::exp(static_cast<double>(x[i]) - static_cast<double>(shift));
  }
  return static_cast<float>(total);
}

void exp_shifted(const float* x, float* out, int64_t count, float shift) {
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(exp_or_zero(x[i], shift));
}

void temper(const float* x, float* out, int64_t count, float temperature) {
  for (int64_t i = 0; i < count; ++i) {
    const float scaled = std::min(x[i] / temperature, std::numeric_limits<float>::max());
    out[i] = std::isnan(x[i]) ? -std::numeric_limits<float>::infinity() : scaled;
  }
}

int64_t list_from(const float* x, int64_t count, float least, int32_t* indices, float* values) {
  int64_t size = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!(x[i] >= least)) continue;
    indices[size] = static_cast<int32_t>(i);
    values[size++] = x[i];
  }
  return size;
}

int32_t draw(const float* x, const int32_t* ids, int64_t count, float shift, const DrawKey& key) {
  double highest = 0.0;
  int32_t winner = -1;
  for (int64_t i = 0; i < count; ++i) {
    const int32_t id = ids == nullptr ? static_cast<int32_t>(i) : ids[i];
    const double u = (draw_bits(key, id) + 0.5) * 0x1p-32;
    const double speed = exp_or_zero(x[i], shift) / -std::log1p(-u);
    if (speed > highest || (speed == highest && winner >= 0 && id < winner)) {
      highest = speed;
      winner = id;
    }
  }
  return winner;
}

}  // namespace

uint32_t draw_bits(const DrawKey& key, int32_t id) {
  const auto i = static_cast<uint32_t>(id);
  const auto words =
      philox4x32_10({i / 64 * 16 + i % 16, key.position, key.sequence_index, 0},
                    {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)});
  return words[i / 16 % 4];
}

const SamplerMath& plain_sampler_math() {
  static constexpr SamplerMath kMath = {.max_value = max_value,
                                        .sum_exp = sum_exp,
                                        .exp_shifted = exp_shifted,
                                        .temper = temper,
                                        .list_from = list_from,
                                        .draw = draw};
  return kMath;
}

}  // namespace tgi
