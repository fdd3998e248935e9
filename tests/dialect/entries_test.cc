// Values in the notation of Gemma's calls.
#include "engine/dialect/entry_scanner.h"
#include "tests/catch.h"

namespace tgi::dialect {

TEST_CASE("a value in Gemma's notation is read as JSON, or told to be none") {
  constexpr std::string_view kQuote = "<|\"|>";
  const auto json = [&](std::string_view value) { return json_of_entry(value, kQuote); };
  CHECK(json("<|\"|>a \"b\" {c},\n<|\"|>") == R"("a \"b\" {c},\n")");
  CHECK(json("<|\"|><|\"|>") == R"("")");
  CHECK(json(R"("as \"JSON\"")") == R"("as \"JSON\"")");
  CHECK(json(" -1.5e3 ") == "-1.5e3");
  CHECK(json("None") == "null");
  CHECK(json("True") == "true");
  CHECK(json("[]") == "[]");
  CHECK(json("{}") == "{}");
  CHECK(json("[1, [2,], {a : [true]}]") == "[1, [2], {\"a\": [true]}]");
  CHECK(json("{a b:1,<|\"|>c:d<|\"|>:2,\"e\":<|\"|>x<|\"|>}") ==
        R"({"a b": 1, "c:d": 2, "e": "x"})");
  for (const char* const wrong : {"", "word", "[1", "[1 2]", "{a}", "{a:}", "{:1}", "{a:1]",
                                  "<|\"|>open", "1 2", "\"open", "[,]", "{a:1}}", "01", "NaN"}) {
    CAPTURE(wrong);
    CHECK(json(wrong).empty());
  }
  CHECK(json(std::string(1000, '[')).empty());
}

TEST_CASE("the end of a value in Gemma's notation is found however it is cut") {
  static constexpr std::string_view kValues[] = {"1", "[1,{a:<|\"|>,}]<|\"|>}]", "<|\"|>x<|\"|>",
                                                 "{\"a,}\\\"\":[]}", "<b>"};
  for (const std::string_view quote : {std::string_view("<|\"|>"), std::string_view("<escape>")}) {
    for (const std::string_view each : kValues) {
      std::string value(each);
      for (size_t at = 0; (at = value.find("<|\"|>", at)) != std::string::npos;
           at += quote.size()) {
        value.replace(at, 5, quote);
      }
      for (const char* const behind : {",b:2}", "}", "]"}) {
        const std::string text = value + behind;
        for (const size_t chunk : {size_t{1}, size_t{3}, text.size()}) {
          CAPTURE(text, chunk);
          EntryScanner scanner;
          size_t taken = 0;
          for (size_t end = chunk; !scanner.is_done() && taken < text.size(); end += chunk) {
            const std::string_view here = std::string_view(text).substr(0, end);
            taken += scanner.feed(here.substr(taken), quote);
            REQUIRE(end <= text.size() + chunk);
          }
          CHECK(scanner.is_done());
          CHECK(taken == value.size());
        }
      }
    }
  }
}

}  // namespace tgi::dialect
