#include "engine/runtime/drafters/draft_rows.h"

#include <algorithm>

#include "base/error.h"
#include "engine/tensor/half.h"

namespace tgi {

int64_t DraftRows::bytes(const Device& device, int64_t num_elements) {
  return num_elements * static_cast<int64_t>(dtype_size(device.info().activation_dtype));
}

DraftRows::DraftRows(Device& device, int64_t num_elements, std::string_view purpose)
    : dtype_(device.info().activation_dtype),
      memory_(device.allocate(static_cast<size_t>(bytes(device, num_elements)), purpose)),
      next_(static_cast<std::byte*>(memory_.data())) {}

Tensor DraftRows::take(int64_t rows, int64_t cols) {
  const Tensor out{.data = next_, .dtype = dtype_, .rows = rows, .cols = cols, .stride = cols};
  next_ += static_cast<size_t>(rows * cols) * dtype_size(dtype_);
  return out;
}

void send_rows(Device& device,
               std::span<const float> rows,
               const Tensor& to,
               std::vector<uint16_t>& rounded) {
  TGI_CHECK(to.stride == to.cols && std::ssize(rows) <= to.rows * to.cols);
  if (to.dtype == DType::kF32) {
    return device.copy_to_device(to.data, rows.data(), rows.size_bytes());
  }
  rounded.resize(rows.size());
  std::ranges::transform(rows, rounded.begin(), to.dtype == DType::kF16 ? f32_to_f16 : f32_to_bf16);
  device.copy_to_device(to.data, rounded.data(), rounded.size() * sizeof(uint16_t));
}

}  // namespace tgi
