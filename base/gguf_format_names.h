// The formats of GGUF files that `tgi quantize` writes (engine/quantize/gguf/type_mix.cc), for
// flags, completions and pages; a test compares the lists.
#pragma once

#include <array>
#include <string_view>

namespace tgi {

inline constexpr std::array<std::string_view, 10> kGgufFormatNames = {
    "f32", "f16", "bf16", "q8_0", "q6_k", "q5_k_m", "q4_k_m", "q4_0", "iq4_xs", "mxfp4"};

}  // namespace tgi
