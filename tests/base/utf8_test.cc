#include "base/utf8.h"

#include "tests/catch.h"

namespace tgi {

TEST_CASE("utf-8 validity follows RFC 3629") {
  CHECK(is_valid_utf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"));
  for (const char* bad :
       {"\x80", "\xC0\xAF", "\xC1\xBF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xE2\x82"}) {
    CHECK_FALSE(is_valid_utf8(bad));
  }
  CHECK(is_incomplete_utf8("\xF0\x9F"));
  CHECK_FALSE(is_incomplete_utf8("\xF0\x9F\x98\x80"));
  CHECK_FALSE(is_incomplete_utf8("\xED\xA0"));
}

TEST_CASE("draining replaces each maximal invalid part once and keeps an unfinished tail") {
  // Cases of table 3-8 of the Unicode standard.
  std::string raw = "\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64\xE2\x82";
  std::string out;
  drain_utf8(raw, false, out);
  CHECK(out == "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd");
  CHECK(raw == "\xE2\x82");
  drain_utf8(raw, true, out);
  CHECK(out == "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd\uFFFD");
  CHECK(raw.empty());
}

TEST_CASE("characters are counted, not bytes or marks put together") {
  CHECK(count_utf8_characters("") == 0);
  CHECK(count_utf8_characters("plain") == 5);
  CHECK(count_utf8_characters("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80") == 4);
  CHECK(count_utf8_characters("e\u0301") ==
        2);  // an accent of its own is a scalar value of its own
  CHECK(count_utf8_characters(std::string(3, '\0')) == 3);
}

}  // namespace tgi
