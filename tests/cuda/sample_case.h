// Rows of logits for the sample kernels and for engine/sample, whose results are compared.
#pragma once

#include <cstdint>
#include <vector>

#include "cuda/kernels/sample.h"
#include "engine/sample/sampler.h"
#include "tests/conformance/harness.h"

namespace tgi {

struct SampleCase {
  SamplingParams params;
  Floats logits{};                    // (vocab_size)
  std::vector<TokenCount> history{};  // each id once
  int32_t previous_id = 0;            // of the slot; for the watermark
  int32_t position = 0;
  std::vector<uint32_t> allowed{};  // empty: all
  int32_t target_id = -1;           // >= 0: a row to be scored
  bool is_padding = false;
};

struct SampleOutcome {
  cuda::SampledRow row;
  int32_t last_token = 0;              // of the slot afterwards
  std::vector<uint16_t> token_counts;  // of the slot afterwards
};

// What rows of padding have in `row`: what was there before.
inline constexpr int32_t kUntouched = -77;

// One launch, case i in slot num_cases - 1 - i. Each row begins `stride` floats after the one
// before.
std::vector<SampleOutcome> run_kernels(const std::vector<SampleCase>& cases, int32_t stride);
std::vector<SampleOutcome> run_kernels(const std::vector<SampleCase>& cases);  // rows of 8 floats

// By sample_row and score_row.
SampledToken wanted(const SampleCase& each);

// Checks what a kernel gave for a row. Returns false where the id is another one because two ids
// are as good but for rounding; that is checked too.
bool check_row(const SampleCase& each, const SampleOutcome& got);

uint16_t packed_count(const TokenCount& count);

}  // namespace tgi
