#include "engine/text/text_stream.h"

#include <catch2/catch.hpp>
#include <random>

#include "base/utf8.h"

namespace tgi {
namespace {

// A token for each string of a list.
class ListTokenizer final : public Tokenizer {
 public:
  explicit ListTokenizer(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {}
  std::vector<int32_t> encode(std::string_view /*text*/, bool /*add_special*/) const override {
    return {};
  }
  void append_bytes(int32_t id, bool /*at_start*/, std::string& out) const override {
    out += pieces_[static_cast<size_t>(id)];
  }
  std::string decode(std::span<const int32_t> /*ids*/, bool /*skip_special*/) const override {
    return "";
  }
  bool is_special(int32_t id) const override { return pieces_[static_cast<size_t>(id)] == "<s>"; }
  std::optional<int32_t> id_of(std::string_view /*token*/) const override { return std::nullopt; }
  std::string token_of(int32_t /*id*/) const override { return ""; }
  int32_t vocab_size() const override { return static_cast<int32_t>(pieces_.size()); }

 private:
  std::vector<std::string> pieces_;
};

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
