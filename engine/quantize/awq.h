// AWQ: the few input channels of a matmul that carry most of it are scaled up before rounding, and
// the scale is taken out again where the input is made. Which scales: those of a grid that do least
// harm to the output on the calibration text.
//
// Source: Lin et al., "AWQ: Activation-aware Weight Quantization for LLM Compression and
// Acceleration", arXiv:2306.00978, section 3.2.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/quantize/float_matrix.h"
#include "engine/quantize/rounding.h"

namespace tgi {

// What is kept of the inputs of a matmul over a text.
class InputStatistics {
 public:
  // At most max_sample_rows of the num_tokens rows are kept, evenly spread.
  InputStatistics(int64_t cols, int64_t num_tokens, int64_t max_sample_rows);

  // Rows of x, f32 in host memory: (rows, cols).
  void add(const Tensor& x);

  int64_t cols() const { return cols_; }
  std::vector<float> mean_magnitude() const;  // (cols)
  std::vector<float> mean_square() const;     // (cols)
  const FloatMatrix& sample() const { return sample_; }

 private:
  int64_t cols_;
  int64_t stride_;  // of the tokens that are kept
  int64_t num_tokens_ = 0;
  std::vector<double> magnitude_;
  std::vector<double> square_;
  FloatMatrix sample_;
};

// The scales of the input's channels for the matrices that share it: (cols), all 1 where no other
// of the grid is better.
std::vector<float> search_channel_scales(std::span<const FloatMatrix* const> weights,
                                         const InputStatistics& input,
                                         const CodeOptions& options,
                                         int num_threads);

// w's column c, times scales[c].
void scale_columns(FloatMatrix& w, std::span<const float> scales);

}  // namespace tgi
