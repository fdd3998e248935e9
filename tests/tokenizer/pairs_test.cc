// Pairs of texts with the types of their tokens. That the ids and types are the library's stands in
// golden_test.cc; here is who gives what, and who can't.
#include "engine/text/token_pairs.h"

#include <algorithm>
#include <utility>

#include "engine/text/byte_tokenizer.h"
#include "tests/catch.h"
#include "tests/tokenizer/golden.h"
#include "tests/tokenizer/refusal.h"

namespace tgi {
namespace {

using Ids = std::vector<int32_t>;

std::unique_ptr<Tokenizer> with(const std::string& name, const std::string& changed) {
  return load_contents("tokenizer.json", changed_golden(name, changed), "");
}

TEST_CASE("the second text of a pair has the type that the template says") {
  const auto tokenizer = load_folder(golden_path("wordpiece"));
  const Ids the = tokenizer->encode("the", false);
  REQUIRE(the.size() == 1);
  const TypedIds pair = encode_typed(*tokenizer, "the", "the the", true);
  CHECK(pair.ids == Ids{2, the[0], 3, the[0], the[0], 3});
  CHECK(pair.type_ids == Ids{0, 0, 0, 1, 1, 1});
  const TypedIds bare = encode_typed(*tokenizer, "the", "the", false);
  CHECK(bare.ids == Ids{the[0], the[0]});
  CHECK(bare.type_ids == Ids{0, 1});
}

TEST_CASE("a text alone has the ids of encode, and its template's types") {
  const auto tokenizer = load_folder(golden_path("wordpiece"));
  for (const std::string& text : read_cases()) {
    const TypedIds alone = encode_typed(*tokenizer, text, std::nullopt, true);
    CHECK(alone.ids == tokenizer->encode(text, true));
    CHECK(alone.type_ids == Ids(alone.ids.size(), 0));
  }
  const auto typed = with("wordpiece", R"({"post_processor": {"single": [
    {"SpecialToken": {"id": "[CLS]", "type_id": 2}}, {"Sequence": {"id": "A", "type_id": 5}}]}})");
  CHECK(encode_typed(*typed, "the", std::nullopt, true).type_ids == Ids{2, 5});
  CHECK(encode_typed(*typed, "the", std::nullopt, false).type_ids == Ids{5});
}

TEST_CASE("without a post-processor the texts of a pair follow each other") {
  const auto tokenizer = with("wordpiece", R"({"post_processor": null})");
  const TypedIds pair = encode_typed(*tokenizer, "the", "the", true);
  CHECK(pair.ids.size() == 2);
  CHECK(pair.type_ids == Ids{0, 1});
}

TEST_CASE("a pair is refused where nothing says what it is") {
  const auto without = with("wordpiece", R"({"post_processor": {"pair": null}})");
  CHECK(encode_typed(*without, "the", std::nullopt, true).ids.size() == 3);
  const std::string message =
      message_of(Code::kUnsupported, [&] { encode_typed(*without, "the", "the", true); });
  CHECK(message.find("post_processor") != std::string::npos);
  const auto sentencepiece = load_folder(golden_path("sentencepiece_bpe"));
  CHECK(encode_typed(*sentencepiece, "the", std::nullopt, true).ids ==
        sentencepiece->encode("the", true));
  message_of(Code::kUnsupported, [&] { encode_typed(*sentencepiece, "the", "the", true); });
}

// How many tokens of each text are left of a pair of such lengths with one token around them.
std::pair<int64_t, int64_t> lengths_left(int64_t first, int64_t second, int64_t max_tokens) {
  TypedIds whole;
  const auto add = [&](TokenPart part, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      whole.ids.push_back(static_cast<int32_t>(whole.ids.size()));
      whole.type_ids.push_back(0);
      whole.parts.push_back(part);
    }
  };
  add(TokenPart::kAdded, 1);
  add(TokenPart::kFirst, first);
  add(TokenPart::kSecond, second);
  const auto kept = kept_tokens(whole, max_tokens, CutSide::kRight);
  REQUIRE(kept);
  const TypedIds cut = pick_tokens(whole, *kept);
  CHECK(cut.ids[0] == 0);
  return {std::ranges::count(cut.parts, TokenPart::kFirst),
          std::ranges::count(cut.parts, TokenPart::kSecond)};
}

// As tokenizers 0.23 cuts them.
TEST_CASE("of a pair that is too long the longer text is cut first, then both") {
  using Lengths = std::pair<int64_t, int64_t>;
  CHECK(lengths_left(3, 2, 6) == Lengths{3, 2});
  CHECK(lengths_left(9, 2, 7) == Lengths{4, 2});
  CHECK(lengths_left(2, 9, 7) == Lengths{2, 4});
  CHECK(lengths_left(3, 3, 6) == Lengths{2, 3});  // the odd one is the second's
  CHECK(lengths_left(3, 4, 6) == Lengths{2, 3});
  CHECK(lengths_left(4, 3, 6) == Lengths{3, 2});
  CHECK(lengths_left(9, 9, 6) == Lengths{2, 3});
  CHECK(lengths_left(9, 8, 6) == Lengths{3, 2});
  CHECK(lengths_left(9, 0, 6) == Lengths{5, 0});
  CHECK(lengths_left(9, 9, 1) == Lengths{0, 0});
}

TEST_CASE("a text is cut at either side, and what was added stays") {
  const auto tokenizer = load_folder(golden_path("wordpiece"));
  // The [SEP] that is written out is the text's own.
  const TypedIds whole = encode_typed(*tokenizer, "the a [SEP]", std::nullopt, true);
  using enum TokenPart;
  REQUIRE(whole.parts == std::vector<TokenPart>{kAdded, kFirst, kFirst, kFirst, kAdded});
  using Kept = std::vector<size_t>;
  CHECK(kept_tokens(whole, 9, CutSide::kLeft) == Kept{0, 1, 2, 3, 4});
  CHECK(kept_tokens(whole, 4, CutSide::kRight) == Kept{0, 1, 2, 4});
  CHECK(kept_tokens(whole, 4, CutSide::kLeft) == Kept{0, 2, 3, 4});
  CHECK(kept_tokens(whole, 2, CutSide::kLeft) == Kept{0, 4});
  CHECK_FALSE(kept_tokens(whole, 1, CutSide::kRight));
  const TypedIds pair = encode_typed(*tokenizer, "the a", "the a", true);
  CHECK(kept_tokens(pair, 5, CutSide::kLeft) == Kept{0, 2, 3, 5, 6});

  const auto sentencepiece = load_folder(golden_path("sentencepiece_bpe"));
  const TypedIds other = encode_typed(*sentencepiece, "the", std::nullopt, true);
  const auto num_text = static_cast<ptrdiff_t>(sentencepiece->encode("the", false).size());
  CHECK(std::ranges::count(other.parts, kFirst) == num_text);
}

TEST_CASE("a tokenizer.json says which side of a text is cut") {
  CHECK_FALSE(cut_side(*with("wordpiece", R"({"truncation": null})")));
  CHECK_FALSE(cut_side(*load_folder(golden_path("sentencepiece_bpe"))));
  const auto side = [](const std::string& truncation) {
    return cut_side(*with("wordpiece", R"({"truncation": )" + truncation + "}"));
  };
  CHECK(
      side(R"({"direction": "Left", "max_length": 5, "strategy": "LongestFirst", "stride": 0})") ==
      CutSide::kLeft);
  CHECK(side(R"({"max_length": 5})") == CutSide::kRight);
  CHECK(message_of(Code::kInvalidArgument, [&] {
          side(R"({"direction": "left"})");
        }).find("truncation.direction: expected Left or Right") != std::string::npos);
}

TEST_CASE("a template for pairs is checked when it is read") {
  const auto refused = [](const std::string& changed) {
    return message_of(Code::kInvalidArgument, [&] { with("wordpiece", changed); });
  };
  CHECK(refused(R"({"post_processor": {"pair": [{"Sequence": {"id": "C", "type_id": 0}}]}})")
            .find("post_processor.pair[0].Sequence.id") != std::string::npos);
  CHECK(refused(R"({"post_processor": {"pair": [{"SpecialToken": {"id": "[X]", "type_id": 0}}]}})")
            .find("\"[X]\" is not in post_processor.special_tokens") != std::string::npos);
  CHECK(refused(R"({"post_processor": {"single": [{"Sequence": {"id": "A", "type_id": -1}}]}})")
            .find("type_id") != std::string::npos);
}

}  // namespace
}  // namespace tgi
