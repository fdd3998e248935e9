// Any bytes as a safetensors file: parsed or refused with a typed error, and every view that comes
// out lies within the input.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "engine/weights/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  try {
    unsigned sum = 0;
    for (const tgi::SafetensorsEntry& entry : tgi::parse_safetensors(bytes, "fuzz")) {
      if (entry.bytes.empty()) continue;
      const std::byte* begin = entry.bytes.data();
      if (begin < bytes.data() || begin + entry.bytes.size() > bytes.data() + size) std::abort();
      sum += std::to_integer<unsigned>(entry.bytes.front());
      sum += std::to_integer<unsigned>(entry.bytes.back());
    }
    return sum == ~0U ? 1 : 0;
  } catch (const tgi::Error& error) {
    if (error.code() != tgi::Code::kInvalidArgument) std::abort();
    return 0;
  }
}
