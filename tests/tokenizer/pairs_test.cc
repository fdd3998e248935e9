// Pairs of texts with the types of their tokens. That the ids and types are the library's stands in
// golden_test.cc; here is who gives what, and who can't.
#include "engine/text/token_pairs.h"

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
