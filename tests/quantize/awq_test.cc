#include "engine/quantize/awq.h"

#include "tests/catch.h"
#include "tests/quantize/random_matrix.h"

namespace tgi {
namespace {

TEST_CASE("few large channels are scaled up, and the output is nearer") {
  FloatMatrix inputs = random_matrix(300, 128, 1);
  for (int64_t row = 0; row < inputs.rows; ++row) {
    inputs.row(row)[3] *= 40.0F;
    inputs.row(row)[77] *= 40.0F;
  }
  const FloatMatrix w = random_matrix(32, 128, 2);
  const CodeOptions options{.bits = 4, .group_size = 64, .symmetric = false};
  InputStatistics statistics(128, 300, 200);
  statistics.add(as_tensor(inputs));
  CHECK(statistics.sample().rows == 150);
  const FloatMatrix* const one = &w;
  const std::vector<float> scales = search_channel_scales({&one, 1}, statistics, options, 2);
  CHECK(scales[3] > 1.5F * scales[4]);
  CHECK(scales[77] > 1.5F * scales[4]);

  FloatMatrix scaled = w;
  scale_columns(scaled, scales);
  FloatMatrix back = dequantize(round_to_nearest(scaled, {}, options, 1));
  std::vector<float> inverse;
  for (const float scale : scales) inverse.push_back(1.0F / scale);
  scale_columns(back, inverse);
  const FloatMatrix plain = dequantize(round_to_nearest(w, {}, options, 1));
  CHECK(output_error(w, back, inputs) < 0.6 * output_error(w, plain, inputs));
}

TEST_CASE("channels that are all alike are left alone") {
  FloatMatrix inputs(50, 64);
  for (size_t i = 0; i < inputs.values.size(); ++i) inputs.values[i] = i % 3 == 0 ? -1.0F : 1.0F;
  const FloatMatrix w = random_matrix(8, 64, 3);
  InputStatistics statistics(64, 50, 50);
  statistics.add(as_tensor(inputs));
  const FloatMatrix* const one = &w;
  const CodeOptions options{.bits = 4, .group_size = 64, .symmetric = false};
  for (const float scale : search_channel_scales({&one, 1}, statistics, options, 1)) {
    CHECK(scale == Approx(1.0F));
  }
}

TEST_CASE("means are over all tokens") {
  FloatMatrix x(2, 3);
  x.values = {1, -2, 0, 3, 4, 0};
  InputStatistics statistics(3, 4, 100);
  statistics.add(as_tensor(x));
  statistics.add(as_tensor(x));
  CHECK(statistics.mean_magnitude() == std::vector<float>{2, 3, 0});
  CHECK(statistics.mean_square() == std::vector<float>{5, 10, 0});
  CHECK(statistics.sample().rows == 4);
}

}  // namespace
}  // namespace tgi
