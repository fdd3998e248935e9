#include "cmd/http/random_id.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cstdint>

#include "base/error.h"

namespace tgi::http {

std::string random_id(std::string_view prefix) {
  std::array<uint64_t, 3> bits{};
  // So few bytes come whole or not at all.
  if (::getrandom(bits.data(), sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) {
    throw Error(Code::kInternal, "the system gives no random numbers");
  }
  return fmt::format("{}_{:016x}{:016x}{:016x}", prefix, bits[0], bits[1], bits[2]);
}

}  // namespace tgi::http
