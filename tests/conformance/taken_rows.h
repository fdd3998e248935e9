// Sequences whose rows lie one after the other, taken in steps over a paged cache of one group.
#pragma once

#include <algorithm>
#include <vector>

#include "tests/conformance/harness.h"

namespace tgi {

struct TakenRows {
  Batch batch;
  std::vector<int64_t> rows;  // of all sequences together
};

// `step`: how many tokens of each sequence, which sits in the slot of its number. `done`: how many
// each had before, and then has. Blocks come from the end of `free_blocks`.
inline TakenRows take_rows(const std::vector<int32_t>& step,
                           const std::vector<int32_t>& lengths,
                           int32_t block_size,
                           std::vector<int32_t>& done,
                           std::vector<int32_t>& free_blocks) {
  TakenRows out;
  Batch& batch = out.batch;
  batch.clear();
  int64_t first_row = 0;
  for (size_t i = 0; i < step.size(); first_row += lengths[i], ++i) {
    if (step[i] == 0) continue;
    const auto slot = static_cast<int32_t>(i);
    if (done[i] == 0) batch.slot_starts.emplace_back().slot = slot;
    for (int32_t position = done[i]; position < done[i] + step[i]; ++position) {
      if (position % block_size == 0) {
        batch.block_appends.push_back(
            {.slot = slot, .index = position / block_size, .block = free_blocks.back()});
        free_blocks.pop_back();
      }
      batch.token_ids.push_back(0);
      batch.positions.push_back(position);
      out.rows.push_back(first_row + position);
    }
    batch.slots.push_back(slot);
    batch.cu_seqlens_q.push_back(batch.num_tokens());
    done[i] += step[i];
    batch.context_lens.push_back(done[i]);
  }
  return out;
}

// These rows of values, of `width` each, in the type that the device computes with.
inline DeviceTensor tensor_of_rows(Device& device,
                                   const Floats& values,
                                   int64_t width,
                                   const std::vector<int64_t>& rows) {
  Floats taken;
  for (const int64_t row : rows) {
    taken.insert(taken.end(), values.begin() + row * width, values.begin() + (row + 1) * width);
  }
  DeviceTensor out(device, std::ssize(rows), width, device.info().activation_dtype);
  out.write(taken);
  return out;
}

inline void put_rows(const Floats& got,
                     const std::vector<int64_t>& rows,
                     int64_t width,
                     Floats& values) {
  for (size_t i = 0; i < rows.size(); ++i) {
    std::copy_n(got.begin() + static_cast<int64_t>(i) * width, width,
                values.begin() + rows[i] * width);
  }
}

}  // namespace tgi
