#include "cmd/download/torch/pickle.h"

#include "base/error.h"
#include "tests/catch.h"

namespace tgi::download {
namespace {

using Catch::Contains;
using Kind = PickleValue::Kind;

Pickle read(const std::string& text, const PickleLimits& limits = {}) {
  static constexpr std::array<std::string_view, 1> kAllowed = {"torch.Size"};
  return read_pickle(std::as_bytes(std::span(text)), "test", kAllowed, limits);
}

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out += static_cast<char>(value);
  return out;
}

}  // namespace

TEST_CASE("numbers of every length and sign") {
  const auto number = [](const std::string& text) { return read(text + ".").root().integer; };
  CHECK(number("K\xff") == 255);
  CHECK(number(bytes({'M', 1, 2})) == 513);
  CHECK(number(bytes({'J', 0xff, 0xff, 0xff, 0xff})) == -1);
  CHECK(number(bytes({0x8a, 0})) == 0);
  CHECK(number(bytes({0x8a, 1, 0x80})) == -128);
  CHECK(number(bytes({0x8a, 5, 0, 0, 0, 0, 1})) == int64_t{1} << 32);
  CHECK(number(bytes({0x8a, 8, 0, 0, 0, 0, 0, 0, 0, 0x80})) == INT64_MIN);
  CHECK_THROWS_WITH(read(bytes({0x8a, 9, 0, 0, 0, 0, 0, 0, 0, 0, 1, '.'})), Contains("64 bits"));
  CHECK(read(bytes({'G', 0x3f, 0xf8, 0, 0, 0, 0, 0, 0, '.'})).root().real == 1.5);
}

TEST_CASE("dicts, lists and tuples hold what was put into them") {
  const Pickle pickle = read("}(U\1aK\1U\1b](K\2K\3eu.");
  const PickleValue& root = pickle.root();
  REQUIRE(root.kind == Kind::kDict);
  REQUIRE(root.items.size() == 4);
  CHECK(pickle[root.items[0]].text == "a");
  CHECK(pickle[root.items[1]].integer == 1);
  CHECK(pickle[root.items[3]].kind == Kind::kList);
  CHECK(pickle[pickle[root.items[3]].items[1]].integer == 3);
}

TEST_CASE("a call is kept, not made, and an OrderedDict is a dict") {
  const Pickle call = read("ctorch\nSize\n(K\1t\x85R.");
  CHECK(call.root().kind == Kind::kCall);
  CHECK(call[call.root().items[0]].text == "torch.Size");
  const Pickle dict = read(
      "ccollections\nOrderedDict\n](U\1aK\7\x86"
      "e\x85R}b.");
  CHECK(dict.root().kind == Kind::kDict);
  CHECK(dict[dict.root().items[1]].integer == 7);
}

TEST_CASE("a value may contain itself without end of it") {
  const Pickle pickle = read("]q\1h\1a.");
  CHECK(&pickle[pickle.root().items[0]] == &pickle.root());
}

TEST_CASE("malformed pickles are refused") {
  for (const std::string text : {"",
                                 ".",
                                 "K",
                                 "K\1",
                                 "(.",
                                 "t.",
                                 "0",
                                 "K\1K\2s.",
                                 "}K\1u.",
                                 "](K\1u.",
                                 "h\5.",
                                 "(K\1h\1.",
                                 "ctorch\n",
                                 "K\1(0.",
                                 "}(K\1u.",
                                 "\x80\x07.",
                                 "X\xff\xff\xff\xff.",
                                 "K\1)R.",
                                 "NNb.",
                                 "\x8d\xff\xff\xff\xff\xff\xff\xff\xff."}) {
    INFO(text);
    CHECK_THROWS_AS(read(text), Error);
  }
}

TEST_CASE("names that are not on the list and operations that are not needed are refused by name") {
  CHECK_THROWS_WITH(read("cos\nsystem\n."), Contains("contains os.system"));
  CHECK_THROWS_WITH(read("U\2osU\6system\x93."), Contains("contains os.system"));
  CHECK_THROWS_WITH(read("ctorch\nSize2\n."), Contains("contains torch.Size2"));
  CHECK_THROWS_WITH(read("ca\x1b[31m\nb\n."), Contains("contains a?[31m.b"));
  for (const char code : {'i', 'o', '\x81', '\x92', '\x82', 'P', '\x97'}) {
    CHECK_THROWS_WITH(read(std::string("K\1K\1") + code + "."), Contains("operation 0x"));
  }
}

TEST_CASE("a pickle that asks for much is refused before it has it") {
  CHECK_THROWS_WITH(read(std::string(100, 'N'), {.max_bytes = 99}), Contains("limit is 99"));
  CHECK_THROWS_WITH(read(std::string(100, 'N'), {.max_values = 50}), Contains("50 values"));
  CHECK_THROWS_WITH(read(std::string(100, 'N'), {.max_stack = 50}), Contains("on its stack"));
  CHECK_THROWS_WITH(read(std::string(100, '('), {.max_stack = 50}), Contains("marks"));
  CHECK_THROWS_WITH(read(bytes({'N', 'r', 0xff, 0xff, 0xff, 0x7f, '.'})), Contains("memo"));
  // One list of 40 pairs, made into a dict 20 times.
  std::string many = "](";
  for (int i = 0; i < 40; ++i) many += "U\1aN\x86";
  many +=
      "eq\1"
      "0";
  for (int i = 0; i < 20; ++i) many += "ccollections\nOrderedDict\nh\1\x85R0";
  CHECK_THROWS_WITH(read(many + "N.", {.max_values = 500}), Contains("too many pairs"));
}

}  // namespace tgi::download
