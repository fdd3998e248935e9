#include "engine/lora/finite_bits.h"

#include <cstdint>
#include <cstring>

namespace tgi {
namespace {

// What is looked at between two decisions to go on. Constant, so that the loop becomes vectors.
constexpr size_t kBlockBytes = 4096;

// An exponent of all ones, plus one in its lowest bit, carries into the sign's place, and no other
// does. The sums are gathered with "or".
template <typename Bits>
Bits carries(const std::byte* bytes, size_t count, Bits exponent) {
  const auto lowest = static_cast<Bits>(exponent & (~exponent + 1U));
  Bits all = 0;
  for (size_t i = 0; i < count; ++i) {
    Bits bits = 0;
    std::memcpy(&bits, bytes + i * sizeof(Bits), sizeof(Bits));
    all = static_cast<Bits>(all | static_cast<Bits>((bits & exponent) + lowest));
  }
  return all;
}

template <typename Bits>
bool are_finite_bits(std::span<const std::byte> bytes, Bits exponent) {
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  constexpr size_t kCount = kBlockBytes / sizeof(Bits);
  for (; bytes.size() >= kBlockBytes; bytes = bytes.subspan(kBlockBytes)) {
    if ((carries<Bits>(bytes.data(), kCount, exponent) & kSign) != 0) return false;
  }
  return (carries<Bits>(bytes.data(), bytes.size() / sizeof(Bits), exponent) & kSign) == 0;
}

}  // namespace

bool are_finite(std::span<const std::byte> bytes, DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return are_finite_bits<uint32_t>(bytes, 0x7F800000U);
    case DType::kF16:
      return are_finite_bits<uint16_t>(bytes, 0x7C00U);
    case DType::kBF16:
      return are_finite_bits<uint16_t>(bytes, 0x7F80U);
    case DType::kF8E4M3:
    case DType::kInt8:
      break;
  }
  return false;
}

}  // namespace tgi
