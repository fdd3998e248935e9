// Tokenizers of GGUF files against llama.cpp and against the folders that they were made from: see
// scripts/golden/make_gguf_tokenizers.
#include <algorithm>
#include <set>

#include "base/files/mapped_file.h"
#include "base/json.h"
#include "tests/gguf/gguf_tokenizer.h"
#include "tests/gguf/metadata_builder.h"
#include "tests/shared_data.h"
#include "tests/tokenizer/golden.h"

namespace tgi {
namespace {

std::string gguf_golden(const std::string& name) {
  return std::string(TGI_SOURCE_DIR) + "/tests/gguf/golden/" + name;
}

// A file and its metadata, which points into it.
struct OpenGguf {
  explicit OpenGguf(const std::string& path)
      : file(path), metadata(parse_gguf(file.bytes(), path).metadata) {}

  MappedFile file;
  GgufMetadata metadata;
};

Json expected() {
  return parse_json(read_file(gguf_golden("expected.json")));
}

std::vector<std::string> kept_cases(const Json& golden) {
  const auto skipped = golden["skipped"].get<std::set<size_t>>();
  std::vector<std::string> out;
  const std::vector<std::string> cases = read_cases();
  for (size_t i = 0; i < cases.size(); ++i) {
    if (!skipped.contains(i)) out.push_back(cases[i]);
  }
  return out;
}

void check_same(const Tokenizer& got, const Tokenizer& wanted, bool without_special) {
  for (const std::string& text : read_cases()) {
    INFO(text);
    for (const bool add_special : {true, false}) {
      CHECK(got.encode(text, add_special) == wanted.encode(text, add_special));
    }
  }
  for (const std::vector<int32_t>& ids : random_ids(wanted, 300, without_special)) {
    CHECK(got.decode(ids, false) == wanted.decode(ids, false));
    CHECK(got.decode(ids, true) == wanted.decode(ids, true));
  }
}

// A folder's tokenizer.json without what tokens do to the white space beside them, for which GGUF
// has no place.
Json without_strips(const std::string& folder) {
  Json document = parse_json(read_file(golden_path(folder + "/tokenizer.json")));
  for (Json& token : document["added_tokens"]) token["lstrip"] = token["rstrip"] = false;
  return document;
}

TEST_CASE("scores of a GGUF file give llama.cpp's ids") {
  const Json golden = expected();
  const OpenGguf file(gguf_golden("llama.gguf"));
  const auto tokenizer = load_gguf_tokenizer(file.metadata);
  CHECK(encode_hashes(*tokenizer, kept_cases(golden), 50) == strings_of(golden["llama"]));
}

TEST_CASE("every name of a pre-tokenizer cuts texts as the tokenizer does that it stands for") {
  const Json golden = expected();
  const std::vector<std::string> cases = kept_cases(golden);
  const OpenGguf file(gguf_golden("byte_level.gguf"));
  size_t num_names = 0;
  for (const Json& group : golden["pre"]) {
    for (const Json& name : group["names"]) {
      INFO(name);
      MetadataBuilder metadata(file.metadata);
      metadata.set("tokenizer.ggml.pre", name.get<std::string>());
      const auto tokenizer = load_gguf_tokenizer(metadata.build());
      CHECK(encode_hashes(*tokenizer, cases, 50) == strings_of(group["hashes"]));
      ++num_names;
    }
  }
  CHECK(num_names > 80);
}

TEST_CASE("turns of a GGUF file end where they end in llama.cpp") {
  const Json ends = expected()["ends"];
  REQUIRE(ends.size() == 3);
  for (const auto& [name, ids] : ends.items()) {
    INFO(name);
    const OpenGguf file(gguf_golden(name + ".gguf"));
    const auto files = gguf::tokenizer_files(file.metadata);
    CHECK(parse_json(files.at("generation_config.json"))["eos_token_id"] == ids);
  }
}

// Of a folder with a tokenizer.model. Files do not tell tokens that were added from those that the
// user of SentencePiece defined; both are found first, as added ones are.
std::unique_ptr<Tokenizer> load_pieces(const std::string& folder) {
  return load_contents("tokenizer.model", read_file(golden_path(folder + "/tokenizer.model")),
                       R"({"added_tokens_decoder": {"5": {"content": "<tool_call>"}}})");
}

TEST_CASE("a GGUF file of SentencePiece's BPE is the tokenizer.model that it was made from") {
  const OpenGguf file(gguf_golden("llama.gguf"));
  const auto folder = load_pieces("sentencepiece_bpe");
  check_same(*load_gguf_tokenizer(file.metadata), *folder, true);
}

TEST_CASE("a GGUF file of a Unigram model has the ids of the tokenizer.model it was made from") {
  const OpenGguf file(gguf_golden("t5.gguf"));
  const auto wanted = load_pieces("sentencepiece_unigram");
  const auto got = load_gguf_tokenizer(file.metadata);
  for (const std::string& text : read_cases()) {
    // What spaces become: SentencePiece takes it away at the end of a text, a tokenizer.json
    // doesn't.
    if (text.find("\u2581") != std::string::npos) continue;
    INFO(text);
    CHECK(got->encode(text, true) == wanted->encode(text, true));
  }
}

TEST_CASE("a GGUF file of a Unigram model is the tokenizer.json that it was made from") {
  const OpenGguf file(gguf_golden("unigram.gguf"));
  const auto folder = load_contents("tokenizer.json", without_strips("unigram").dump(), "");
  const auto tokenizer = load_gguf_tokenizer(file.metadata);
  check_same(*tokenizer, *folder, false);
  const std::vector<std::string> cases = read_cases();
  CHECK(pairs_hash(*tokenizer, cases) == pairs_hash(*folder, cases));
}

TEST_CASE("a GGUF file of WordPiece is the tokenizer.json that it was made from") {
  const OpenGguf file(gguf_golden("bert.gguf"));
  const auto folder = load_contents("tokenizer.json", without_strips("wordpiece").dump(), "");
  const auto tokenizer = load_gguf_tokenizer(file.metadata);
  check_same(*tokenizer, *folder, false);
  const std::vector<std::string> cases = read_cases();
  CHECK(pairs_hash(*tokenizer, cases) == pairs_hash(*folder, cases));
}

TEST_CASE("a GGUF file of merges over text is the tokenizer.json that it was made from") {
  const OpenGguf file(gguf_golden("gemma4.gguf"));
  Json document = without_strips("spm_bpe");
  document["normalizer"] = document["normalizer"]["normalizers"][1];  // no space before the text
  document["decoder"]["decoders"].erase(3);                           // nor behind it
  document["post_processor"]["single"].erase(2);                      // nor a token
  const auto folder = load_contents("tokenizer.json", document.dump(), "");
  check_same(*load_gguf_tokenizer(file.metadata), *folder, false);
}

TEST_CASE("a published GGUF file has the ids of the folder it was made from") {
  const std::string folder = "weights/stories260K";
  if (!has_shared_data(folder)) return;
  const std::string path = shared_data_dir() + "/" + folder;
  const OpenGguf file(path + "/stories260K.f32.gguf");
  const auto wanted = load_folder(path + "/hf");
  const auto got = load_gguf_tokenizer(file.metadata);
  for (const std::string& text : read_cases()) {
    INFO(text);
    CHECK(got->encode(text, true) == wanted->encode(text, true));
  }
}

}  // namespace
}  // namespace tgi
