// The matrix from latents to heads as GGUF files have it: by head, that of keys transposed, beside
// that of values. Elsewhere it is one: of each head first the rows of its key, then those of its
// value.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/weights/weight_format.h"

namespace tgi {

// NAME(k) of (heads, latents, key rows) and NAME(v) of (heads, value rows, latents); nothing when
// there are none. What does not fit `spec` is added to `problems`.
std::vector<const StoredTensor*> collect_latent_up(const Checkpoint& checkpoint,
                                                   const MatrixSpec& spec,
                                                   const std::string& key_name,
                                                   const std::string& value_name,
                                                   WeightProblems& problems);

// Whether these tensors came from it.
bool is_latent_up(std::span<const StoredTensor* const> tensors);

// Their values. REQUIRES: is_latent_up.
HostWeight slice_latent_up(const Checkpoint& checkpoint,
                           const MatrixSpec& spec,
                           std::span<const StoredTensor* const> tensors,
                           Range rows,
                           Range cols);

}  // namespace tgi
