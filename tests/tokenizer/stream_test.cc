// Text token by token: append_bytes must add up to what decode gives.
#include <thread>

#include "base/utf8.h"
#include "engine/text/text_stream.h"
#include "tests/catch.h"
#include "tests/shared_data.h"
#include "tests/tokenizer/golden.h"

namespace tgi {
namespace {

std::string streamed(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i) tokenizer.append_bytes(ids[i], i == 0, text);
  return text;
}

// byte_level: the format replaces broken bytes in the text as a whole.
void check_stream(const Tokenizer& tokenizer, bool byte_level) {
  std::vector<std::vector<int32_t>> lists = random_ids(tokenizer, 3000, false);
  for (const std::string& text : read_cases()) lists.push_back(tokenizer.encode(text, true));
  size_t num_valid = 0;
  for (const std::vector<int32_t>& ids : lists) {
    const std::string bytes = streamed(tokenizer, ids);
    INFO(bytes);
    if (is_valid_utf8(bytes)) {
      ++num_valid;
      CHECK(tokenizer.decode(ids, false) == bytes);
    } else if (byte_level) {
      CHECK(tokenizer.decode(ids, false) == replace_invalid_utf8(bytes));
    } else {
      CHECK(is_valid_utf8(tokenizer.decode(ids, false)));
    }
  }
  CHECK(num_valid > 400);
}

TEST_CASE("appended bytes add up to the decoded text") {
  check_stream(*load_folder(golden_path("byte_level")), true);
  check_stream(*load_folder(golden_path("spm_bpe")), false);
  check_stream(*load_folder(golden_path("sentencepiece_bpe")), false);
}

TEST_CASE("with decoders in other orders appended bytes add up to the decoded text too") {
  // Without byte tokens, of which whole characters are known too late.
  for (
      const std::string chain :
      {R"([{"type": "Fuse"}, {"type": "Replace", "pattern": {"String": "\u2581"}, "content": "-"}])",
       R"([{"type": "Strip", "content": "e", "start": 1, "stop": 1}, {"type": "Fuse"},
            {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"}])",
       R"([{"type": "Replace", "pattern": {"Regex": "[aeiou]+"}, "content": "_"},
            {"type": "WordPiece", "prefix": "t", "cleanup": false}, {"type": "Fuse"},
            {"type": "Fuse"}, {"type": "BPEDecoder", "suffix": "a"}])"}) {
    const auto tokenizer =
        load_contents("tokenizer.json",
                      changed_golden("spm_bpe", R"({"decoder": {"type": "Sequence", "decoders": )" +
                                                    chain + "}}"),
                      "");
    for (const std::string& text : read_cases()) {
      const std::vector<int32_t> ids = tokenizer->encode(text, true);
      INFO(chain << ": " << text);
      CHECK(tokenizer->decode(ids, false) == streamed(*tokenizer, ids));
    }
  }
}

// What a reader sees with each token, and with the end.
std::vector<std::string> released(const std::string& chain,
                                  const std::vector<std::string>& tokens,
                                  const std::vector<std::string>& stop) {
  const auto tokenizer = load_contents(
      "tokenizer.json",
      changed_golden("spm_bpe", R"({"decoder": {"type": "Sequence", "decoders": )" + chain + "}}"),
      "");
  TextStream stream(*tokenizer, stop, false);
  std::vector<std::string> pieces;
  for (const std::string& token : tokens) {
    const bool is_over = stream.push(*tokenizer->id_of(token), pieces.emplace_back());
    if (is_over) return pieces;
  }
  stream.finish(pieces.emplace_back());
  return pieces;
}

TEST_CASE("a stream holds back what later tokens may change") {
  using Pieces = std::vector<std::string>;
  const std::string stripped = R"([{"type": "Fuse"},
      {"type": "Strip", "content": "e", "start": 1, "stop": 2}])";
  CHECK(released(stripped, {"e", "a", "e", "e", "e"}, {}) == Pieces{"", "ea", "", "", "e", ""});
  CHECK(released(stripped, {"a", "e", "a"}, {}) == Pieces{"a", "", "ea", ""});
  const std::string replaced = R"([{"type": "Fuse"},
      {"type": "Replace", "pattern": {"String": "aab"}, "content": "X"}])";
  CHECK(released(replaced, {"a", "a", "a", "b", "a"}, {}) == Pieces{"", "", "a", "X", "", "a"});
  CHECK(released(replaced, {"a", "a", "b", "a", "a"}, {"Xaa"}) == Pieces{"", "", "", "", "", ""});
  CHECK(released(replaced, {"a", "a", "b", "e"}, {"X"}) == Pieces{"", "", ""});
  const std::string sounds = R"([{"type": "CTC", "pad_token": "e", "word_delimiter_token": "\u2581",
      "cleanup": true}])";
  CHECK(released(sounds, {"a", "a", "e", "a", "\u2581", "\u2581", "b"}, {}) ==
        Pieces{"a", "", "", "a", " ", "", "b", ""});
  const std::string bytes = R"([{"type": "ByteFallback"}, {"type": "BPEDecoder", "suffix": "a"}])";
  CHECK(released(bytes, {"<0xE2>", "<0x82>", "<0xAC>", "b", "a"}, {}) ==
        Pieces{"", "", "", "\u20ac", "b", ""});
  CHECK(released(bytes, {"<0xE2>", "b"}, {}) == Pieces{"", "\ufffd", "b"});
}

TEST_CASE("ChatGLM's class puts tokens behind the pieces, and two of them before a text") {
  const auto plain = load_folder(golden_path("sentencepiece_bpe"));
  const auto model = read_file(golden_path("sentencepiece_bpe/tokenizer.model"));
  const auto chat =
      load_contents("tokenizer.model", model, R"({"tokenizer_class": "ChatGLMTokenizer"})");
  const int32_t first = chat->vocab_size() - 9;
  CHECK(chat->id_of("[gMASK]") == first + 1);
  std::vector<int32_t> expected = {first + 1, first + 3};
  const auto text = plain->encode("the text", false);
  expected.insert(expected.end(), text.begin(), text.end());
  CHECK(chat->encode("the text", true) == expected);
  CHECK(chat->encode("the text", false) == text);
  CHECK(chat->encode("<|user|>", false) == std::vector<int32_t>{first + 6});
  CHECK(chat->decode(expected, true) == plain->decode(text, true));
  CHECK(chat->is_special(first + 8));
}

TEST_CASE("a word's end is a space while an answer runs on, and nothing at its end") {
  using Pieces = std::vector<std::string>;
  const std::string word_ends = R"([{"type": "BPEDecoder", "suffix": "a"}])";
  CHECK(released(word_ends, {"b", "a", "b", "a"}, {}) == Pieces{"b", "", " b", "", ""});
  CHECK(released(word_ends, {"a", "b"}, {" "}) == Pieces{"", ""});
  CHECK(released(word_ends, {"b", "a"}, {" "}) == Pieces{"b", "", ""});
}

TEST_CASE("a word's end is a space while a text runs on, and nothing at its end") {
  const auto tokenizer = load_contents("tokenizer.json", changed_golden("spm_bpe", R"({
    "decoder": {"type": "BPEDecoder", "suffix": "a"}})"),
                                       "");
  const std::vector<int32_t> ids(2, *tokenizer->id_of("a"));
  CHECK(tokenizer->decode(ids, false) == " ");
  CHECK(streamed(*tokenizer, ids) == "  ");
  CHECK(tokenizer->has_token_bytes());
  const auto running = tokenizer->running_text(true);
  std::string text;
  for (const int32_t id : ids) running->push(id, text);
  running->finish(text);
  CHECK(text == " ");
}

TEST_CASE("appended bytes add up to the decoded text with released tokenizers") {
  const std::pair<std::string, bool> kFolders[] = {
      {"tokenizers/gpt2", true},         {"tokenizers/qwen2.5", true},
      {"tokenizers/gpt-oss", true},      {"tokenizers/phi-3-mini", false},
      {"weights/stories260K/hf", false}, {"tokenizers/mistral-v3", false}};
  for (const auto& [folder, byte_level] : kFolders) {
    if (!has_shared_data(folder)) continue;
    INFO(folder);
    check_stream(*load_folder(shared_data_dir() + "/" + folder), byte_level);
  }
}

TEST_CASE("text comes back from its ids") {
  const auto byte_level = load_folder(golden_path("byte_level"));
  const auto spm = load_folder(golden_path("spm_bpe"));
  for (const std::string& text : read_cases()) {
    const std::string repaired = replace_invalid_utf8(text);
    CHECK(byte_level->decode(byte_level->encode(text, false), false) == repaired);
    // Here tokens with lstrip or rstrip take white space away, and a space before U+2581 is one.
    if (text.find("<|") != std::string::npos || text.find("</s>") != std::string::npos ||
        text.find("<s>") != std::string::npos || text.find("<unk>") != std::string::npos ||
        text.find("<0x41>") != std::string::npos ||
        text.find("\xE2\x96\x81") != std::string::npos) {
      continue;
    }
    CHECK(spm->decode(spm->encode(text, false), false) == repaired);
  }
}

TEST_CASE("a character that takes several tokens comes byte by byte") {
  for (const std::string name : {"byte_level", "spm_bpe", "sentencepiece_bpe"}) {
    const auto tokenizer = load_folder(golden_path(name));
    const std::string text = "\xF0\x9F\xA7\xBF";  // in no vocabulary
    std::vector<int32_t> ids = tokenizer->encode(text, false);
    REQUIRE(ids.size() >= 3);
    CHECK(streamed(*tokenizer, ids) == text);
    ids.pop_back();
    CHECK(text.starts_with(streamed(*tokenizer, ids)));
    CHECK(is_incomplete_utf8(streamed(*tokenizer, ids)));
    CHECK(is_valid_utf8(tokenizer->decode(ids, false)));
  }
}

TEST_CASE("the space before a text is dropped at its start only") {
  for (const std::string name : {"spm_bpe", "sentencepiece_bpe", "sentencepiece_unigram"}) {
    const auto tokenizer = load_folder(golden_path(name));
    const std::vector<int32_t> ids = tokenizer->encode("the", false);
    std::string text;
    tokenizer->append_bytes(ids[0], true, text);
    CHECK(text.find(' ') == std::string::npos);
    tokenizer->append_bytes(ids[0], false, text);
    CHECK(text.find(' ') != std::string::npos);
  }
}

TEST_CASE("ids outside the vocabulary stand for nothing") {
  for (const std::string name :
       {"byte_level", "spm_bpe", "sentencepiece_bpe", "sentencepiece_unigram"}) {
    const auto tokenizer = load_folder(golden_path(name));
    for (const int32_t id : {-1, INT32_MIN, INT32_MAX, tokenizer->vocab_size()}) {
      std::string text = "x";
      tokenizer->append_bytes(id, false, text);
      CHECK(text == "x");
      CHECK(tokenizer->token_of(id).empty());
      CHECK_FALSE(tokenizer->is_special(id));
      CHECK(tokenizer->decode(std::vector<int32_t>{id}, false).empty());
    }
  }
}

TEST_CASE("special tokens are found in text, shown as they are spelled, and known as special") {
  const auto tokenizer = load_folder(golden_path("byte_level"));
  const auto id = tokenizer->id_of("<|eot_id|>");
  REQUIRE(id);
  CHECK(tokenizer->is_special(*id));
  CHECK(tokenizer->token_of(*id) == "<|eot_id|>");
  CHECK(tokenizer->encode("<|eot_id|>", false) == std::vector<int32_t>{*id});
  CHECK(streamed(*tokenizer, std::vector<int32_t>{*id}) == "<|eot_id|>");
  const auto call = tokenizer->id_of("<tool_call>");
  REQUIRE(call);
  CHECK_FALSE(tokenizer->is_special(*call));
  CHECK_FALSE(tokenizer->id_of("no such token"));

  const auto pieces = load_folder(golden_path("sentencepiece_bpe"));
  const auto inst = pieces->id_of("[INST]");
  REQUIRE(inst);
  CHECK(pieces->is_special(*inst));
  CHECK(pieces->encode("[INST]", false) == std::vector<int32_t>{*inst});
  CHECK(streamed(*pieces, std::vector<int32_t>{*inst}) == "[INST]");
  CHECK(pieces->decode(std::vector<int32_t>{*inst}, true).empty());
}

TEST_CASE("one tokenizer serves several threads") {
  for (const std::string name : {"byte_level", "sentencepiece_bpe"}) {
    const auto tokenizer = load_folder(golden_path(name));
    const std::vector<std::string> cases = read_cases();
    const std::vector<std::string> expected = encode_hashes(*tokenizer, cases, 50);
    std::vector<std::vector<std::string>> results(4);
    std::vector<std::thread> threads;
    for (auto& result : results) {
      threads.emplace_back([&] { result = encode_hashes(*tokenizer, cases, 50); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& result : results) CHECK(result == expected);
  }
}

}  // namespace
}  // namespace tgi
