// Tokenizers of released models, put into the metadata of a GGUF file as llama.cpp's converter does
// it; skipped without the shared data.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>

#include "base/files/mapped_file.h"
#include "base/json.h"
#include "tests/gguf/gguf_tokenizer.h"
#include "tests/gguf/metadata_builder.h"
#include "tests/shared_data.h"
#include "tests/tokenizer/golden.h"

namespace tgi {
namespace {

struct Released {
  const char* folder;
  const char* kind;
  const char* pre;
  const char* cases;  // of llama.cpp, or ""
};
constexpr Released kReleased[] = {
    {"gpt2", "gpt2", "gpt-2", "gpt-2"},
    {"qwen2.5", "gpt2", "qwen2", "qwen2"},
    {"gpt-oss", "gpt2", "gpt-4o", ""},
    {"phi-3-mini", "llama", "default", "phi-3"},
};

bool is_byte_token(const std::string& token) {
  return token.size() == 6 && token.starts_with("<0x") && token.ends_with('>');
}

MetadataBuilder to_gguf(const Json& document, const Released& released) {
  const Json& vocab = document["model"]["vocab"];
  const Json& added = document["added_tokens"];
  size_t count = 0;
  for (const auto& [token, id] : vocab.items()) count = std::max(count, id.get<size_t>() + 1);
  for (const Json& token : added) count = std::max(count, token["id"].get<size_t>() + 1);
  std::vector<std::string> tokens(count);
  std::vector<int32_t> types(count, kUnused);
  for (size_t id = 0; id < count; ++id) tokens[id] = fmt::format("[PAD{}]", id);
  for (const auto& [token, id] : vocab.items()) {
    tokens[id.get<size_t>()] = token;
    types[id.get<size_t>()] = is_byte_token(token) ? kByte : kNormal;
  }
  for (const Json& token : added) {
    tokens[token["id"].get<size_t>()] = token["content"].get<std::string>();
    types[token["id"].get<size_t>()] = token["special"].get<bool>() ? kControl : kUserDefined;
  }
  MetadataBuilder metadata;
  metadata.set("general.architecture", "llama")
      .set("general.name", released.folder)
      .set("tokenizer.ggml.model", released.kind)
      .set("tokenizer.ggml.pre", released.pre)
      .set("tokenizer.ggml.tokens", tokens)
      .set("tokenizer.ggml.token_type", types)
      .set("tokenizer.ggml.add_bos_token", false);
  std::vector<std::string> merges;
  // Merges are sorted by the scores of what they make, which so can be told from the order.
  std::vector<float> scores(count);
  for (const Json& merge : document["model"]["merges"]) {
    const std::string line = merge.is_string()
                                 ? merge.get<std::string>()
                                 : merge[0].get<std::string>() + " " + merge[1].get<std::string>();
    const size_t space = line.find(' ', 1);
    const auto made = vocab.at(line.substr(0, space) + line.substr(space + 1)).get<size_t>();
    if (scores[made] == 0) scores[made] = -1 - static_cast<float>(merges.size());
    merges.push_back(line);
  }
  if (released.kind == std::string("llama")) {
    metadata.set("tokenizer.ggml.scores", scores);
    return metadata;
  }
  metadata.set("tokenizer.ggml.merges", merges);
  return metadata;
}

std::unique_ptr<Tokenizer> load_released(const Released& released, const std::string& folder) {
  const Json document = parse_json(read_file(folder + "/tokenizer.json"));
  return load_gguf_tokenizer(to_gguf(document, released).build());
}

TEST_CASE("metadata of released models give the ids of their folders") {
  for (const Released& released : kReleased) {
    const std::string folder = std::string("tokenizers/") + released.folder;
    if (!has_shared_data(folder)) continue;
    const auto wanted = load_folder(shared_data_dir() + "/" + folder);
    const auto got = load_released(released, shared_data_dir() + "/" + folder);
    for (const std::string& text : read_cases()) {
      INFO(folder << ": " << text);
      CHECK(got->encode(text, false) == wanted->encode(text, false));
    }
  }
}

// `base`.inp and `base`.out: texts, and the ids of each in a line.
void check_expected(const Tokenizer& tokenizer, const std::string& base) {
  constexpr std::string_view kMark = "\n__ggml_vocab_test__\n";
  const std::string input = read_file(base + ".inp");
  const std::vector<std::string> expected = read_lines(base + ".out");
  size_t index = 0;
  for (size_t at = 0; at < input.size(); ++index) {
    const size_t end = std::min(input.find(kMark, at), input.size());
    const std::string text = input.substr(at, end - at);
    at = end + kMark.size();
    REQUIRE(index < expected.size());
    std::istringstream numbers(expected[index]);
    const std::vector<int32_t> ids{std::istream_iterator<int32_t>(numbers), {}};
    INFO(base << ", case " << index << ": " << text);
    CHECK(tokenizer.encode(text, false) == ids);
  }
  CHECK(index == expected.size());
}

TEST_CASE("metadata of released models give the ids that llama.cpp expects") {
  for (const Released& released : kReleased) {
    const std::string folder = std::string("tokenizers/") + released.folder;
    const std::string base = fmt::format("tokenizers/expected/ggml-vocab-{}.gguf", released.cases);
    if (released.cases[0] == '\0') continue;
    if (!has_shared_data(base + ".inp") || !has_shared_data(folder)) continue;
    const auto tokenizer = load_released(released, shared_data_dir() + "/" + folder);
    check_expected(*tokenizer, shared_data_dir() + "/" + base);
  }
}

// TGI_GGUF_VOCABULARIES: the folder models/ of llama.cpp's sources. Three cases of qwen35 differ:
// letters and their marks, which llama.cpp does not compose as the tokenizer.json does.
TEST_CASE("vocabularies of llama.cpp give the ids that it expects", "[.]") {
  const char* const folder = std::getenv("TGI_GGUF_VOCABULARIES");
  REQUIRE(folder != nullptr);
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (!path.ends_with(".gguf") || !std::filesystem::exists(path + ".inp")) continue;
    const MappedFile file(path);
    const auto tokenizer = load_gguf_tokenizer(parse_gguf(file.bytes(), path).metadata);
    check_expected(*tokenizer, path);
    ++count;
  }
  CHECK(count >= 15);
}

}  // namespace
}  // namespace tgi
