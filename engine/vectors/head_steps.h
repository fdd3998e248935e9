// What becomes of one vector after the model, on the host and in f32: dense layers, activations,
// norms. They are small beside the model. Immutable once made; used by any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/head_spec.h"
#include "engine/weights/checkpoint.h"

namespace tgi {

// out = norm(activation(weight * in + bias)).
struct DenseStep {
  int64_t rows = 0;           // outputs
  int64_t cols = 0;           // inputs
  std::vector<float> weight;  // (rows, cols)
  std::vector<float> bias;    // (rows), or empty
  HeadActivation activation = HeadActivation::kNone;
  std::vector<float> norm;       // (rows), or empty: no layer norm
  std::vector<float> norm_bias;  // (rows), or empty
  float norm_eps = 0.0F;

  std::vector<float> apply(std::span<const float> in) const;
};

// To the length 1; what is nearly nothing stays so.
void normalise(std::span<float> x);

// In place.
void softmax(std::span<float> x);
void sigmoid(std::span<float> x);

// The numbers of a tensor. Throws kNotFound naming it where it is missing, kInvalidArgument where
// its shape is another than `shape` (-1: any size), kUnsupported for a type that has no numbers.
std::vector<float> read_tensor(const Checkpoint& checkpoint,
                               const StoredTensor* tensor,
                               std::string_view name,
                               std::span<const int64_t> shape);

// One row of a matrix, likewise. REQUIRES: `shape` is (rows, cols), and the row is one of them.
std::vector<float> read_tensor_row(const Checkpoint& checkpoint,
                                   const StoredTensor* tensor,
                                   std::string_view name,
                                   std::span<const int64_t> shape,
                                   int64_t row);

}  // namespace tgi
