#include "ipc/duration.h"

#include "base/error.h"
#include "tests/catch.h"

namespace tgi::ipc {

TEST_CASE("times are read as ollama's clients write them") {
  CHECK(parse_duration("5m") == 300.0);
  CHECK(parse_duration("1h30m") == 5400.0);
  CHECK(parse_duration("1.5s") == 1.5);
  CHECK(parse_duration("300ms") == Approx(0.3));
  CHECK(parse_duration("10us") == Approx(1e-5));
  CHECK(parse_duration("300") == 300.0);
  CHECK(parse_duration("0") == 0.0);
  CHECK(parse_duration("-1") == -1.0);
  CHECK(parse_duration("-2m") == -120.0);
  for (const char* bad : {"", "-", "m", "5 m", "5m3", "5x", "1e3s", "inf", "five"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_duration(bad));
    CHECK_THROWS_WITH(parse_keep_alive(bad), Catch::Contains("expected a time"));
  }
  CHECK(parse_keep_alive("-5m") == -1.0);
}

TEST_CASE("times are written as they are read") {
  for (const double seconds : {-1.0, 0.0, 1.0, 59.0, 300.0, 5400.0, 3661.0, 0.25}) {
    CAPTURE(seconds);
    CHECK(parse_keep_alive(format_keep_alive(seconds)) == seconds);
  }
  CHECK(format_keep_alive(300) == "5m");
  CHECK(format_keep_alive(5400) == "1h30m");
}

}  // namespace tgi::ipc
