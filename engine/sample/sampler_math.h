// The passes over a whole row of logits that the sampler is built from, as function pointers, so
// that a device can put its vector kernels in their place. plain_sampler_math() is the definition,
// in double precision.
#pragma once

#include <cstdint>

namespace tgi {

// A draw depends on these and on the logits, on nothing else.
struct DrawKey {
  uint64_t seed = 0;
  uint32_t position = 0;
  uint32_t sequence_index = 0;
};

// The random bits of an id: word (id / 16) % 4 of the Philox block with key `seed` and counter
// (id / 64 * 16 + id % 16, position, sequence_index, 0). Sixteen ids in a row share their word's
// number, which suits vectors.
uint32_t draw_bits(const DrawKey& key, int32_t id);

struct SamplerMath {
  // NaN is passed over; -infinity when nothing is left.
  float (*max_value)(const float* x, int64_t count);
  // sum of exp(x - shift); NaN when there is one.
  float (*sum_exp)(const float* x, int64_t count, float shift);
  // out = exp(x - shift); 0 for NaN.
  void (*exp_shifted)(const float* x, float* out, int64_t count, float shift);
  // out = the smaller of x / temperature and the largest float; -infinity for NaN. In place
  // allowed.
  void (*temper)(const float* x, float* out, int64_t count, float temperature);
  // Lists index and value of each x >= least, in rising order; returns how many.
  int64_t (*list_from)(const float* x, int64_t count, float least, int32_t* indices, float* values);
  // The exponential race, which is the Gumbel-max trick without its logarithm: the id whose
  // exp(x - shift) / E is highest, E = -log(1 - u), u = (bits + 1/2) / 2^32, bits from
  // Philox4x32-10 as below. Lowest id on ties; -1 when every weight is 0. `ids` null: x[i] belongs
  // to id i.
  int32_t (*draw)(
      const float* x, const int32_t* ids, int64_t count, float shift, const DrawKey& key);
};

const SamplerMath& plain_sampler_math();

}  // namespace tgi
