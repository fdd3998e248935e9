// Codes that stand for the numbers of a table (engine/tensor/weight.h), for fit_codes.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>

#include "engine/tensor/weight.h"
#include "engine/weights/ggml/fit_codes.h"

namespace tgi {

// Ascending.
constexpr std::array<float, 16> kIq4Table = [] {
  std::array<float, 16> out{};
  std::copy(std::begin(kIq4Codes), std::end(kIq4Codes), out.begin());
  return out;
}();

// 0 is there twice.
constexpr std::array<float, 16> kMxfp4Table = [] {
  std::array<float, 16> out{};
  std::copy(std::begin(kMxfp4Codes), std::end(kMxfp4Codes), out.begin());
  std::sort(out.begin(), out.end());
  return out;
}();

using Iq4Codes = TableCodes<kIq4Table>;
using Mxfp4Codes = TableCodes<kMxfp4Table>;

// Which of the table's. REQUIRES: it is in it.
template <int kCount>
constexpr int8_t index_in(const int8_t (&table)[kCount], int8_t code) {
  return static_cast<int8_t>(std::find(std::begin(table), std::end(table), code) -
                             std::begin(table));
}
constexpr int8_t index_of_iq4(int8_t code) {
  return index_in(kIq4Codes, code);
}
constexpr int8_t index_of_mxfp4(int8_t code) {
  return index_in(kMxfp4Codes, code);
}

}  // namespace tgi
