// Names in a message, of which there may be thousands.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

namespace tgi {

// "a, b and 3 more": the first `most` of them.
inline std::string first_names(std::span<const std::string> names, size_t most) {
  std::string out = fmt::format("{}", fmt::join(names.first(std::min(names.size(), most)), ", "));
  if (names.size() > most) out += fmt::format(" and {} more", names.size() - most);
  return out;
}

}  // namespace tgi
