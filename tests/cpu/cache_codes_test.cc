// Codes of a KV cache as attention makes numbers of them: every code, on every instruction set.
#include <bit>
#include <cmath>
#include <cstring>

#include "engine/cpu/cpu_backend.h"
#include "engine/cpu/kernels/kernel_table.h"
#include "engine/tensor/float8.h"
#include "engine/tensor/half.h"
#include "tests/catch.h"

namespace tgi {
namespace {

using Decode = void (*)(const std::byte* codes, std::byte* out);

// What code `first` and the 63 after it, the last of which may be 255, are as bf16.
std::array<uint16_t, 64> decoded(Decode decode, int first) {
  std::array<std::byte, 65> codes;  // one byte on: nothing is promised of where they lie
  for (size_t i = 0; i < 64; ++i)
    codes[i + 1] = static_cast<std::byte>(first + static_cast<int>(i));
  std::array<std::byte, 129> out;
  decode(codes.data() + 1, out.data() + 1);
  std::array<uint16_t, 64> values;
  std::memcpy(values.data(), out.data() + 1, sizeof values);
  return values;
}

}  // namespace

TEST_CASE("every code of a KV cache is its own number on every instruction set") {
  for (const std::string_view isa : available_isas()) {
    const KernelTable& kernels = find_kernels(isa);
    const KernelTable& generic = generic_kernels();
    for (int first = 0; first < 256; first += 64) {
      const auto floats = decoded(kernels.decode_e4m3, first);
      const auto integers = decoded(kernels.decode_int8, first);
      CHECK(floats == decoded(generic.decode_e4m3, first));
      CHECK(integers == decoded(generic.decode_int8, first));
      for (size_t i = 0; i < 64; ++i) {
        const auto code = static_cast<uint8_t>(first + static_cast<int>(i));
        INFO(isa << ", code " << int{code});
        const float expected = e4m3_to_f32(code);
        const float value = bf16_to_f32(floats[i]);
        if (std::isnan(expected)) {
          CHECK(std::isnan(value));
        } else {
          CHECK(std::bit_cast<uint32_t>(value) == std::bit_cast<uint32_t>(expected));
        }
        CHECK(bf16_to_f32(integers[i]) == static_cast<float>(static_cast<int8_t>(code)));
      }
    }
  }
}

}  // namespace tgi
