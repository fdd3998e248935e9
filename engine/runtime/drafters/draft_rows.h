// Rows that a drafter computes with, in the type of its device's activations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/device/backend.h"

namespace tgi {

class DraftRows {
 public:
  // Bytes of so many numbers.
  static int64_t bytes(const Device& device, int64_t num_elements);

  DraftRows() = default;
  // Throws kOutOfMemory with the purpose.
  DraftRows(Device& device, int64_t num_elements, std::string_view purpose);

  // The next of the elements, zero at first.
  Tensor take(int64_t rows, int64_t cols);

 private:
  DType dtype_ = DType::kF32;
  Buffer memory_;
  std::byte* next_ = nullptr;
};

// Sends rows from the host to the first of `to`, rounded to their type. REQUIRES: to.stride ==
// to.cols. `rounded` is scratch.
void send_rows(Device& device,
               std::span<const float> rows,
               const Tensor& to,
               std::vector<uint16_t>& rounded);

}  // namespace tgi
