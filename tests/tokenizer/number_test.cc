// Scores as the library reads them. Expected: what tokenizers 0.23.3 holds after reading the text.
#include <cmath>

#include "engine/text/tokenizer/library_number.h"
#include "tests/catch.h"

namespace tgi {
namespace {

struct Row {
  const char* text;
  double value;
};

TEST_CASE("numbers have the last bit that the library's reader gives them") {
  // The first four and the one in the millions of millions aren't the nearest double.
  constexpr Row kRows[] = {
      {"-3.0123284804704786", -0x1.8193faca370cdp+1},
      {"-14.825037124029805", -0x1.da66b44136347p+3},
      {"1.2806287645399461", 0x1.47d7496604157p+0},
      {"-15.164604925736347", -0x1.e544718c998a4p+3},
      {"9007199254740993.0", 0x1.0000000000001p+53},
      {"0.1", 0x1.999999999999ap-4},
      {"-7.25", -7.25},
      {"12345678901234567890123.5", 0x1.4ea15b273b38ap+73},
      {"0.30000000000000000000004", 0x1.3333333333333p-2},
      {"1.7976931348623157e308", 0x1.fffffffffffffp+1023},
      {"4.9e-324", 0x0.0000000000001p-1022},
      {"-2.5E-320", -0x0.00000000013c4p-1022},
      {"123456789012345678901234567890e-25", 0x1.81cd6e63c53d7p+13},
      {"1e-400", 0.0},
      {"18446744073709551615.5", 0x1p+64},
      {"18446744073709551616.5", 0x1p+64},
      {"1E+5", 100000.0},
  };
  for (const Row& row : kRows) {
    INFO(row.text);
    CHECK(library_number(row.text) == row.value);
  }
  CHECK(std::signbit(library_number("-0.0")));
  CHECK(std::isinf(library_number("1e309")));
  CHECK(std::isinf(library_number("-1e99999999999999999999")));
  CHECK(library_number("1e-99999999999999999999") == 0.0);
  CHECK(library_number("0e99999999999999999999") == 0.0);
}

}  // namespace
}  // namespace tgi
