// Long texts of the kinds that cost a careless tokenizer quadratic time. Each takes well below a
// second when time grows with the size, and many minutes when it grows with the square.
#include <chrono>

#include "engine/text/token_spans.h"
#include "engine/text/unicode/unicode.h"
#include "tests/catch.h"
#include "tests/tokenizer/golden.h"

namespace tgi {
namespace {

constexpr size_t kSize = kUnderSanitizers ? 1 << 17 : 1 << 20;
constexpr double kMostSeconds = 20;

std::string repeated(std::string_view unit) {
  std::string text;
  while (text.size() < kSize) text += unit;
  return text;
}

// Returns how many ids the text has.
size_t check_fast(const Tokenizer& tokenizer, const std::string& text) {
  const auto start = std::chrono::steady_clock::now();
  const size_t count = tokenizer.encode(text, true).size();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  CHECK(taken.count() < kMostSeconds);
  return count;
}

const std::string kMarks = "\u0301\u0323\u0345\u0334";  // of falling and rising classes
const std::string kSplitMarks = "\u0F73";               // becomes two marks, of rising classes

std::vector<std::string> long_texts() {
  return {repeated("a"),
          repeated("the"),
          repeated("the "),
          repeated("\u4E2D"),
          repeated(" "),
          repeated("\U0001F468\u200D"),
          repeated("\u1100\u1161\u11A8"),
          repeated("\u0915\u094D"),
          repeated("\u0600"),
          "e" + repeated(kMarks),
          "e" + repeated(kSplitMarks),
          repeated("<mask>"),
          repeated("  <mas"),
          repeated("\u2603"),
          repeated(".'!")};
}

TEST_CASE("wordpiece takes linear time") {
  const auto bert = load_folder(golden_path("wordpiece"));
  // Words of any length, and no normalizer that takes something away.
  const auto unlimited = load_contents(
      "tokenizer.json",
      changed_golden("wordpiece", R"({"model": {"max_input_chars_per_word": 100000000},
                                                       "normalizer": null})"),
      "");
  for (const std::string& text : long_texts()) {
    INFO(text.substr(0, 12));
    check_fast(*bert, text);
    check_fast(*unlimited, text);
  }
  CHECK(check_fast(*bert, repeated("a")) == 3);
  CHECK(check_fast(*unlimited, repeated("a")) > kSize / 20);
}

TEST_CASE("unigram takes linear time") {
  const auto tokenizer = load_folder(golden_path("unigram"));
  const auto whole = load_contents(
      "tokenizer.json",
      changed_golden("unigram", R"({"pre_tokenizer": null, "model": {"byte_fallback": true},
        "normalizer": {"type": "Sequence", "precompiled_charsmap": null, "normalizers":
          [{"type": "Nmt"}, {"type": "NFKC"}]}})"),
      "");
  for (const std::string& text : long_texts()) {
    INFO(text.substr(0, 12));
    check_fast(*tokenizer, text);
    check_fast(*whole, text);
  }
  CHECK(check_fast(*tokenizer, repeated("\u2603")) == 4);  // <s>, a space, one <unk>, </s>
  CHECK(check_fast(*whole, repeated("\u2603")) > kSize);   // its bytes
}

TEST_CASE("spans of long texts take linear time") {
  const auto start = std::chrono::steady_clock::now();
  for (const std::string name : {"wordpiece", "unigram"}) {
    const auto tokenizer = load_folder(golden_path(name));
    const auto* spans = dynamic_cast<const SpanTokenizer*>(tokenizer.get());
    REQUIRE(spans != nullptr);
    for (const std::string& text : {repeated("the "), "e" + repeated(kMarks), repeated("\u2603")}) {
      CHECK(spans->spans(text, true).size() == tokenizer->encode(text, true).size());
    }
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  CHECK(taken.count() < kMostSeconds);
}

TEST_CASE("marks are put in order in linear time, as in short texts") {
  const std::string marks = kMarks + kMarks;
  for (const NormalForm form : {NormalForm::kNfc, NormalForm::kNfd}) {
    CHECK(normalize("e" + marks, form) ==
          normalize("e\u0334\u0334\u0323\u0323\u0301\u0301\u0345\u0345", form));
  }
  const std::string many = normalize("e" + repeated(kMarks), NormalForm::kNfd);
  CHECK(many.substr(1, 2) == "\u0334");
  CHECK(many.substr(many.size() - 2) == "\u0345");
}

}  // namespace
}  // namespace tgi
