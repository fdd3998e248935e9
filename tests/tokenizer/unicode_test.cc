#include "engine/text/unicode/unicode.h"

#include "engine/text/tokenizer/byte_level.h"
#include "tests/catch.h"

namespace tgi {
namespace {

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
