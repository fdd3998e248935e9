// The sampler against one that sorts everything, on larger vocabularies and random settings; and
// the vector kernels' passes against the plain ones.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "engine/cpu/cpu_backend.h"
#include "engine/cpu/kernels/kernel_table.h"
#include "engine/sample/sampler.h"
#include "tests/catch.h"
#include "tests/conformance/harness.h"

namespace tgi {
namespace {

struct Item {
  int32_t id;
  double value;  // scaled logit
  double p = 0.0;
};

void renormalise(std::vector<Item>& items) {
  double total = 0.0;
  for (Item& item : items) total += item.p = std::exp(item.value - items[0].value);
  for (Item& item : items) item.p /= total;
}

// Keeps items up to the first at which the mass is reached, and with `ties` what equals it in
// `key`.
template <typename Key>
void keep_mass(std::vector<Item>& items, double mass, bool ties, Key key) {
  std::stable_sort(items.begin(), items.end(),
                   [&](const Item& a, const Item& b) { return key(a) < key(b); });
  double reached = 0.0;
  size_t count = 0;
  while (count < items.size() && reached < mass) reached += items[count++].p;
  while (ties && count < items.size() && key(items[count]) <= key(items[count - 1])) ++count;
  items.resize(count);
}

int32_t naive_draw(Floats logits, const SamplingParams& params, int32_t position) {
  for (const LogitBias& each : params.logit_bias) logits[static_cast<size_t>(each.id)] += each.bias;
  std::vector<Item> items;
  for (size_t id = 0; id < logits.size(); ++id) {
    items.push_back({.id = static_cast<int32_t>(id),
                     .value = static_cast<double>(logits[id] / params.temperature)});
  }
  const auto by_value = [](const Item& a, const Item& b) { return a.value > b.value; };
  std::stable_sort(items.begin(), items.end(), by_value);
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < items.size()) {
    size_t count = static_cast<size_t>(params.top_k);
    while (count < items.size() && items[count].value == items[count - 1].value) ++count;
    items.resize(count);
  }
  if (params.top_p < 1.0F) {
    renormalise(items);
    keep_mass(items, params.top_p, false, [](const Item& item) { return -item.value; });
  }
  if (params.typical_p < 1.0F) {
    renormalise(items);
    double entropy = 0.0;
    for (const Item& item : items) entropy -= item.p * std::log(item.p);
    keep_mass(items, params.typical_p, true,
              [&](const Item& item) { return std::abs(-std::log(item.p) - entropy); });
    std::stable_sort(items.begin(), items.end(), by_value);
  }
  if (params.min_p > 0.0F) {
    renormalise(items);
    std::erase_if(items, [&, best = items[0].p](const Item& item) {
      return item.p < static_cast<double>(params.min_p) * best;
    });
  }
  const DrawKey key{.seed = params.seed,
                    .position = static_cast<uint32_t>(position),
                    .sequence_index = params.sequence_index};
  double highest = 0.0;
  int32_t winner = -1;
  for (const Item& item : items) {
    const double u = (draw_bits(key, item.id) + 0.5) * 0x1p-32;
    const double speed = std::exp(item.value - items[0].value) / -std::log1p(-u);
    if (speed > highest) {
      highest = speed;
      winner = item.id;
    }
  }
  return winner;
}

// Sums of several uniform numbers look like the logits of a model; rounded, they tie.
Floats random_logits(Random& random, int32_t vocab_size, float spread, bool ties) {
  Floats out(static_cast<size_t>(vocab_size));
  for (float& x : out) {
    for (int i = 0; i < 4; ++i) x += spread * random.value();
    if (ties) x = std::round(x * 4.0F) / 4.0F;
  }
  return out;
}

SamplingParams random_params(Random& random, int32_t vocab_size) {
  SamplingParams params;
  params.do_sample = true;
  params.seed = static_cast<uint64_t>(random.integer(0, 1 << 30)) << 20;
  params.sequence_index = static_cast<uint32_t>(random.integer(0, 3));
  params.temperature = 0.4F + std::abs(random.value()) * 2.0F;
  if (random.integer(0, 2) == 0) params.top_k = random.integer(1, 200);
  if (random.integer(0, 2) == 0) params.top_p = 0.05F + 0.94F * std::abs(random.value());
  if (random.integer(0, 3) == 0) params.typical_p = 0.05F + 0.94F * std::abs(random.value());
  if (random.integer(0, 2) == 0) params.min_p = 0.5F * std::abs(random.value());
  if (random.integer(0, 2) == 0) {
    std::set<int32_t> ids;
    for (int32_t count = random.integer(1, 20); count > 0; --count) {
      ids.insert(random.integer(0, vocab_size - 1));
    }
    for (const int32_t id : ids) {
      const float bias = random.integer(0, 4) == 0 ? -100.0F : 6.0F * random.value();
      params.logit_bias.push_back({.id = id, .bias = bias});
    }
  }
  return params;
}

}  // namespace

TEST_CASE("the sampler draws what one that sorts everything draws") {
  Random random(51);
  for (int round = 0; round < 400; ++round) {
    const int32_t vocab_size = random.integer(1, 3000);
    const float spread = std::abs(random.value()) * 5.0F;
    const Floats logits = random_logits(random, vocab_size, spread, random.integer(0, 3) == 0);
    const SamplingParams params = random_params(random, vocab_size);
    const int32_t wanted = naive_draw(logits, params, round);
    INFO("round " << round << " vocab " << vocab_size << " k " << params.top_k << " p "
                  << params.top_p << " biases " << params.logit_bias.size() << " typical "
                  << params.typical_p << " min-p " << params.min_p);
    SamplerScratch scratch(vocab_size);
    SampledToken out;
    std::vector<const SamplerMath*> maths = {&plain_sampler_math()};
    for (const std::string_view isa : available_isas()) {
      maths.push_back(&find_kernels(isa).sampler_math);
    }
    for (const SamplerMath* math : maths) {
      sample_row({.logits = logits.data(),
                  .vocab_size = vocab_size,
                  .params = &params,
                  .history = {},
                  .position = round},
                 *math, scratch, out);
      CHECK(out.token.id == wanted);
    }
  }
}

TEST_CASE(
    "the passes of every instruction set agree with the plain ones and bit for bit with each "
    "other") {
  Random random(53);
  const SamplerMath& plain = plain_sampler_math();
  const SamplerMath& generic = find_kernels("generic").sampler_math;
  for (const int32_t count : {1, 15, 16, 17, 63, 64, 65, 1000, 5000}) {
    Floats x = random_logits(random, count, 3.0F, false);
    if (count > 20) {
      x[3] = std::nanf("");
      x[5] = -std::numeric_limits<float>::infinity();
      x[20] = -200.0F;
    }
    Floats finite = x;  // a sum tells of a NaN
    for (float& value : finite) value = std::isnan(value) ? 0.5F : value;
    const float highest = plain.max_value(x.data(), count);
    CHECK(std::isnan(plain.sum_exp(x.data(), count, highest)) == (count > 20));
    for (const std::string_view isa : available_isas()) {
      INFO(isa << " count " << count);
      const SamplerMath& math = find_kernels(isa).sampler_math;
      CHECK(math.max_value(x.data(), count) == highest);
      CHECK(std::isnan(math.sum_exp(x.data(), count, highest)) == (count > 20));
      const float sum = math.sum_exp(finite.data(), count, highest);
      CHECK(sum == Approx(plain.sum_exp(finite.data(), count, highest)).epsilon(1e-6));
      CHECK(sum == generic.sum_exp(finite.data(), count, highest));

      Floats got(x.size()), wanted(x.size());
      math.exp_shifted(x.data(), got.data(), count, highest);
      plain.exp_shifted(x.data(), wanted.data(), count, highest);
      // A difference of up to 32 is rounded to 2^-20 before its exponential is taken.
      CHECK(worst_error(got, wanted, 1e-37, 2e-6) <= 1.0);
      generic.exp_shifted(x.data(), wanted.data(), count, highest);
      CHECK(same_bits(got, wanted));

      math.temper(x.data(), got.data(), count, 0.7F);
      plain.temper(x.data(), wanted.data(), count, 0.7F);
      CHECK(same_bits(got, wanted));

      std::vector<int32_t> ids(x.size()), wanted_ids(x.size());
      const int64_t size = math.list_from(x.data(), count, 0.5F, ids.data(), got.data());
      REQUIRE(size == plain.list_from(x.data(), count, 0.5F, wanted_ids.data(), wanted.data()));
      CHECK(std::equal(ids.begin(), ids.begin() + size, wanted_ids.begin()));
      CHECK(std::equal(got.begin(), got.begin() + size, wanted.begin()));

      for (uint32_t position = 0; position < 100; ++position) {
        const DrawKey key{.seed = 99, .position = position};
        const int32_t id = math.draw(x.data(), nullptr, count, highest, key);
        CHECK(id == plain.draw(x.data(), nullptr, count, highest, key));
      }
    }
  }
}

}  // namespace tgi
