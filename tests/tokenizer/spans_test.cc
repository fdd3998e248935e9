// Where tokens stand in the text, against what the reference library says.
#include <fmt/format.h>

#include <cstdlib>

#include "base/json.h"
#include "base/utf8.h"
#include "engine/text/token_pairs.h"
#include "engine/text/token_spans.h"
#include "tests/catch.h"
#include "tests/tokenizer/golden.h"

namespace tgi {
namespace {

std::string spans_line(const Tokenizer& tokenizer, const std::string& text) {
  std::string out;
  for (const TextSpan& span : token_spans(tokenizer, text, tokenizer.encode(text, true), true)) {
    out += fmt::format("{}{}-{}", out.empty() ? "" : " ", span.start, span.stop);
  }
  return out;
}

void check_spans(const std::string& name) {
  const auto tokenizer = load_folder(golden_path(name));
  const std::vector<std::string> cases = read_cases();
  const std::vector<std::string> golden = read_lines(golden_path(name + ".spans"));
  REQUIRE(golden.size() == 100);
  for (size_t i = 0; i < golden.size(); ++i) {
    if (!is_valid_utf8(cases[i])) continue;
    INFO(name << ", case " << i << ": " << cases[i]);
    CHECK(spans_line(*tokenizer, cases[i]) == golden[i]);
  }
}

}  // namespace

TEST_CASE("tokens of byte-level bpe stand where the reference says") {
  check_spans("byte_level");
}

TEST_CASE("tokens of a format that puts a space in front stand where the reference says") {
  check_spans("spm_bpe");
}

TEST_CASE("tokens of wordpiece stand where the reference says") {
  check_spans("wordpiece");
}

TEST_CASE("tokens of whole words stand where the reference says") {
  check_spans("word_level");
}

TEST_CASE("tokens of unigram with rewriting rules stand where the reference says") {
  check_spans("unigram");
}

// A tokenizer whose tokens are the characters of a small alphabet.
std::string character_file(const std::string& members) {
  Json file = parse_json(R"({"version": "1.0", "added_tokens": [], "normalizer": null,
    "pre_tokenizer": null, "post_processor": null, "decoder": null,
    "model": {"type": "BPE", "unk_token": "?", "vocab": {"?": 0, "a": 1, "b": 2, "▁": 3, "ab": 4,
      "▁▁": 5, "▁a": 6, "é": 7, "f": 8, "i": 9, "Ġ": 10, "Ġa": 11},
      "merges": [["a", "b"], ["▁", "▁"], ["▁", "a"], ["Ġ", "a"]]}})");
  file.merge_patch(parse_json(members));
  return file.dump();
}

std::string spans_with(const std::string& members, const std::string& text) {
  return spans_line(*load_contents("tokenizer.json", character_file(members), ""), text);
}

// Expected: what tokenizers 0.23.3 gives for the same file.
TEST_CASE("spans go through what changes a text before it is cut") {
  const std::string llama = R"({"normalizer": {"type": "Sequence", "normalizers": [
      {"type": "Prepend", "prepend": "▁"},
      {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}})";
  CHECK(spans_with(llama, "ab") == "0-1 0-2");
  CHECK(spans_with(llama, "  a") == "0-1 1-3");
  CHECK(spans_with(llama, " a b") == "0-1 1-2 2-3 3-4");
  const std::string nfc = R"({"normalizer": {"type": "NFC"}})";
  CHECK(spans_with(nfc, "ae\u0301b") == "0-1 1-2 3-4");
  const std::string nfkc = R"({"normalizer": {"type": "NFKC"}})";
  CHECK(spans_with(nfkc, "a\ufb01b") == "0-1 1-2 1-2 2-3");
  const std::string lower = R"({"normalizer": {"type": "Lowercase"}})";
  CHECK(spans_with(lower, "AB b") == "0-2 2-3 3-4");
  const std::string strip =
      R"({"normalizer": {"type": "Strip", "strip_left": true, "strip_right": true}})";
  CHECK(spans_with(strip, "  ab  ") == "2-4");
  const std::string twice = R"({"normalizer": {"type": "Replace",
      "pattern": {"Regex": "b+"}, "content": "a"}})";
  CHECK(spans_with(twice, "abbba") == "0-1 3-4 4-5");
  const std::string metaspace = R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "▁",
      "prepend_scheme": "always", "split": true}})";
  CHECK(spans_with(metaspace, "ab a") == "0-1 0-2 2-4");
  const std::string fused = R"({"model": {"fuse_unk": true}})";
  CHECK(spans_with(fused, "axyzb") == "0-1 1-4 4-5");
  CHECK(spans_with("{}", "axyb") == "0-1 1-2 2-3 3-4");
  const std::string trimmed = R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": true},
      "post_processor": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true}})";
  CHECK(spans_with(trimmed, "a a") == "0-1 2-3");
  const std::string two_spaces =
      R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": true},
      "post_processor": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true},
      "model": {"vocab": {"ĠĠ": 12}, "merges": [["Ġ", "Ġ"], ["Ġ", "a"]]}})";
  CHECK(spans_with(two_spaces, "   a") == "2-2 3-4");
  // Unknown are a character and what marks its place, together.
  const std::string prefixed = R"({"model": {"continuing_subword_prefix": "##",
      "vocab": {"##x": 12, "##a": 13}, "merges": []}})";
  CHECK(spans_with(prefixed, "xxa") == "0-1 1-2 2-3");
  CHECK(spans_with(prefixed, "xaaé") == "0-1 1-2 2-3 3-4");
  const std::string ended = R"({"model": {"end_of_word_suffix": "</w>", "fuse_unk": true,
      "vocab": {"a</w>": 12}, "merges": []}})";
  CHECK(spans_with(ended, "xb") == "0-2");
  CHECK(spans_with(ended, "axb") == "0-1 1-3");
  const std::string swallows =
      R"({"added_tokens": [{"id": 12, "content": "<x>", "single_word": false,
      "lstrip": true, "rstrip": true, "normalized": false, "special": true}]})";
  CHECK(spans_with(swallows, "a  <x> b") == "0-1 1-7 7-8");
  const std::string inserted =
      R"({"normalizer": {"type": "Replace", "pattern": {"Regex": "^"}, "content": "▁"},
      "added_tokens": [{"id": 12, "content": "<x>", "single_word": false,
      "lstrip": false, "rstrip": false, "normalized": false, "special": true}]})";
  CHECK(spans_with(inserted, "a<x>b") == "0-1 1-4 4-4 4-5");
}

// For work on tokenizers: TGI_TOKENIZER_CASES=<file printed by make_tokenizer_goldens --any>.
TEST_CASE("any tokenizer.json gives the reference's ids, spans and pairs", "[.]") {
  const char* path = std::getenv("TGI_TOKENIZER_CASES");
  REQUIRE(path != nullptr);
  const Json golden = parse_json(read_file(path));
  const auto texts = golden["texts"].get<std::vector<std::string>>();
  for (const auto& [file, answers] : golden["files"].items()) {
    const auto tokenizer = load_contents("tokenizer.json", read_file(file), "");
    for (size_t i = 0; i < texts.size(); ++i) {
      INFO(file << ", text " << i << ": " << Json(texts[i]).dump(-1, ' ', true));
      const std::vector<int32_t> ids = tokenizer->encode(texts[i], true);
      CHECK(ids == answers["ids"][i].get<std::vector<int32_t>>());
      CHECK(tokenizer->decode(ids, true) == answers["texts"][i].get<std::string>());
      std::string expected;
      for (const Json& row : answers["spans"][i]) {
        expected += fmt::format("{}{}-{}", expected.empty() ? "" : " ", row[0].get<int64_t>(),
                                row[1].get<int64_t>());
      }
      CHECK(spans_line(*tokenizer, texts[i]) == expected);
      if (i + 1 == texts.size()) continue;
      const TypedIds pair = encode_typed(*tokenizer, texts[i], texts[i + 1], i % 2 == 0);
      CHECK(pair.ids == answers["pairs"][i][0].get<std::vector<int32_t>>());
      CHECK(pair.type_ids == answers["pairs"][i][1].get<std::vector<int32_t>>());
    }
  }
}

}  // namespace tgi
