// Exact decimal numbers, as schemas give their limits: what a double of JSON was written as.
#pragma once

#include <string>
#include <string_view>

#include "base/nlohmann_json.h"

namespace tgi::guide {

struct Decimal {
  bool negative = false;      // never of zero
  std::string integer = "0";  // digits without leading zeros, but for "0"
  std::string fraction;       // digits without trailing zeros

  // REQUIRES: a number of JSON.
  static Decimal of(const nlohmann::ordered_json& number);
  static Decimal parsed(std::string_view text);  // REQUIRES: the syntax of JSON

  bool is_zero() const { return integer == "0" && fraction.empty(); }
  bool is_integer() const { return fraction.empty(); }
  std::string text() const;  // the shortest without an exponent

  // Some order, for lists.
  friend auto operator<=>(const Decimal&, const Decimal&) = default;
};

}  // namespace tgi::guide
