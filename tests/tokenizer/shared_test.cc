// Tokenizers of released models against the reference libraries; skipped without the shared data.
#include <algorithm>
#include <sstream>

#include "base/json.h"
#include "tests/shared_data.h"
#include "tests/tokenizer/golden.h"

namespace tgi {
namespace {

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  size_t at = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', at)) {
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  lines.push_back(text.substr(at));
  return lines;
}

TEST_CASE("released tokenizers give the reference's ids and texts") {
  const Json rows = parse_json(read_file(golden_path("shared.json")));
  REQUIRE(rows.size() == 8);
  const std::vector<std::string> cases = read_cases();
  const std::string text = "text/tinyshakespeare.txt";
  if (!has_shared_data(text)) return;
  const std::vector<std::string> lines = split_lines(read_file(shared_data_dir() + "/" + text));
  for (const Json& row : rows) {
    const auto folder = row["folder"].get<std::string>();
    if (!has_shared_data(folder)) continue;
    const auto tokenizer = load_folder(shared_data_dir() + "/" + folder);
    const bool sentencepiece =
        !std::filesystem::exists(shared_data_dir() + "/" + folder + "/tokenizer.json");
    INFO(folder);
    CHECK(encode_hashes(*tokenizer, cases, 5) == strings_of(row["cases"]));
    CHECK(encode_hashes(*tokenizer, lines, 500) == strings_of(row["tinyshakespeare"]));
    CHECK(decode_hashes(*tokenizer, 2000, 50, sentencepiece) == strings_of(row["decoded"]));
  }
}

TEST_CASE("released tokenizers give the ids that llama.cpp expects") {
  const std::pair<std::string, std::string> kPairs[] = {
      {"gpt-2", "gpt2"}, {"phi-3", "phi-3-mini"}, {"qwen2", "qwen2.5"}};
  for (const auto& [name, folder] : kPairs) {
    const std::string base = "tokenizers/expected/ggml-vocab-" + name + ".gguf";
    if (!has_shared_data(base + ".inp") || !has_shared_data("tokenizers/" + folder)) continue;
    const auto tokenizer = load_folder(shared_data_dir() + "/tokenizers/" + folder);
    const std::string input = read_file(shared_data_dir() + "/" + base + ".inp");
    const std::vector<std::string> expected = read_lines(shared_data_dir() + "/" + base + ".out");
    constexpr std::string_view kMark = "\n__ggml_vocab_test__\n";
    size_t index = 0;
    for (size_t at = 0; at < input.size(); ++index) {
      const size_t end = std::min(input.find(kMark, at), input.size());
      const std::string text = input.substr(at, end - at);
      at = end + kMark.size();
      REQUIRE(index < expected.size());
      std::istringstream numbers(expected[index]);
      const std::vector<int32_t> ids{std::istream_iterator<int32_t>(numbers), {}};
      INFO(name << ", case " << index << ": " << text);
      CHECK(tokenizer->encode(text, false) == ids);
    }
    CHECK(index == expected.size());
  }
}

}  // namespace
}  // namespace tgi
