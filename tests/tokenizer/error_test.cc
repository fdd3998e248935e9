// Malformed and unknown tokenizer files: a typed error that says where, never a crash.
#include <fmt/format.h>

#include <functional>
#include <map>

#include "base/error.h"
#include "base/files/file_source.h"
#include "base/json.h"
#include "tests/catch.h"
#include "tests/tokenizer/golden.h"

namespace tgi {
namespace {

struct Refused {
  Code code;
  std::string message;
};

Refused refusal(const std::function<void()>& load) {
  try {
    load();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  FAIL("nothing was refused");
  return {};
}

void check_refused(const std::string& json,
                   Code code,
                   const std::string& part,
                   const std::string& config = "") {
  const Refused got = refusal([&] { load_contents("tokenizer.json", json, config); });
  INFO(got.message);
  CHECK(code_row(got.code).name == code_row(code).name);
  CHECK(got.message.find(part) != std::string::npos);
  CHECK(got.message.starts_with("test/tokenizer"));
}

// A small valid file with `changed` merged over it (RFC 7396, null removes).
std::string changed_file(const std::string& changed) {
  Json file = parse_json(R"({"version": "1.0", "added_tokens": [], "normalizer": null,
    "pre_tokenizer": null, "post_processor": null, "decoder": null,
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}})");
  file.merge_patch(parse_json(changed));
  return file.dump();
}

TEST_CASE("the small file that the error tests change is valid") {
  const auto tokenizer = load_contents("tokenizer.json", changed_file("{}"), "");
  CHECK(tokenizer->encode("abba", true) == std::vector<int32_t>{2, 1, 0});
}

TEST_CASE("malformed parts of a tokenizer.json are refused with their path") {
  const Code kBad = Code::kInvalidArgument;
  check_refused("", kBad, "not valid JSON: expected a document, got no text");
  check_refused("{", kBad, "not valid JSON at line 1, column 2");
  check_refused("[]", kBad, "an object");
  check_refused("{\"model\": \"\xFF\"}", kBad, "byte");
  check_refused(std::string(100, '['), kBad, "nests deeper");
  check_refused("{}", kBad, "model: missing");
  check_refused(changed_file(R"({"model": {"vocab": null}})"), kBad, "model.vocab");
  check_refused(changed_file(R"({"model": {"vocab": []}})"), kBad, "model.vocab");
  check_refused(changed_file(R"({"model": {"merges": {}}})"), kBad, "model.merges");
  check_refused(changed_file(R"({"model": {"vocab": {"x": -1}}})"), kBad, "model.vocab[\"x\"]");
  check_refused(changed_file(R"({"model": {"vocab": {"x": 1.5}}})"), kBad, "model.vocab[\"x\"]");
  check_refused(changed_file(R"({"model": {"vocab": {"x": 4000000000}}})"), kBad, "got 4000000000");
  check_refused(changed_file(R"({"model": {"vocab": {"x": {"y": 1}}}})"), kBad,
                "model.vocab[\"x\"]");
  check_refused(changed_file(R"({"model": {"merges": [["a"]]}})"), kBad, "model.merges[0]");
  check_refused(changed_file(R"({"model": {"merges": [["a", "b", "c"]]}})"), kBad, "merges[0]");
  check_refused(changed_file(R"({"model": {"merges": ["a b", "ab"]}})"), kBad, "merges[1]");
  check_refused(changed_file(R"({"model": {"merges": [["a", "b"], 7]}})"), kBad, "merges[1]");
  check_refused(changed_file(R"({"model": {"merges": [["a", "z"]]}})"), kBad, "\"z\" is not in");
  check_refused(changed_file(R"({"model": {"merges": [["b", "a"]]}})"), kBad, "\"ba\" is not in");
  check_refused(changed_file(R"({"model": {"unk_token": 7}})"), kBad, "model.unk_token");
  check_refused(changed_file(R"({"added_tokens": {}})"), kBad, "added_tokens: expected an array");
  check_refused(changed_file(R"({"added_tokens": [{"id": 5}]})"), kBad, "added_tokens[0].content");
  check_refused(changed_file(R"({"normalizer": []})"), kBad, "normalizer");
  check_refused(changed_file(R"({"normalizer": {"type": "Prepend"}})"), kBad, "normalizer.prepend");
  check_refused(changed_file(R"({"normalizer": {"type": "Sequence", "normalizers": [7]}})"), kBad,
                "normalizer.normalizers[0]");
  check_refused(changed_file(R"({"pre_tokenizer": {"type": "Split", "invert": false,
                             "pattern": {"String": "x"}, "behavior": "Shredded"}})"),
                kBad, "pre_tokenizer.behavior: \"Shredded\"");
  check_refused(changed_file(R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "xy"}})"),
                kBad, "pre_tokenizer.replacement");
  check_refused(changed_file(R"({"post_processor": {"type": "TemplateProcessing",
                             "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}],
                             "special_tokens": {}}})"),
                kBad, "\"<s>\" is not in post_processor.special_tokens");
  check_refused(changed_file(R"({"decoder": {"type": "Strip", "content": " ", "start": -1,
                             "stop": 0}})"),
                kBad, "decoder.start");
}

TEST_CASE("sequences inside sequences have a limit") {
  std::string nested = R"({"type": "NFC"})";
  for (int i = 0; i < 20; ++i) {
    nested = R"({"type": "Sequence", "normalizers": [)" + nested + "]}";
  }
  check_refused(changed_file("{\"normalizer\": " + nested + "}"), Code::kInvalidArgument, "deeper");
}

TEST_CASE("components that this build does not know are unsupported and named") {
  const Code kUnknown = Code::kUnsupported;
  check_refused(changed_file(R"({"model": {"type": "PhraseLevel"}})"), kUnknown,
                "model.type: \"PhraseLevel\"");
  check_refused(R"({"model": {"type": "WordLevel", "vocab": {"a": 0}}})", Code::kInvalidArgument,
                "model.unk_token");
  check_refused(R"({"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a", "x": 1}})",
                Code::kInvalidArgument, "x");
  check_refused(changed_file(R"({"version": "2.0"})"), kUnknown, "version");
  check_refused(changed_file(R"({"model": {"dropout": 0.1}})"), kUnknown, "model.dropout");
  check_refused(changed_file(R"({"normalizer": {"type": "Postcompiled"}})"), kUnknown,
                "normalizer.type: \"Postcompiled\"");
  check_refused(changed_file(R"({"pre_tokenizer": {"type": "Syllables"}})"), kUnknown,
                "\"Syllables\"");
  check_refused(changed_file(R"({"pre_tokenizer": {"type": "FixedLength", "length": 0}})"),
                Code::kInvalidArgument, "pre_tokenizer.length");
  check_refused(
      changed_file(R"({"pre_tokenizer": {"type": "CharDelimiterSplit", "delimiter": "ab"}})"),
      Code::kInvalidArgument, "pre_tokenizer.delimiter: expected one character");
  check_refused(changed_file(R"({"post_processor": {"type": "New"}})"), kUnknown, "\"New\"");
  check_refused(changed_file(R"({"decoder": {"type": "Sounds"}})"), kUnknown, "\"Sounds\"");
  check_refused(changed_file(R"({"decoder": {"type": "CTC", "pad_token": "",
                             "word_delimiter_token": "|", "cleanup": true}})"),
                kUnknown, "decoder.pad_token");
  for (const std::string chain :
       {R"({"type": "Fuse"}, {"type": "Replace", "pattern": {"Regex": "a"}, "content": "b"})",
        R"({"type": "Fuse"}, {"type": "ByteLevel"})",
        R"({"type": "ByteLevel"}, {"type": "ByteLevel"})"}) {
    check_refused(changed_file(R"({"decoder": {"type": "Sequence", "decoders": [)" + chain + "]}}"),
                  kUnknown, "decoder.decoders[1].type: ");
  }
  check_refused(changed_file(R"({"decoder": {"type": "BPEDecoder", "suffix": ""}})"), kUnknown,
                "decoder.suffix");
  check_refused(changed_file(R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(?<n"},
                             "behavior": "Isolated", "invert": false}})"),
                kUnknown, "pre_tokenizer.pattern.Regex");
}

TEST_CASE("a character that needs an unk_token outside the vocabulary is refused when it comes") {
  const auto tokenizer =
      load_contents("tokenizer.json", changed_file(R"({"model": {"unk_token": "<unk>"}})"), "");
  CHECK(tokenizer->encode("ab", false) == std::vector<int32_t>{2});
  const Refused got = refusal([&] { tokenizer->encode("abc", false); });
  CHECK(got.code == Code::kInvalidArgument);
  CHECK(got.message.find("\"<unk>\"") != std::string::npos);
}

TEST_CASE("without any tokenizer file both names are given") {
  const Refused got = refusal([] { load_contents("config.json", "{}", ""); });
  CHECK(got.code == Code::kNotFound);
  CHECK(got.message.find("test/tokenizer.json") != std::string::npos);
  CHECK(got.message.find("tokenizer.model") != std::string::npos);
}

TEST_CASE("a malformed tokenizer_config.json is refused with its path") {
  const Code kBad = Code::kInvalidArgument;
  check_refused(changed_file("{}"), kBad, "tokenizer_config.json: not valid JSON", "{");
  check_refused(changed_file("{}"), kBad, "add_bos_token", R"({"add_bos_token": "yes"})");
  check_refused(changed_file("{}"), kBad, "added_tokens_decoder.x",
                R"({"added_tokens_decoder": {"x": {"content": "<s>"}}})");
}

TEST_CASE("beside a tokenizer.json add_bos_token and add_eos_token mean nothing") {
  const std::string config =
      R"({"add_bos_token": true, "bos_token": {"content": "a"}, "add_eos_token": true,
          "eos_token": "b"})";
  const std::vector<int32_t> alone = {2};
  for (const char* const post_processor :
       {"null", R"({"type": "ByteLevel"})",
        R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}],
            "special_tokens": {}})"}) {
    const std::string json =
        changed_file(fmt::format(R"({{"post_processor": {}}})", post_processor));
    CHECK(load_contents("tokenizer.json", json, config)->encode("ab", true) == alone);
  }
  const std::string with_bos = changed_file(R"({"post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "a", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "special_tokens": {"a": {"id": "a", "ids": [0], "tokens": ["a"]}}}})");
  const std::vector<int32_t> with = {0, 2};
  CHECK(load_contents("tokenizer.json", with_bos, R"({"add_bos_token": false})")
            ->encode("ab", true) == with);
}

TEST_CASE("tokens that tokenizer_config.json alone names come behind all others") {
  const auto ids = [](const std::string& text, const std::string& config) {
    return load_contents("tokenizer.json", changed_file("{}"), config)->encode(text, false);
  };
  const auto plain = load_contents("tokenizer.json", changed_file("{}"), "");
  const int32_t next = plain->vocab_size();
  const auto a = plain->encode("a", false);
  const auto with = [&](int32_t id) {
    std::vector<int32_t> out = a;
    out.push_back(id);
    return out;
  };
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    const std::string config = fmt::format(R"({{"{}": ["<Y>", {{"content": "<X>"}}]}})", key);
    CHECK(ids("a<Y>", config) == with(next));
    CHECK(ids("a<X>", config) == with(next + 1));
    const auto tokenizer = load_contents("tokenizer.json", changed_file("{}"), config);
    CHECK(tokenizer->is_special(next));
    CHECK(!tokenizer->is_special(next + 1));
    CHECK(tokenizer->vocab_size() == next + 2);
  }
  const std::string named = R"({"extra_special_tokens": {"image_token": "<X>"}})";
  CHECK(ids("a<X>", named) == ids("a<X>", ""));
  const std::string split = R"({"additional_special_tokens": ["<Y>"],
      "split_special_tokens": true})";
  CHECK(ids("a<Y>", split) == ids("a<Y>", ""));
}

TEST_CASE("configuration decides about bos, eos and added tokens of a tokenizer.model") {
  const std::string model = read_file(golden_path("sentencepiece_bpe/tokenizer.model"));
  const std::vector<int32_t> the =
      load_contents("tokenizer.model", model, "")->encode("the", false);
  const auto encoded = [&](const std::string& config, const std::string& text) {
    return load_contents("tokenizer.model", model, config)->encode(text, true);
  };
  std::vector<int32_t> expected = the;
  CHECK(encoded(R"({"add_bos_token": false})", "the") == expected);
  expected.insert(expected.begin(), 1);
  CHECK(encoded("", "the") == expected);
  expected.push_back(2);
  CHECK(encoded(R"({"add_eos_token": true})", "the") == expected);
  const std::string added = R"({"add_bos_token": false, "added_tokens_decoder":
    {"9000": {"content": "<|x|>", "lstrip": true, "special": true}}})";
  expected = the;
  expected.push_back(9000);
  CHECK(encoded(added, "the  <|x|>") == expected);
  const auto tokenizer = load_contents("tokenizer.model", model, added);
  CHECK(tokenizer->vocab_size() == 9001);
  CHECK(tokenizer->is_special(9000));
  CHECK(tokenizer->token_of(9000) == "<|x|>");
}

TEST_CASE("damaged tokenizer.model files are refused") {
  const std::string model = read_file(golden_path("sentencepiece_bpe/tokenizer.model"));
  const auto load = [](const std::string& contents) {
    load_contents("tokenizer.model", contents, "");
  };
  for (const std::string& contents :
       {std::string(), std::string("not a model"), std::string(100, '\xFF'), model.substr(0, 100),
        model.substr(0, model.size() - 3)}) {
    const Refused got = refusal([&] { load(contents); });
    CHECK(got.code == Code::kInvalidArgument);
    CHECK(got.message.starts_with("test/tokenizer.model"));
  }
}

TEST_CASE("no truncation of a tokenizer.json crashes the reader") {
  const std::string file = read_file(golden_path("byte_level/tokenizer.json"));
  for (size_t size = 0; size < file.size(); size += 97) {
    const Refused got = refusal([&] { load_contents("tokenizer.json", file.substr(0, size), ""); });
    CHECK(got.code == Code::kInvalidArgument);
  }
}

// The files of a model, by name, as they stand in a folder.
std::unique_ptr<Tokenizer> load_files(const std::map<std::string, std::string>& files) {
  std::vector<EmbeddedFile> embedded;
  for (const auto& [name, text] : files) {
    embedded.push_back({name, std::as_bytes(std::span(text.data(), text.size()))});
  }
  return load_tokenizer(*open_embedded("test", std::move(embedded)));
}

TEST_CASE("a tokenizer.json that is not supported gives way to a tokenizer.model that is") {
  const std::string unknown =
      R"({"version": "1.0", "model": {"type": "PhraseLevel", "vocab": {"a": 0}}})";
  const std::string model = read_file(golden_path("sentencepiece_bpe") + "/tokenizer.model");
  const auto alone = load_files({{"tokenizer.model", model}});
  const auto instead = load_files({{"tokenizer.json", unknown}, {"tokenizer.model", model}});
  CHECK(instead->encode("Hello world", true) == alone->encode("Hello world", true));
  CHECK(instead->vocab_size() == alone->vocab_size());
  const Refused both = refusal([&] {
    load_files({{"tokenizer.json", unknown}, {"tokenizer.model", "rubbish"}});
  });
  CHECK(code_row(both.code).name == code_row(Code::kUnsupported).name);
  CHECK(both.message.find("test/tokenizer.json: model.type") != std::string::npos);
  CHECK(both.message.find("test/tokenizer.model: ") != std::string::npos);
  // What is broken is not passed over.
  const Refused broken = refusal([&] {
    load_files({{"tokenizer.json", "{"}, {"tokenizer.model", model}});
  });
  CHECK(broken.message.find("not valid JSON") != std::string::npos);
}

// As ChatGLM has it.
TEST_CASE("metaspace behind byte fallback is decoded as the library does") {
  const auto tokenizer = load_contents("tokenizer.json", changed_file(R"({
      "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"},
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true}]},
      "model": {"byte_fallback": true, "merges": [],
        "vocab": {"▁a": 3, "▁": 4, "<0xE2>": 5, "<0x82>": 6, "<0xAC>": 7, "<0x20>": 8}}})"),
                                       "");
  const auto decode = [&](const std::vector<int32_t>& ids) {
    return tokenizer->decode(ids, false);
  };
  CHECK(decode({3, 3, 0}) == "a aa");
  CHECK(decode({4, 5, 6, 7, 3}) == "\u20ac a");
  CHECK(decode({5, 6, 7, 3}) == "\u20ac a");
  CHECK(decode({5, 3}) == "\ufffd a");
  CHECK(decode({8, 3}) == "  a");
  std::string stream;
  for (const int32_t id : {3, 5, 6, 7, 4, 3}) tokenizer->append_bytes(id, stream.empty(), stream);
  CHECK(stream == "a\u20ac  a");
  CHECK(decode({3, 5, 6, 7, 4, 3}) == stream);
}

}  // namespace
}  // namespace tgi
