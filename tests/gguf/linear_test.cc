// Long texts of the kinds that cost a careless pattern quadratic time: each takes well below a
// second when time grows with the size, and minutes when it grows with the square.
#include <chrono>

#include "base/files/mapped_file.h"
#include "base/json.h"
#include "tests/gguf/gguf_tokenizer.h"
#include "tests/gguf/metadata_builder.h"
#include "tests/tokenizer/golden.h"

namespace tgi {
namespace {

constexpr size_t kLongTextSize = 1 << 17;
constexpr double kMostSecondsEach = 10;

std::string long_text_of(std::string_view unit) {
  std::string text;
  while (text.size() < kLongTextSize) text += unit;
  return text;
}

TEST_CASE("every name of a pre-tokenizer cuts long texts in a time that grows with their size") {
  const std::string folder = std::string(TGI_SOURCE_DIR) + "/tests/gguf/golden/";
  const MappedFile file(folder + "byte_level.gguf");
  const GgufMetadata of_file = parse_gguf(file.bytes(), "byte_level.gguf").metadata;
  const Json golden = parse_json(read_file(folder + "expected.json"));
  for (const Json& group : golden["pre"]) {
    const auto name = group["names"][0].get<std::string>();
    const auto tokenizer =
        load_gguf_tokenizer(MetadataBuilder(of_file).set("tokenizer.ggml.pre", name).build());
    for (const char* unit :
         {"7", "7a", "a", " ", "\n", "!", "' ", "\u4E2D", "a\u0301", "\u00BD8"}) {
      INFO(name << ": " << unit);
      const std::string text = long_text_of(unit);
      const auto start = std::chrono::steady_clock::now();
      CHECK(!tokenizer->encode(text, true).empty());
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      CHECK(taken.count() < kMostSecondsEach);
    }
  }
}

}  // namespace
}  // namespace tgi
