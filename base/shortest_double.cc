#include "base/shortest_double.h"

#include <array>
#include <charconv>

namespace tgi {

double shortest_double(float value) {
  std::array<char, 32> text{};
  const auto written = std::to_chars(text.data(), text.data() + text.size(), value);
  double shortest = 0;
  std::from_chars(text.data(), written.ptr, shortest);
  return shortest;
}

}  // namespace tgi
