// Folders with vocab.json and merges.txt and no tokenizer.json.
#include <map>
#include <span>
#include <string>

#include "base/error.h"
#include "base/files/file_source.h"
#include "tests/catch.h"
#include "tests/shared_data.h"
#include "tests/temp_folder.h"
#include "tests/tokenizer/golden.h"
#include "tests/tokenizer/same_ids.h"

namespace tgi {
namespace {

// The files of a folder, by name.
class Folder final : public FileSource {
 public:
  std::map<std::string, std::string> texts;

  std::optional<std::span<const std::byte>> find(const std::string& name) const override {
    const auto it = texts.find(name);
    if (it == texts.end()) return std::nullopt;
    return std::as_bytes(std::span(it->second));
  }
  std::string describe(const std::string& name) const override { return "folder/" + name; }
};

// The small model of bytes, as files of their own.
Folder golden_folder(const std::string& tokenizer_class) {
  const Json model = parse_json(read_file(golden_path("byte_level/tokenizer.json")))["model"];
  Folder out;
  out.texts["vocab.json"] = model["vocab"].dump();
  std::string merges = "#version: 0.2\n";
  for (const Json& merge : model["merges"]) {
    merges += merge.is_string() ? merge.get<std::string>()
                                : merge[0].get<std::string>() + " " + merge[1].get<std::string>();
    merges += "\n";
  }
  out.texts["merges.txt"] = merges;
  out.texts["tokenizer_config.json"] = Json{{"tokenizer_class", tokenizer_class}}.dump();
  return out;
}

// The small model with another normalizer and cuts, and without added tokens.
std::unique_ptr<Tokenizer> json_with(const Json& normalizer, const Json& pre_tokenizer) {
  Json document = parse_json(read_file(golden_path("byte_level/tokenizer.json")));
  document["added_tokens"] = Json::array();
  document["normalizer"] = normalizer;
  document["pre_tokenizer"] = pre_tokenizer;
  document["post_processor"] = nullptr;
  document["model"]["ignore_merges"] = false;
  return load_contents("tokenizer.json", document.dump(), "");
}

Json byte_level(bool add_prefix_space, bool cuts) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", true},
          {"use_regex", cuts}};
}

std::string refusal(const Folder& folder) {
  try {
    (void)load_tokenizer(folder);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("vocab.json and merges.txt give the ids of the tokenizer.json that they would be") {
  const auto expected = json_with(nullptr, byte_level(false, true));
  check_same_ids(*load_tokenizer(golden_folder("GPT2Tokenizer")), *expected);
  check_same_ids(*load_tokenizer(golden_folder("CodeGenTokenizerFast")), *expected);
  Folder by_type = golden_folder("");
  by_type.texts["tokenizer_config.json"] = "{}";
  for (const std::string type : {"gpt2", "gpt_neo", "opt"}) {
    by_type.texts["config.json"] = Json{{"model_type", type}}.dump();
    check_same_ids(*load_tokenizer(by_type), *expected);
  }
  by_type.texts["config.json"] = R"({"model_type": "llama"})";
  CHECK_THAT(refusal(by_type), Catch::Contains("names no tokenizer_class, and config.json has "
                                               "model_type \"llama\""));

  Folder with_space = golden_folder("GPT2Tokenizer");
  with_space.texts["tokenizer_config.json"] =
      R"({"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": true})";
  check_same_ids(*load_tokenizer(with_space), *json_with(nullptr, byte_level(true, true)));

  const Json split = {
      {"type", "Split"},
      {"pattern",
       {{"Regex",
         R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}}},
      {"behavior", "Isolated"},
      {"invert", false}};
  check_same_ids(
      *load_tokenizer(golden_folder("Qwen2Tokenizer")),
      *json_with({{"type", "NFC"}},
                 {{"type", "Sequence"}, {"pretokenizers", {split, byte_level(false, false)}}}));
}

TEST_CASE("added tokens and ends come from the files beside them") {
  Folder folder = golden_folder("GPT2Tokenizer");
  folder.texts["tokenizer_config.json"] =
      R"({"tokenizer_class": "GPT2Tokenizer", "bos_token": "<|start|>", "add_bos_token": true,
          "added_tokens_decoder": {"600": {"content": "<|start|>", "special": true}}})";
  folder.texts["added_tokens.json"] = R"({"<tool>": 601})";
  const auto tokenizer = load_tokenizer(folder);
  CHECK(tokenizer->encode("a<tool>", true).front() == 600);
  CHECK(tokenizer->encode("a<tool>", true).back() == 601);
  CHECK(tokenizer->is_special(600));
  CHECK(!tokenizer->is_special(601));
  CHECK(tokenizer->decode(std::vector<int32_t>{600, 601}, true) == "<tool>");
}

TEST_CASE("roberta's class has its tokens around a text") {
  Folder folder = golden_folder("RobertaTokenizer");
  CHECK_THAT(refusal(folder), Catch::Contains("vocab.json: expected sep_token \"</s>\" among its"));
  Json vocab = parse_json(folder.texts["vocab.json"]);
  const auto begin = static_cast<int32_t>(vocab.size());
  for (const char* const token : {"<s>", "</s>", "<unk>", "<mask>", "[SEP]"}) {
    vocab[token] = vocab.size();
  }
  folder.texts["vocab.json"] = vocab.dump();
  const auto plain = json_with(nullptr, byte_level(false, true));
  const std::vector<int32_t> inner = plain->encode("Hello  world", false);
  const auto around = [&](int32_t end) {
    std::vector<int32_t> out = inner;
    out.insert(out.begin(), begin);
    out.push_back(end);
    return out;
  };
  for (const char* const config : {R"({"tokenizer_class": "RobertaTokenizer"})",
                                   R"({"tokenizer_class": "RobertaTokenizerFast"})", "{}"}) {
    folder.texts["tokenizer_config.json"] = config;
    folder.texts["config.json"] = R"({"model_type": "roberta"})";
    const auto tokenizer = load_tokenizer(folder);
    CHECK(tokenizer->encode("Hello  world", true) == around(begin + 1));
    CHECK(tokenizer->encode("Hello  world", false) == inner);
    CHECK(tokenizer->is_special(begin));
    CHECK(tokenizer->encode("<mask>", false) == std::vector<int32_t>{begin + 3});
  }
  // What tokenizer_config.json does not say.
  folder.texts["special_tokens_map.json"] =
      R"({"sep_token": {"content": "[SEP]", "lstrip": false}, "cls_token": "<s>"})";
  CHECK(load_tokenizer(folder)->encode("Hello  world", true) == around(begin + 4));
  folder.texts["tokenizer_config.json"] = R"({"sep_token": "</s>"})";
  CHECK(load_tokenizer(folder)->encode("Hello  world", true) == around(begin + 1));
}

TEST_CASE("a vocab.json or a merges.txt that is none is refused with the place") {
  Folder folder = golden_folder("GPT2Tokenizer");
  folder.texts["merges.txt"] = "#version: 0.2\na b\nabc\n";
  CHECK_THAT(refusal(folder), Catch::Contains("folder/merges.txt") && Catch::Contains("line 3") &&
                                  Catch::Contains("abc"));
  folder.texts["merges.txt"] = "a b c\n";
  CHECK_THAT(refusal(folder), Catch::Contains("line 1"));
  folder = golden_folder("GPT2Tokenizer");
  folder.texts["vocab.json"] = R"({"a": 0, "b": -1})";
  CHECK_THAT(refusal(folder), Catch::Contains("folder/vocab.json") && Catch::Contains("\"b\""));
  folder.texts["vocab.json"] = "[]";
  CHECK_THAT(refusal(folder), Catch::Contains("expected an object"));
  folder.texts["vocab.json"] = R"({"a": 0)";
  CHECK_THAT(refusal(folder), Catch::Contains("folder/vocab.json"));
  folder = golden_folder("LlamaTokenizer");
  CHECK_THAT(refusal(folder),
             Catch::Contains("LlamaTokenizer") && Catch::Contains("Qwen2Tokenizer"));
  // One of the two is no tokenizer.
  folder.texts.erase("merges.txt");
  CHECK(!has_tokenizer(folder));
  CHECK_THAT(refusal(folder), Catch::Contains("merges.txt"));
}

TEST_CASE("gpt2's vocab.json and merges.txt are its tokenizer.json") {
  if (!has_shared_data("tokenizers/gpt2/vocab.json")) return;
  const std::string base = shared_data_dir() + "/tokenizers/gpt2/";
  Folder folder;
  for (const char* const name : {"vocab.json", "merges.txt"}) {
    folder.texts[name] = read_file(base + name);
  }
  folder.texts["config.json"] = R"({"model_type": "gpt2"})";
  const auto expected = load_contents("tokenizer.json", read_file(base + "tokenizer.json"), "");
  const auto tokenizer = load_tokenizer(folder);
  CHECK(tokenizer->vocab_size() == expected->vocab_size());
  check_same_ids(*tokenizer, *expected);
}

}  // namespace tgi
