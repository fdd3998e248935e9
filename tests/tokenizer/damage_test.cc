// Damaged files of models with WordPiece and Unigram, and members that nobody knows: typed errors
// that say where.
#include "tests/catch.h"
#include "tests/tokenizer/golden.h"
#include "tests/tokenizer/refusal.h"

namespace tgi {
namespace {

void check_damage(const std::string& json, Code code, const std::string& part) {
  const std::string message = message_of(code, [&] { load_contents("tokenizer.json", json, ""); });
  INFO(message);
  CHECK(message.find(part) != std::string::npos);
  CHECK(message.starts_with("test/tokenizer.json: "));
}

void check_changed(const std::string& name,
                   const std::string& changed,
                   Code code,
                   const std::string& part) {
  check_damage(changed_golden(name, changed), code, part);
}

constexpr Code kDamaged = Code::kInvalidArgument;

TEST_CASE("malformed pieces and scores are refused with their place") {
  const auto vocab = [](const std::string& pieces) {
    return R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0])" + pieces + "]}}";
  };
  CHECK(load_contents("tokenizer.json", vocab(R"(, ["a", -1])"), "")->vocab_size() == 2);
  check_damage(vocab(R"(, ["a", "b"])"), kDamaged, "model.vocab[1]: expected [piece, score], got");
  check_damage(vocab(R"(, ["a", null])"), kDamaged, "model.vocab[1]");
  check_damage(vocab(R"(, ["a", true])"), kDamaged, "model.vocab[1]");
  check_damage(vocab(R"(, ["a", []])"), kDamaged, "model.vocab[1]");
  check_damage(vocab(R"(, ["a", {}])"), kDamaged, "model.vocab[1]");
  check_damage(vocab(R"(, ["a", 1e999])"), kDamaged, "");
  check_damage(vocab(R"(, ["a"])"), kDamaged, "model.vocab[1]");
  check_damage(vocab(R"(, ["a", 1, 2])"), kDamaged, "model.vocab[1]");
  check_damage(vocab(R"(, [1, "a"])"), kDamaged, "model.vocab[1]");
  check_damage(vocab(R"(, [])"), kDamaged, "model.vocab[1]");
  check_damage(vocab(R"(, "a")"), kDamaged, "model.vocab[1]");
  check_damage(vocab(R"(, 7)"), kDamaged, "model.vocab[1]");
  check_damage(R"({"model": {"type": "Unigram", "vocab": {"a": 1}}})", kDamaged, "model.vocab");
  check_damage(R"({"model": {"type": "Unigram"}})", kDamaged, "model.vocab");
  check_damage(R"({"model": {"type": "Unigram", "vocab": [], "unk_id": 0}})", kDamaged,
               "model.unk_id");
  check_damage(R"({"model": {"type": "BPE", "vocab": [["a", 1]], "merges": []}})", kDamaged,
               "model.vocab");
  check_damage(R"({"model": {"type": "WordPiece", "vocab": [["a", 1]]}})", kDamaged, "model.vocab");
}

TEST_CASE("an unk_id that is no piece is refused") {
  const Json document = parse_json(read_file(golden_path("unigram/tokenizer.json")));
  const std::string past_the_last = std::to_string(document["model"]["vocab"].size());
  for (const std::string& id : {past_the_last, std::string("-1"), std::string("4000000000"),
                                std::string("1.5"), std::string("\"<unk>\"")}) {
    check_changed("unigram", "{\"model\": {\"unk_id\": " + id + "}}", kDamaged, "model.unk_id");
  }
}

TEST_CASE("without an unk_id a character of no piece is refused when it comes") {
  const auto tokenizer = load_contents(
      "tokenizer.json", changed_golden("unigram", R"({"model": {"unk_id": null}})"), "");
  CHECK(tokenizer->encode("the", false).size() == 1);
  const std::string message = message_of(kDamaged, [&] { tokenizer->encode("the \u2603", false); });
  CHECK(message.find("\u2603") != std::string::npos);
  CHECK(message.find("model.unk_id") != std::string::npos);
}

TEST_CASE("without its unk_token a word that can't be cut is refused when it comes") {
  const auto tokenizer = load_contents(
      "tokenizer.json", changed_golden("wordpiece", R"({"model": {"unk_token": "<none>"}})"), "");
  CHECK(tokenizer->encode("the", false).size() == 1);
  const std::string message = message_of(kDamaged, [&] { tokenizer->encode("\u2603", false); });
  CHECK(message.find("\"<none>\"") != std::string::npos);
}

TEST_CASE("a vocabulary may have holes, and ids that are shared") {
  const auto tokenizer = load_contents("tokenizer.json", R"({"model": {"type": "WordPiece",
    "unk_token": "?", "continuing_subword_prefix": "##", "max_input_chars_per_word": 9,
    "vocab": {"?": 7, "a": 1000, "##b": 7000, "##c": 7000, "": 3}}})",
                                       "");
  CHECK(tokenizer->encode("abc", true) == std::vector<int32_t>{1000, 7000, 7000});
  CHECK(tokenizer->encode("abd", true) == std::vector<int32_t>{7});
  CHECK(tokenizer->vocab_size() == 7001);
  CHECK(tokenizer->token_of(1000) == "a");
  CHECK(tokenizer->token_of(500).empty());
  CHECK(tokenizer->decode(std::vector<int32_t>{500, 1000}, false) == "a");
}

TEST_CASE("members that are not known are refused by name") {
  const Code kUnknown = Code::kUnsupported;
  check_changed("wordpiece", R"({"model": {"shuffle": true}})", kDamaged, "shuffle");
  check_changed("unigram", R"({"model": {"shuffle": true}})", kDamaged, "shuffle");
  check_changed("wordpiece", R"({"normalizer": {"shuffle": true}})", kDamaged, "shuffle");
  check_changed("unigram", R"({"model": {"alpha": 0.1}})", kUnknown, "model.alpha");
  check_changed("wordpiece", R"({"model": {"unk_token": null}})", kDamaged, "model.unk_token");
  check_changed("wordpiece", R"({"model": {"max_input_chars_per_word": -1}})", kDamaged,
                "model.max_input_chars_per_word");
  check_changed("wordpiece", R"({"normalizer": {"lowercase": null}})", kDamaged,
                "normalizer.lowercase");
  check_changed("wordpiece", R"({"decoder": {"prefix": null}})", kDamaged, "decoder.prefix");
}

// The four bytes of the size, the units, the texts.
std::string charsmap(std::vector<uint32_t> units, const std::string& texts) {
  units.insert(units.begin(), static_cast<uint32_t>(4 * units.size()));
  std::string bytes;
  for (const uint32_t unit : units) {
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(unit >> shift);
  }
  return bytes + texts;
}

std::string to_base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t bits = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    for (size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    for (size_t i = 0; i < 4; ++i) {
      text += i <= count ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
    }
  }
  return text;
}

std::string file_with(const std::string& encoded) {
  return changed_golden("unigram",
                        Json{{"normalizer", {{"precompiled_charsmap", encoded}}}}.dump());
}

// A trie that replaces "a": its root is unit 256, the leaf of "a" unit 512.
std::vector<uint32_t> one_rule(uint32_t value) {
  std::vector<uint32_t> units(768, 0);
  units[0] = 256 << 10;
  units[256 + 'a'] = (512 ^ (256 + 'a')) << 10 | 1 << 8 | 'a';
  units[512] = 1U << 31 | value;
  return units;
}

TEST_CASE("a charsmap is read as it is written") {
  const auto b = load_contents(
      "tokenizer.json", file_with(to_base64(charsmap(one_rule(2), std::string("c\0b\0", 4)))), "");
  const auto plain =
      load_contents("tokenizer.json", changed_golden("unigram", R"({"normalizer": null})"), "");
  CHECK(b->encode("xay", true) == plain->encode("xby", true));
}

TEST_CASE("damaged charsmaps are refused") {
  const std::string path = "normalizer.precompiled_charsmap: ";
  const auto refuse_bytes = [&](const std::string& bytes, const std::string& part) {
    check_damage(file_with(to_base64(bytes)), kDamaged, path + part);
  };
  for (const std::string encoded : {"AAA", "A===", "A*==", "AA=A", "=AAA"}) {
    check_damage(file_with(encoded), kDamaged, path + "expected base64");
  }
  refuse_bytes("", "expected the size of a trie");
  refuse_bytes("ab", "expected the size of a trie");
  refuse_bytes(charsmap({}, "x"), "expected a trie, got none");
  refuse_bytes(charsmap(one_rule(0), "").substr(0, 100), "expected a trie of 3072 bytes, got 96");
  refuse_bytes(charsmap(one_rule(7), std::string("b\0", 2)), "a rule's replacement is at byte 7");
  refuse_bytes(charsmap(one_rule(1), "\u00E9"), "a rule's replacement is at byte 1");
  refuse_bytes(charsmap(one_rule(0), "\xFF"), "expected replacements in UTF-8");
  std::vector<uint32_t> astray = one_rule(0);
  astray[256 + 'a'] = 0x1FFFFFU << 10 | 1 << 8 | 'a';
  refuse_bytes(charsmap(astray, "b"), "the trie leads to unit");
  check_changed("unigram", R"({"normalizer": {"precompiled_charsmap": null}})", kDamaged,
                "precompiled_charsmap");
}

TEST_CASE("no cut of a charsmap or of a file crashes the reader") {
  const Json document = parse_json(read_file(golden_path("unigram/tokenizer.json")));
  const auto encoded = document["normalizer"]["precompiled_charsmap"].get<std::string>();
  size_t refused = 0;
  size_t sizes = 0;
  for (size_t size = 0; size < encoded.size(); size += 4) {
    ++sizes;
    try {
      load_contents("tokenizer.json", file_with(encoded.substr(0, size)), "")
          ->encode("q\ufb01\u0301\u2122", true);
    } catch (const Error& error) {
      CHECK(error.code() == kDamaged);
      ++refused;
    }
  }
  // Only what lacks no more than the last replacement, or a part of it, can be read.
  CHECK(refused + 4 > sizes);
  for (const std::string name : {"unigram", "wordpiece"}) {
    const std::string file = read_file(golden_path(name + "/tokenizer.json"));
    for (size_t size = 0; size < file.size(); size += 97) {
      message_of(kDamaged, [&] { load_contents("tokenizer.json", file.substr(0, size), ""); });
    }
  }
}

}  // namespace
}  // namespace tgi
