#include "engine/text/unicode.h"

#include "engine/text/byte_level.h"
#include "tests/catch.h"

namespace tgi {
namespace {

const std::string kBad = "\xEF\xBF\xBD";

TEST_CASE("each maximal broken part becomes one replacement character") {
  // As Python's bytes.decode("utf-8", "replace").
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
  }
}

TEST_CASE("normal forms compose, decompose and reorder") {
  CHECK(normalize("e\xCC\x81", NormalForm::kNfc) == "\xC3\xA9");
  CHECK(normalize("abc e\xCC\x81", NormalForm::kNfc) == "abc \xC3\xA9");
  CHECK(normalize("\xC3\xA9", NormalForm::kNfd) == "e\xCC\x81");
  CHECK(normalize("\xEF\xAC\x81", NormalForm::kNfkc) == "fi");
  CHECK(normalize("\xEF\xAC\x81", NormalForm::kNfc) == "\xEF\xAC\x81");
  CHECK(normalize("\xE1\x84\x80\xE1\x85\xA1", NormalForm::kNfc) == "\xEA\xB0\x80");
  CHECK(normalize("", NormalForm::kNfkd).empty());
  CHECK(normalize(std::string("a\0b", 3), NormalForm::kNfc) == std::string("a\0b", 3));
}

TEST_CASE("a mark newer than the library's tables is not reordered") {
  const std::string newer = "\xE1\xAA\xBF";  // U+1ABF, below, Unicode 13
  CHECK(normalize("a\xCC\x81" + newer, NormalForm::kNfd) == "a\xCC\x81" + newer);
  CHECK_FALSE(is_combining_mark(0x1ABF));
  CHECK(is_combining_mark(0x301));
}

TEST_CASE("every byte has its own printable character") {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::string text = to_byte_level(all);
  CHECK(from_byte_level(text) == all);
  CHECK(to_byte_level(" \n") == "\xC4\xA0\xC4\x8A");
  CHECK_FALSE(from_byte_level(" "));
  CHECK_FALSE(from_byte_level("\xE4\xB8\xAD"));
}

}  // namespace
}  // namespace tgi
