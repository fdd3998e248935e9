// Ops of models whose hidden states are several streams, of which each layer reads and writes one
// and the others follow (AltUp), or all are connected to each branch (hyper-connections), and of
// rows that are compared with their own statistics: part of the specification in backend.h. The
// streams of a token lie side by side in one row.
//
// Sources: AltUp (https://arxiv.org/abs/2301.13310), hyper-connections
// (https://arxiv.org/abs/2409.19606), their mixing by doubly stochastic matrices
// (https://arxiv.org/abs/2512.24880), statistical top-k (https://arxiv.org/abs/2506.06644).
#pragma once

#include <cstdint>

#include "engine/tensor/tensor.h"

namespace tgi {

inline constexpr int32_t kMaxStreams = 8;

// Coefficients of a row: matrix * tanh(routed * scale).
struct StreamRouting {
  int32_t count = 1;  // of streams
  float scale = 1.0F;
  Tensor routed;                   // (rows, count)
  const Tensor* matrix = nullptr;  // (1, coefficients * count), f32: (coefficients, count)
};

// In place, all from what they were before: stream i += sum over j of coefficient i * count + j
// times stream j.
struct PredictStreamsArgs {
  StreamRouting routing;  // of count * count coefficients
  Tensor streams;         // (rows, count * cols)
};

// In place: stream i += (1 + coefficient i) * (x - stream `active`, as it was before). Then out is
// the active one, of column c times scale c.
struct CorrectStreamsArgs {
  StreamRouting routing;  // of count coefficients
  int32_t active = 0;
  Tensor x;                        // (rows, cols): what a layer made of the active stream
  const Tensor* scales = nullptr;  // (optional) (1, cols), f32
  Tensor streams;                  // (rows, count * cols)
  Tensor out;                      // (rows, cols); may be x
};

// What connects the streams of a token to a branch: numbers, each of which is what a matrix made of
// the streams, divided by the root mean square of all their columns (with norm_eps added to the
// square), times the scale of its kind, plus its base. Kinds: `count` numbers for what is read, as
// many for what is written, and count * count for how streams are mixed.
struct StreamConnection {
  int32_t count = 1;  // of streams
  float norm_eps = 0.0F;
  float eps = 0.0F;
  Tensor made;                     // (rows, numbers)
  const Tensor* base = nullptr;    // (1, numbers), f32
  const Tensor* scales = nullptr;  // (1, kinds), f32
  Tensor streams;                  // (rows, count * cols)
};

// out = sum over i of (sigmoid(number i to be read) + eps) * stream i.
struct CollapseStreamsArgs {
  StreamConnection connection;
  Tensor out;  // (rows, cols)
};

// In place: stream k = (magnitude * sigmoid(number k to be written) + branch_eps) * x + the sum
// over j of mix (j, k) * stream j, as they were. The mix is the softmax of each row of numbers,
// plus eps; then its columns are divided by their sums plus eps, and `mixing_turns` - 1 times its
// rows and again its columns. 0 turns: streams stay where they are.
struct ExpandStreamsArgs {
  StreamConnection connection;
  float magnitude = 1.0F;
  float branch_eps = 0.0F;
  int32_t mixing_turns = 0;
  Tensor x;  // (rows, cols)
};

// In place: each row of x gets the root mean square of that of `like`, its own taken to be that of
// `least_square` at least.
struct MatchRmsArgs {
  float least_square = 0.0F;
  Tensor like;  // (rows, cols)
  Tensor x;     // (rows, cols)
};

// In place: of each number its distance above the row's mean plus so many standard deviations (of
// the row itself, not of a sample), 0 below.
struct StatisticalTopKArgs {
  float deviations = 0.0F;
  Tensor x;  // (rows, cols)
};

}  // namespace tgi
