// Tokenizers of folders, written into metadata and read again: the ids are those of the folder.
#include <span>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "engine/gguf/pre_tokenizer_names.h"
#include "engine/gguf/tokenizer_fields.h"
#include "engine/text/tokenizer_parts.h"
#include "tests/gguf/gguf_tokenizer.h"
#include "tests/shared_data.h"
#include "tests/temp_folder.h"
#include "tests/tokenizer/golden.h"

namespace tgi {
namespace {

struct Written {
  GgufFields fields{};
  std::unique_ptr<Tokenizer> before{};
  std::unique_ptr<Tokenizer> after{};
};

Written write(const FileSource& files, std::vector<int32_t> end_ids = {}) {
  Written out;
  out.before = load_tokenizer(files);
  gguf::put_tokenizer({.files = files,
                       .tokenizer = *out.before,
                       .vocab_size = out.before->vocab_size(),
                       .end_ids = std::move(end_ids)},
                      out.fields);
  out.after = load_gguf_tokenizer(out.fields.metadata());
  return out;
}

std::string refusal(const FileSource& files, std::vector<int32_t> end_ids = {}) {
  try {
    (void)write(files, std::move(end_ids));
  } catch (const Error& error) {
    CHECK(error.code() == Code::kUnsupported);
    return error.what();
  }
  return "";
}

// What tokens do to the spaces beside them has no place in files: such texts are left out.
void check_same(const Written& written) {
  size_t count = 0;
  for (const std::string& text : read_cases()) {
    if (text.find('<') != std::string::npos) continue;
    INFO(text);
    CHECK(written.after->encode(text, true) == written.before->encode(text, true));
    CHECK(written.after->encode(text, false) == written.before->encode(text, false));
    ++count;
  }
  CHECK(count > 100);
  for (int32_t id = 0; id < written.before->vocab_size(); id += 7) {
    // A space as a byte: of folders the first space of a text goes, of files that of a piece does.
    if (written.before->token_of(id) == "<0x20>") continue;
    CHECK(written.after->decode(std::vector<int32_t>{id}, false) ==
          written.before->decode(std::vector<int32_t>{id}, false));
  }
}

std::unique_ptr<FileSource> golden_folder(const std::string& name) {
  return open_folder(golden_path(name));
}

// Of bytes, without a token that is found as a word of its own only: files can't say that.
std::unique_ptr<FileSource> without_whole_words() {
  static const std::string text = [] {
    Json tree = parse_json(read_file(golden_path("byte_level/tokenizer.json")));
    for (Json& token : tree["added_tokens"]) token["single_word"] = false;
    return tree.dump();
  }();
  return open_embedded("test", {{"tokenizer.json", std::as_bytes(std::span(text))}});
}

}  // namespace

TEST_CASE("a tokenizer.json of bytes and its name among pre-tokenizers are written") {
  const Written written = write(*without_whole_words());
  CHECK(written.fields.metadata().text("tokenizer.ggml.model") == "gpt2");
  CHECK(!written.fields.has("tokenizer.ggml.scores"));
  check_same(written);
}

TEST_CASE("a tokenizer.json that was a SentencePiece model is written with scores") {
  const Written written = write(*golden_folder("spm_bpe"));
  CHECK(written.fields.metadata().text("tokenizer.ggml.model") == "llama");
  CHECK(!written.fields.has("tokenizer.ggml.merges"));
  check_same(written);
}

TEST_CASE("a tokenizer.model is written as it is") {
  const Written written = write(*golden_folder("sentencepiece_bpe"));
  CHECK(written.fields.metadata().text("tokenizer.ggml.model") == "llama");
  check_same(written);
}

TEST_CASE("a tekken.json is written with merges") {
  const Written written = write(*golden_folder("ranks"));
  CHECK(written.fields.metadata().text("tokenizer.ggml.model") == "gpt2");
  CHECK(written.fields.metadata().text("tokenizer.ggml.pre") == "tekken");
  CHECK(written.after->encode("[INST]a", true) == written.before->encode("[INST]a", true));
  check_same(written);
}

TEST_CASE("files of ranks are written where GGUF files have a name for what reads them") {
  const std::string ranks = read_file(golden_path("ranks/ranks.tiktoken"));
  const auto folder_of = [&](const std::string& config) {
    return open_embedded("test", {{"tokenizer.model", std::as_bytes(std::span(ranks))},
                                  {"tokenizer_config.json", std::as_bytes(std::span(config))}});
  };
  const std::string llama3 = R"({"tokenizer_class": "PreTrainedTokenizerFast",
    "added_tokens_decoder": {"1100": {"content": "<|begin_of_text|>", "special": true},
                             "1101": {"content": "<|end_of_text|>", "special": true}}})";
  const Written written = write(*folder_of(llama3), {1101});
  CHECK(written.fields.metadata().text("tokenizer.ggml.pre") == "llama3");
  check_same(written);
  const std::string glm = R"({"tokenizer_class": "ChatGLM4Tokenizer",
    "added_tokens_decoder": {"1100": {"content": "[gMASK]", "special": true},
                             "1101": {"content": "<sop>", "special": true}}})";
  CHECK_THAT(refusal(*folder_of(glm)), Catch::Contains("it puts 2 tokens around a text"));
  const std::string qwen = R"({"tokenizer_class": "QWenTokenizer"})";
  CHECK_THAT(refusal(*folder_of(qwen)), Catch::Contains("know its cuts as \"qwen2\""));
}

TEST_CASE("Kimi's code cuts texts as the pre-tokenizer of GGUF files that has its name") {
  const std::string ranks = read_file(golden_path("ranks/ranks.tiktoken"));
  const std::string config = R"({"tokenizer_class": "TikTokenTokenizer",
    "added_tokens_decoder": {"1100": {"content": "[EOS]", "special": true}}})";
  const auto files =
      open_embedded("test", {{"tiktoken.model", std::as_bytes(std::span(ranks))},
                             {"tokenizer_config.json", std::as_bytes(std::span(config))}});
  Json tree = read_tokenizer_parts(*files).tree;
  tree["model"]["ignore_merges"] = false;
  CHECK(gguf::pre_tokenizer_name(tree) == "kimi-k2");
}

TEST_CASE("what GGUF files can't say of a tokenizer is refused by name") {
  CHECK_THAT(refusal(*golden_folder("unigram")), Catch::Contains("\"Unigram\""));
  CHECK_THAT(refusal(*golden_folder("wordpiece")), Catch::Contains("\"WordPiece\""));
  CHECK_THAT(refusal(*golden_folder("sentencepiece_unigram")), Catch::Contains("Unigram"));
  CHECK_THAT(refusal(*golden_folder("byte_level")), Catch::Contains("of the text"));
  CHECK_THAT(refusal(*without_whole_words(), {500, 501, 502, 503, 504}),
             Catch::Contains("all tokens that end an answer"));
  const TempFolder empty;
  CHECK_THROWS(write(*open_folder(empty.path())));
}

TEST_CASE("a cut that no name stands for is refused, with the cut") {
  Json tree = {{"normalizer", nullptr},
               {"model", {{"type", "BPE"}, {"ignore_merges", false}}},
               {"pre_tokenizer",
                {{"type", "Sequence"},
                 {"pretokenizers",
                  {{{"type", "Split"},
                    {"pattern", {{"Regex", "[ab]+|[^ab]"}}},
                    {"behavior", "Isolated"},
                    {"invert", false}},
                   {{"type", "ByteLevel"},
                    {"add_prefix_space", false},
                    {"trim_offsets", true},
                    {"use_regex", false}}}}}}};
  CHECK_THROWS_WITH(gguf::pre_tokenizer_name(tree), Catch::Contains("[ab]+"));
  tree["pre_tokenizer"] = {{"type", "ByteLevel"},
                           {"add_prefix_space", false},
                           {"trim_offsets", true},
                           {"use_regex", true}};
  CHECK(gguf::pre_tokenizer_name(tree) == "gpt-2");
  tree["normalizer"] = {{"type", "Lowercase"}};
  CHECK_THROWS_WITH(gguf::pre_tokenizer_name(tree), Catch::Contains("Lowercase"));
}

TEST_CASE("released tokenizers are written and read again") {
  struct Released {
    const char* folder;
    const char* kind;
    const char* pre;
  };
  for (const Released& one :
       {Released{"gpt2", "gpt2", "gpt-2"}, Released{"qwen2.5", "gpt2", "qwen2"},
        Released{"gpt-oss", "gpt2", "gpt-4o"}, Released{"phi-3-mini", "llama", "default"},
        Released{"mistral-v1", "llama", "default"}, Released{"mistral-v3", "llama", "default"},
        Released{"open_llama", "llama", "default"}}) {
    const std::string name = std::string("tokenizers/") + one.folder;
    if (!has_shared_data(name)) continue;
    INFO(name);
    try {
      const Written written = write(*open_folder(shared_data_dir() + "/" + name));
      CHECK(written.fields.metadata().text("tokenizer.ggml.model") == one.kind);
      CHECK(written.fields.metadata().text("tokenizer.ggml.pre") == one.pre);
      check_same(written);
    } catch (const Error& error) {
      FAIL_CHECK(error.what());
    }
  }
}

}  // namespace tgi
