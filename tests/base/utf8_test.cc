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

TEST_CASE("each maximal broken part becomes one replacement character") {
  // As Python's bytes.decode("utf-8", "replace").
  const std::string kBad = "\xEF\xBF\xBD";
  CHECK(replace_invalid_utf8("a\xFFz") == "a" + kBad + "z");
  CHECK(replace_invalid_utf8("\xE2\x82") == kBad);
  CHECK(replace_invalid_utf8("\xE2\x82z") == kBad + "z");
  CHECK(replace_invalid_utf8("\xF0\x9F\x98\xE2\x82\xAC") == kBad + "\xE2\x82\xAC");
  CHECK(replace_invalid_utf8("\xC0\x80") == kBad + kBad);
  CHECK(replace_invalid_utf8("\xED\xA0\x80") == kBad + kBad + kBad);
  CHECK(replace_invalid_utf8("\xF4\x90\x80\x80") == kBad + kBad + kBad + kBad);
  CHECK(replace_invalid_utf8("\xE0\x80") == kBad + kBad);
  CHECK(replace_invalid_utf8("\xF1\x80\x80\xFF") == kBad + kBad);
}

TEST_CASE("characters go to UTF-8 and back") {
  for (char32_t character = 0; character < 0x110000; character += 13) {
    if (character >= 0xD800 && character <= 0xDFFF) continue;
    std::string text;
    append_utf8(character, text);
    size_t offset = 0;
    CHECK(next_character(text, offset) == character);
    CHECK(offset == text.size());
    CHECK(utf8_size(text[0]) == text.size());
    CHECK(character_begin(text, text.size() - 1) == 0);
  }
}

TEST_CASE("each length of UTF-8 begins and ends where RFC 3629 says") {
  const auto encoded = [](char32_t character) {
    std::string text;
    append_utf8(character, text);
    return text;
  };
  CHECK(encoded(0x7F) == "\x7F");
  CHECK(encoded(0x80) == "\xC2\x80");
  CHECK(encoded(0x7FF) == "\xDF\xBF");
  CHECK(encoded(0x800) == "\xE0\xA0\x80");
  CHECK(encoded(0xFFFF) == "\xEF\xBF\xBF");
  CHECK(encoded(0x10000) == "\xF0\x90\x80\x80");
  CHECK(encoded(0x10FFFF) == "\xF4\x8F\xBF\xBF");
  CHECK(encoded(0x110000).empty());
}

TEST_CASE("a character that the text ends within is read no further than that") {
  const std::string_view whole = "a\xE2\x82\xAC";
  for (size_t size = 2; size < whole.size(); ++size) {
    size_t offset = 1;
    CHECK(character_size(whole.substr(0, size), offset) == size - 1);
    (void)next_character(whole.substr(0, size), offset);
    CHECK(offset == size);
  }
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
