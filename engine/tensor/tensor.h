// Element types, views of device memory, and its owner. Knows nothing of models or of any one
// device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace tgi {

// The last two: of a KV cache only. There kInt8 is integers that are multiplied by a scale of their
// row: see cache_codes.h.
enum class DType : uint8_t { kF32, kF16, kBF16, kF8E4M3, kInt8 };

inline constexpr DType kDTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3,
                                    DType::kInt8};

constexpr bool is_cache_code(DType dtype) {
  return dtype == DType::kF8E4M3 || dtype == DType::kInt8;
}

constexpr size_t dtype_size(DType dtype) {
  return dtype == DType::kF32 ? 4 : is_cache_code(dtype) ? 1 : 2;
}

constexpr std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kF8E4M3:
      return "f8e4m3";
    case DType::kInt8:
      return "int8";
  }
  return "unknown";
}

// Of weights, also as config.json spells them.
constexpr std::optional<DType> dtype_from_name(std::string_view name) {
  if (name == "f32" || name == "float32") return DType::kF32;
  if (name == "f16" || name == "float16") return DType::kF16;
  if (name == "bf16" || name == "bfloat16") return DType::kBF16;
  return std::nullopt;
}

// A view of (rows, cols) elements in device memory, rows `stride` elements apart. Never owns. The
// host may look at `data` only when the device says that it is host memory.
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }

  // The first `count` rows.
  Tensor first_rows(int64_t count) const { return {data, dtype, count, cols, stride}; }

  // Columns [begin, begin + count): a part of a fused row.
  Tensor columns(int64_t begin, int64_t count) const {
    auto* bytes = static_cast<std::byte*>(data) + static_cast<size_t>(begin) * dtype_size(dtype);
    return {bytes, dtype, rows, count, stride};
  }
};

// Owns device memory. Move-only; made by Device::allocate.
class Buffer {
 public:
  using Free = void (*)(void* data, size_t size_bytes);

  Buffer() = default;
  Buffer(void* data, size_t size_bytes, Free free)
      : data_(data), size_bytes_(size_bytes), free_(free) {}
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_bytes_(std::exchange(other.size_bytes_, 0)),
        free_(other.free_) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
    std::swap(free_, other.free_);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (data_ != nullptr) free_(data_, size_bytes_);
  }

  void* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  void* data_ = nullptr;
  size_t size_bytes_ = 0;
  Free free_ = nullptr;
};

}  // namespace tgi
