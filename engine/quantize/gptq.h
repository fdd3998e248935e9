// GPTQ: the columns of a matrix are rounded one after the other, and what rounding one of them
// does to the layer's output is made good by the columns that follow.
//
// Source: Frantar et al., "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained
// Transformers", arXiv:2210.17323, algorithm 1.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/quantize/float_matrix.h"
#include "engine/quantize/gram.h"
#include "engine/quantize/rounding.h"

namespace tgi {

struct GptqOptions {
  CodeOptions codes;
  // Added to the diagonal of the Gram matrix, as a part of its mean: keeps the inverse tame where
  // the text has few directions.
  float damping = 0.01F;
  // Columns are taken by falling energy of their input. Groups stay runs of neighbouring columns
  // whose scales are chosen beforehand, so nothing of the order is left in the file.
  bool act_order = false;
  int num_threads = 1;
};

// What matrices of one input have in common: the factor of the inverse. Immutable once made; the
// constructor takes the Gram matrix over.
class GptqSolver {
 public:
  // Throws kInvalidArgument when the matrix is not positive definite even with more damping.
  GptqSolver(GramMatrix gram, const GptqOptions& options);

  // `w`: (rows, gram.size()); changed.
  GroupedMatrix quantize(FloatMatrix& w) const;

 private:
  void factorize(GramMatrix& gram);
  void quantize_rows(FloatMatrix& w, int64_t begin, int64_t end, GroupedMatrix& out) const;
  GroupScale scale_of(const GroupedMatrix& out, int64_t row, int64_t group) const;
  void set_scale(GroupedMatrix& out, int64_t row, int64_t group, const GroupScale& scale) const;

  const GptqOptions options_;
  const int64_t size_;
  std::vector<int64_t> order_;     // column at each place
  std::vector<float> importance_;  // (size): of each column, by place
  std::vector<bool> is_dead_;      // (size): by place; its input is always 0
  std::vector<float> factor_;      // (size, size), upper triangle: U with U^T U = the inverse
};

}  // namespace tgi
