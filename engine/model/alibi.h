// ALiBi: instead of position embeddings, each head takes off a score what its slope says for the
// distance of the key (https://arxiv.org/abs/2108.12409).
#pragma once

#include <cstdint>
#include <vector>

namespace tgi {

// One slope per head: 2^(-8 * i / n), i = 1 to n, where n heads are a power of two.

// Else, as BLOOM and Falcon have it: those of the power of two below, then every other one of twice
// as many heads.
std::vector<float> alibi_slopes_of_lower_power(int32_t num_heads);

// Else, as MPT has it: of those of the power of two above, every other one from the second on, then
// from the first on.
std::vector<float> alibi_slopes_of_upper_power(int32_t num_heads);

}  // namespace tgi
