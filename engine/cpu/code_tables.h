// What the halves of bytes in a table4 panel stand for.
#pragma once

#include <cstdint>

namespace tgi {

enum class CodeTable : uint8_t { kIq4, kNf4, kFp4 };
inline constexpr int kNumCodeTables = 3;

// + 128. Of nf4 and fp4 the numbers are rounded, with such a step that the errors are least: of nf4
// 0.0017 of a scale in the mean and 0.0038 at most, where rounding the weights themselves to int8
// has 0.0039; of fp4 all but the smallest are what they are.
alignas(16) inline constexpr uint8_t kCodeTables[kNumCodeTables][16] = {
    {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241},
    {16, 50, 69, 84, 96, 107, 118, 128, 137, 146, 156, 166, 177, 191, 209, 240},
    {128, 129, 192, 224, 160, 176, 144, 152, 128, 127, 64, 32, 96, 80, 112, 104},
};

// How often the step is in 1: scales are divided by it.
inline constexpr float kTableSteps[kNumCodeTables] = {1.0F, 112.03F, 96.0F};

}  // namespace tgi
