// The project's own small tokenizers against what the reference libraries said about them.
#include <fmt/format.h>

#include "base/json.h"
#include "tests/catch.h"
#include "tests/tokenizer/golden.h"

namespace tgi {
namespace {

std::string joined(std::span<const int32_t> ids) {
  return fmt::format("{}", fmt::join(ids, " "));
}

// kind: the name of the .ids and .texts files.
void check_full(const Tokenizer& tokenizer, const std::string& kind, bool shows_special) {
  const std::vector<std::string> cases = read_cases();
  const std::vector<std::string> ids = read_lines(golden_path(kind + ".ids"));
  const std::vector<std::string> texts = read_lines(golden_path(kind + ".texts"));
  REQUIRE(ids.size() == 100);
  REQUIRE(texts.size() == ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    INFO(kind << ", case " << i << ": " << cases[i]);
    const std::vector<int32_t> encoded = tokenizer.encode(cases[i], true);
    CHECK(joined(encoded) == ids[i]);
    const size_t tab = texts[i].find('\t');
    if (shows_special) {
      CHECK(tokenizer.decode(encoded, false) == unescaped(texts[i].substr(0, tab)));
    }
    CHECK(tokenizer.decode(encoded, true) == unescaped(texts[i].substr(tab + 1)));
  }
}

TEST_CASE("a tokenizer.json with byte-level bpe gives the reference's ids and texts") {
  check_full(*load_folder(golden_path("byte_level")), "byte_level", true);
}

TEST_CASE("a tokenizer.json with byte fallback gives the reference's ids and texts") {
  check_full(*load_folder(golden_path("spm_bpe")), "spm_bpe", true);
}

TEST_CASE("a tokenizer.json with wordpiece gives the reference's ids and texts") {
  check_full(*load_folder(golden_path("wordpiece")), "wordpiece", true);
}

TEST_CASE("a tokenizer.json with whole words gives the reference's ids and texts") {
  check_full(*load_folder(golden_path("word_level")), "word_level", true);
}

TEST_CASE("a tokenizer.json with unigram gives the reference's ids and texts") {
  check_full(*load_folder(golden_path("unigram")), "unigram", true);
}

TEST_CASE("a tokenizer.model gives the reference's ids and texts") {
  for (const std::string name : {"sentencepiece_bpe", "sentencepiece_unigram"}) {
    check_full(*load_folder(golden_path(name)), name, false);
  }
}

TEST_CASE("without legacy only the start of a text gets the model's space") {
  for (const std::string name : {"sentencepiece_bpe", "sentencepiece_unigram"}) {
    const std::string model = read_file(golden_path(name + "/tokenizer.model"));
    const auto tokenizer = load_contents("tokenizer.model", model, R"({"legacy": false})");
    check_full(*tokenizer, name + "_not_legacy", false);
  }
}

TEST_CASE("a tokenizer.model whose config wants no space before a text puts none there") {
  const std::string model = read_file(golden_path("sentencepiece_bpe/tokenizer.model"));
  for (const std::string legacy : {"true", "false"}) {
    const auto spaced = load_contents("tokenizer.model", model, R"({"legacy": )" + legacy + "}");
    const auto plain = load_contents("tokenizer.model", model,
                                     R"({"add_prefix_space": false, "legacy": )" + legacy + "}");
    INFO("legacy " << legacy);
    CHECK(plain->encode("the", false) != spaced->encode("the", false));
    CHECK(plain->encode(" the", false) == spaced->encode("the", false));
    for (const std::string text : {"the", " the", "the</s>the"}) {
      CHECK(plain->decode(plain->encode(text, false), false) == text);
    }
  }
}

TEST_CASE(
    "every variant of normalizer, pre-tokenizer, model and decoder agrees with the reference") {
  const Json variants = parse_json(read_file(golden_path("variants.json")));
  REQUIRE(variants.size() > 140);
  const std::vector<std::string> cases = read_cases();
  for (const Json& variant : variants) {
    const auto base = variant["base"].get<std::string>();
    Json tokenizer_json = parse_json(read_file(golden_path(base + "/tokenizer.json")));
    tokenizer_json.update(variant["set"]);
    tokenizer_json["model"].update(variant["set_model"]);
    const auto tokenizer = load_contents("tokenizer.json", tokenizer_json.dump(), "");
    INFO(base << " with " << variant["set"] << " " << variant["set_model"]);
    CHECK(encode_hashes(*tokenizer, cases, 50) == strings_of(variant["encoded"]));
    CHECK(decode_hashes(*tokenizer, 200, 50, false) == strings_of(variant["decoded"]));
    CHECK(pairs_hash(*tokenizer, std::span(cases).first(100)) ==
          variant["pairs"].get<std::string>());
  }
}

TEST_CASE("where a token's text depends on others a running text adds up to the reference's") {
  size_t num_running = 0;
  for (const Json& variant : parse_json(read_file(golden_path("variants.json")))) {
    const std::string changed = Json{{"decoder", variant["set"].value("decoder", Json())}}.dump();
    const auto tokenizer = load_contents(
        "tokenizer.json", changed_golden(variant["base"].get<std::string>(), changed), "");
    if (tokenizer->has_token_bytes()) continue;
    ++num_running;
    INFO(changed);
    for (const std::vector<int32_t>& ids : random_ids(*tokenizer, 400, false)) {
      CHECK(run_on(*tokenizer, ids) == tokenizer->decode(ids, false));
    }
  }
  CHECK(num_running == 18);
}

TEST_CASE("both ways to write merges mean the same") {
  const std::string path = golden_path("byte_level/tokenizer.json");
  Json lines = parse_json(read_file(path));
  for (Json& merge : lines["model"]["merges"]) {
    REQUIRE(merge.is_array());
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  const auto pairs = load_folder(golden_path("byte_level"));
  const auto other = load_contents("tokenizer.json", lines.dump(), "");
  const std::vector<std::string> cases = read_cases();
  CHECK(encode_hashes(*pairs, cases, 10) == encode_hashes(*other, cases, 10));
}

TEST_CASE("merges and vocabulary may come in any order in the file") {
  // nlohmann's objects are sorted by key: here merges come before vocab.
  const Json document = parse_json(read_file(golden_path("spm_bpe/tokenizer.json")));
  const std::string sorted = document.dump();
  REQUIRE(sorted.find("\"merges\"") < sorted.find("\"vocab\""));
  const auto tokenizer = load_contents("tokenizer.json", sorted, "");
  check_full(*tokenizer, "spm_bpe", true);
}

TEST_CASE("a long text without white space is merged as short pieces are") {
  // No merge crosses a line break in this model, so whole and parts must agree.
  const auto tokenizer = load_folder(golden_path("spm_bpe"));
  std::string text;
  std::vector<int32_t> parts = tokenizer->encode("the", false);
  text = "the";
  for (int i = 0; i < 3000; ++i) {
    const std::string line = "\ntheringlomithekaunde" + std::to_string(i % 7);
    std::vector<int32_t> ids = tokenizer->encode("x" + line, false);
    const std::vector<int32_t> x = tokenizer->encode("x", false);
    REQUIRE(std::equal(x.begin(), x.end(), ids.begin()));
    parts.insert(parts.end(), ids.begin() + static_cast<std::ptrdiff_t>(x.size()), ids.end());
    text += line;
  }
  CHECK(tokenizer->encode(text, false) == parts);
}

}  // namespace
}  // namespace tgi
