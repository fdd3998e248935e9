#include "engine/dialect/json_check.h"

#include <random>
#include <string>

#include "base/nlohmann_json.h"
#include "tests/catch.h"

namespace tgi::dialect {

TEST_CASE("what is JSON is known whatever its numbers") {
  for (const char* const good :
       {"{}", " {\"a\": [1, -0.5e+3, {\"b\": null}], \"c\": \"\\u00e9\\n\"} ", "{\"a\":1e999}",
        "{\"a\":123456789012345678901234567890}", "{\"a\":[[],[{}]]}"}) {
    CAPTURE(good);
    CHECK(is_json_object(good));
  }
  for (const char* const bad : {"",
                                "1",
                                "[]",
                                "{",
                                "{}}",
                                "{\"a\"}",
                                "{\"a\":}",
                                "{\"a\":1,}",
                                "{,}",
                                "{\"a\":[1,]}",
                                "{'a':1}",
                                "{\"a\":01}",
                                "{\"a\":1.}",
                                "{\"a\":+1}",
                                "{\"a\":.5}",
                                "{\"a\":1e}",
                                "{\"a\":\"\\x\"}",
                                "{\"a\":\"\\u12g4\"}",
                                "{\"a\":\"\n\"}",
                                "{\"a\":tru}",
                                "{\"a\":\"\xFF\"}",
                                "{\"a\":1]",
                                "{\"a\":[1}"}) {
    CAPTURE(bad);
    CHECK_FALSE(is_json_object(bad));
  }
}

TEST_CASE("the check agrees with the library's parser on texts of no large numbers") {
  std::mt19937 random(7);
  constexpr std::string_view kPieces[] = {"{", "}", "[",    "]",    ",",  ":", "\"a\"", "1",
                                          "-", " ", "true", "null", "\"", "0", ".5"};
  int num_good = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string text = "{\"a\":";
    for (auto count = random() % 7; count > 0; --count)
      text += kPieces[random() % std::size(kPieces)];
    text += "}";
    const auto parsed = nlohmann::json::parse(text, nullptr, false);
    const bool is_object = parsed.is_object();
    num_good += is_object ? 1 : 0;
    if (is_json_object(text) != is_object) FAIL(text);
  }
  CHECK(num_good > 1000);
}

}  // namespace tgi::dialect
