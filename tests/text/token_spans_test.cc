#include "engine/text/token_spans.h"

#include <numeric>

#include "engine/text/byte_tokenizer.h"
#include "tests/catch.h"
#include "tests/text/list_tokenizer.h"

namespace tgi {
namespace {

using Pairs = std::vector<std::pair<int64_t, int64_t>>;

Pairs spans_of(const Tokenizer& tokenizer, std::string_view text, std::span<const int32_t> ids) {
  Pairs out;
  for (const TextSpan& span : token_spans(tokenizer, text, ids, true)) {
    out.emplace_back(span.start, span.stop);
  }
  return out;
}

// The spans of a text whose tokens are these pieces, in order.
Pairs spans_of(std::string_view text, const std::vector<std::string>& pieces) {
  std::vector<int32_t> ids(pieces.size());
  std::iota(ids.begin(), ids.end(), 0);
  return spans_of(ListTokenizer(pieces), text, ids);
}

}  // namespace

TEST_CASE("spans count characters, not bytes") {
  CHECK(spans_of("h\u00e9llo \u20ac1", {"h\u00e9", "llo", " \u20ac", "1"}) ==
        Pairs{{0, 2}, {2, 5}, {5, 7}, {7, 8}});
}

TEST_CASE("tokens that share a character all have the whole of it") {
  const std::string text = "a\U0001F600b";
  const ByteTokenizer bytes(256);
  CHECK(spans_of(bytes, text, bytes.encode(text, true)) ==
        Pairs{{0, 1}, {1, 2}, {1, 2}, {1, 2}, {1, 2}, {2, 3}});
  // A token that ends one character and begins the next has both.
  CHECK(spans_of("\u00e9\u00e8", {"\xC3", "\xA9\xC3", "\xA8"}) == Pairs{{0, 1}, {0, 2}, {1, 2}});
}

TEST_CASE("a special token that was added stands for nothing, one that was written for itself") {
  CHECK(spans_of("hi", {"<s>", "hi", "<s>"}) == Pairs{{0, 0}, {0, 2}, {0, 0}});
  CHECK(spans_of("<s>hi", {"<s>", "<s>", "hi"}) == Pairs{{0, 3}, {0, 0}, {3, 5}});
}

TEST_CASE("the space that a format puts in front of a text is not in the span") {
  CHECK(spans_of("hi you", {"<s>", " hi", " you"}) == Pairs{{0, 0}, {0, 2}, {2, 6}});
  // White space that a token swallowed without having it belongs to nobody.
  CHECK(spans_of("a   b", {"a", "b"}) == Pairs{{0, 1}, {4, 5}});
}

TEST_CASE("where a text was changed before it was cut, a token has as many characters as it is") {
  CHECK(spans_of("HI You", {"hi", " you"}) == Pairs{{0, 2}, {2, 6}});
  // More tokens than text: the last ones have what is left, which is nothing.
  CHECK(spans_of("A", {"ab", "c"}) == Pairs{{0, 1}, {1, 1}});
}

TEST_CASE("spans of plain tokens put together are the text") {
  const std::string text = "caf\u00e9 \u20ac\U0001F600 na\u00efve";
  const ByteTokenizer bytes(256);
  const Pairs spans = spans_of(bytes, text, bytes.encode(text, true));
  REQUIRE(spans.size() == text.size());
  CHECK(spans.front().first == 0);
  CHECK(spans.back().second == 13);
  for (size_t i = 1; i < spans.size(); ++i) {
    CHECK((spans[i] == spans[i - 1] || spans[i].first == spans[i - 1].second));
  }
}

TEST_CASE("an empty text has no spans") {
  CHECK(spans_of("", {}).empty());
  CHECK(spans_of("", {"<s>"}) == Pairs{{0, 0}});
}

}  // namespace tgi
