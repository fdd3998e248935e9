// Folders with a vocab.txt and no tokenizer.json.
#include <map>
#include <span>

#include "base/files/file_source.h"
#include "engine/text/token_pairs.h"
#include "tests/catch.h"
#include "tests/tokenizer/golden.h"
#include "tests/tokenizer/refusal.h"
#include "tests/tokenizer/same_ids.h"

namespace tgi {
namespace {

using Ids = std::vector<int32_t>;

std::unique_ptr<Tokenizer> load_vocab(const std::string& vocab, const std::string& config) {
  return load_contents("vocab.txt", vocab, config);
}

// The tokens of the small model by their ids, one on each line.
std::string golden_vocab() {
  const Json document = parse_json(read_file(golden_path("wordpiece/tokenizer.json")));
  std::map<int32_t, std::string> tokens;
  for (const auto& [token, id] : document["model"]["vocab"].items()) tokens[id] = token;
  std::string lines;
  for (const auto& [id, token] : tokens) lines += token + "\n";
  return lines;
}

// The small model without the token that isn't in its vocabulary, with another normalizer.
std::unique_ptr<Tokenizer> json_with(const std::string& normalizer) {
  Json document = parse_json(changed_golden("wordpiece", "{\"normalizer\": " + normalizer + "}"));
  Json& added = document["added_tokens"];
  REQUIRE(added.back()["content"] == "<mask>");
  added.erase(added.size() - 1);
  return load_contents("tokenizer.json", document.dump(), "");
}

TEST_CASE("a vocab.txt gives the ids of the tokenizer.json that it would be") {
  const std::string vocab = golden_vocab();
  check_same_ids(*load_vocab(vocab, ""), *json_with("{}"));
  check_same_ids(
      *load_vocab(vocab, R"({"do_lower_case": false, "tokenizer_class": "BertTokenizer"})"),
      *json_with(R"({"lowercase": false})"));
  check_same_ids(*load_vocab(vocab, R"({"tokenize_chinese_chars": false, "strip_accents": false,
                                    "tokenizer_class": "DistilBertTokenizerFast"})"),
                 *json_with(R"({"handle_chinese_chars": false, "strip_accents": false})"));
  check_same_ids(*load_vocab(vocab, R"({"do_lower_case": false, "strip_accents": true})"),
                 *json_with(R"({"lowercase": false, "strip_accents": true})"));
}

TEST_CASE("a vocab.txt knows pairs, and its class's special tokens") {
  const std::string vocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\r\n##re \na\xE2\x80\x83\nthe\n";
  const auto bert = load_vocab(vocab, "");
  CHECK(bert->encode("there a", true) == Ids{2, 7, 5, 6, 3});  // the last "the" counts
  CHECK(bert->vocab_size() == 8);
  CHECK(bert->is_special(0));
  CHECK_FALSE(bert->is_special(7));
  CHECK(bert->encode("[MASK]", false) == Ids{1, 1, 1});  // is not in the vocabulary
  const TypedIds pair = encode_typed(*bert, "the", "a", true);
  CHECK(pair.ids == Ids{2, 7, 3, 6, 3});
  CHECK(pair.type_ids == Ids{0, 0, 0, 1, 1});

  const std::string other = "<s>\n<pad>\n</s>\n[UNK]\nthe\n<mask>\n";
  const auto mpnet = load_vocab(other, R"({"tokenizer_class": "MPNetTokenizer"})");
  CHECK(mpnet->encode("the  <mask>", true) == Ids{0, 4, 5, 2});
  CHECK(encode_typed(*mpnet, "the", "the", true).ids == Ids{0, 4, 2, 2, 4, 2});
  const auto named = load_vocab("the\n[S]\n[E]\n?\n", R"({"cls_token": "[S]", "unk_token": "?",
    "sep_token": {"content": "[E]", "lstrip": false}, "added_tokens_decoder":
    {"0": {"content": "the", "special": false, "lstrip": true}}})");
  CHECK(named->encode("x the", true) == Ids{1, 3, 0, 2});
}

TEST_CASE("a vocab.txt that can't be one is refused") {
  const auto refused = [](const std::string& vocab, const std::string& config) {
    const std::string message =
        message_of(Code::kInvalidArgument, [&] { load_vocab(vocab, config); });
    CHECK(message.starts_with("test/"));
    return message;
  };
  CHECK(refused("", "").find("got no line") != std::string::npos);
  CHECK(refused("a\n\xFF\n", "").find("line 2") != std::string::npos);
  CHECK(refused("a\nb\n", "").find("unk_token \"[UNK]\"") != std::string::npos);
  CHECK(refused("[UNK]\n[SEP]\n", "").find("cls_token \"[CLS]\"") != std::string::npos);
  CHECK(refused("[UNK]\n[CLS]\n", "").find("sep_token \"[SEP]\"") != std::string::npos);
  CHECK(refused("[UNK]\n", R"({"do_lower_case": "no"})").find("do_lower_case") !=
        std::string::npos);
  const std::string message = message_of(Code::kUnsupported, [] {
    load_vocab("[UNK]\n", R"({"tokenizer_class": "BertJapaneseTokenizer"})");
  });
  CHECK(message.find("\"BertJapaneseTokenizer\"") != std::string::npos);
}

TEST_CASE("a vocab.txt beside a tokenizer.json is not looked at") {
  const std::string json = read_file(golden_path("wordpiece/tokenizer.json"));
  const std::string vocab = "\xFF";
  const auto bytes_of = [](const std::string& text) {
    return std::as_bytes(std::span(text.data(), text.size()));
  };
  const auto tokenizer = load_tokenizer(
      *open_embedded("test", {{"tokenizer.json", bytes_of(json)}, {"vocab.txt", bytes_of(vocab)}}));
  CHECK(tokenizer->vocab_size() == load_folder(golden_path("wordpiece"))->vocab_size());
}

}  // namespace
}  // namespace tgi
