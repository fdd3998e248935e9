#include "engine/text/text_stream.h"

#include <random>

#include "base/utf8.h"
#include "tests/catch.h"
#include "tests/text/list_tokenizer.h"

namespace tgi {
namespace {

struct Run {
  std::vector<std::string> parts;
  std::string text;
  bool stopped = false;
  std::string stop;
};

Run run(const std::vector<std::string>& pieces,
        const std::vector<std::string>& stop,
        bool include = true) {
  const ListTokenizer tokenizer(pieces);
  TextStream stream(tokenizer, stop, include);
  Run out;
  for (size_t i = 0; i < pieces.size() && !out.stopped; ++i) {
    std::string released;
    out.stopped = stream.push(static_cast<int32_t>(i), released);
    CHECK(is_valid_utf8(released));
    out.parts.push_back(released);
    out.text += released;
  }
  if (!out.stopped) stream.finish(out.text);
  if (stream.matched_stop() != nullptr) out.stop = *stream.matched_stop();
  return out;
}

}  // namespace

TEST_CASE("text stream releases whole characters only") {
  const Run emoji = run({"a", "\xF0\x9F", "\x98",
                         "\x80"
                         "b"},
                        {});
  CHECK(emoji.parts == std::vector<std::string>{"a", "", "",
                                                "\xF0\x9F\x98\x80"
                                                "b"});
  CHECK(run({"\xF0\x9F", "x"}, {}).text == "\uFFFDx");
  CHECK(run({"x", "\xF0\x9F"}, {}).text == "x\uFFFD");
  CHECK(run({"a", "<s>", "b"}, {}).text == "ab");
}

TEST_CASE(
    "text stream finds stop strings across and inside tokens and never leaks a held-back tail") {
  const Run across = run({"Hello ST", "O", "P you"}, {"STOP"}, false);
  CHECK(across.stopped);
  CHECK(across.parts == std::vector<std::string>{"Hello ", "", ""});
  CHECK(run({"Hello ST", "O", "P you"}, {"STOP"}, true).text == "Hello STOP");
  const Run near_miss = run({"ST", "OL"}, {"STOP"}, false);
  CHECK_FALSE(near_miss.stopped);
  CHECK(near_miss.parts == std::vector<std::string>{"", "STOL"});
  CHECK(run({"ab", "ST"}, {"STOP"}, false).text == "abST");
  CHECK(run({"aaab"}, {"aab"}, false).text == "a");
  const Run two = run({"one two three"}, {"three", "two"}, false);
  CHECK(two.text == "one ");
  CHECK(two.stop == "two");
  CHECK(run({"\xE2\x82", "\xAC!"}, {"€"}, false).text.empty());
}

TEST_CASE("text stream holds nothing back for a stop string that stays in the text") {
  const Run kept = run({"Hello ST", "O", "P you"}, {"STOP"}, true);
  CHECK(kept.stopped);
  CHECK(kept.parts == std::vector<std::string>{"Hello ST", "O", "P"});
  const Run overlapping = run({"a", "a", "ab", "a"}, {"aab"}, true);
  CHECK(overlapping.parts == std::vector<std::string>{"a", "a", "ab"});
  const Run inside = run({"x", "yz", "z"}, {"yz", "xyzz"}, true);
  CHECK(inside.parts == std::vector<std::string>{"x", "yz"});
  CHECK(inside.stop == "yz");
}

// What a reader of the whole text would make of it: everything up to the first stop string's end.
TEST_CASE("text stream with kept stop strings releases every whole character at once") {
  std::mt19937 random(11);
  const std::vector<std::string> stop = {"abab", "b€", "aac"};
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> pieces;
    std::string whole;
    for (auto count = random() % 12; count > 0; --count) {
      const char* const parts[] = {"a", "b", "c", "ab", "€", "aa", "\xE2\x82", "\xAC"};
      pieces.emplace_back(parts[random() % 8]);
    }
    const ListTokenizer tokenizer(pieces);
    TextStream stream(tokenizer, stop, true);
    std::string raw, released;
    bool stopped = false;
    for (size_t i = 0; i < pieces.size() && !stopped; ++i) {
      raw += pieces[i];
      drain_utf8(raw, false, whole);
      stopped = stream.push(static_cast<int32_t>(i), released);
      if (!stopped) CHECK(released == whole);
    }
    if (stopped) {
      REQUIRE(stream.matched_stop() != nullptr);
      CHECK(released.ends_with(*stream.matched_stop()));
      CHECK(whole.starts_with(released));
    } else {
      for (const std::string& each : stop) CHECK(whole.find(each) == std::string::npos);
    }
  }
}

TEST_CASE("text stream gives the same text however the bytes are cut into tokens") {
  std::mt19937 random(3);
  const std::vector<std::string> stop = {"abab", "b€", "aac"};
  for (int round = 0; round < 3000; ++round) {
    std::string bytes;
    for (auto length = random() % 24; length > 0; --length) {
      const char* const parts[] = {"a", "b", "c", "€", "\xF0\x9F\x98\x80", "\xF0", "\x80"};
      bytes += parts[random() % 7];
    }
    const bool include = random() % 2 == 0;
    const Run whole = run({bytes}, stop, include);
    std::vector<std::string> pieces;
    for (size_t at = 0; at < bytes.size();) {
      const size_t length = random() % 4 + 1;
      pieces.push_back(bytes.substr(at, length));
      at += length;
    }
    const Run cut = run(pieces, stop, include);
    CHECK(cut.text == whole.text);
    CHECK(cut.stop == whole.stop);
  }
}

}  // namespace tgi
