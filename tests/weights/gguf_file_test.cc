// The container of GGUF: what it holds is read back, and whatever does not fit is refused with the
// place.
#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/regular_file.h"
#include "base/json.h"
#include "engine/weights/ggml/gguf_file.h"
#include "tests/catch.h"
#include "tests/weights/gguf_files.h"

namespace tgi {
namespace {

constexpr uint32_t kF32 = 0;
constexpr uint32_t kQ8 = 8;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

GgufFile parse_text(const std::string& text) {
  return parse_gguf(bytes_of(text), "model.gguf");
}

GgufTestTensor floats(const std::string& name, std::vector<uint64_t> dims) {
  uint64_t count = 1;
  for (const uint64_t size : dims) count *= size;
  return {name, std::move(dims), kF32, std::string(count * 4, '\1')};
}

std::string small_file(uint32_t version = 3) {
  return gguf_file({text_value("general.architecture", "llama"), u32_value("llama.block_count", 2)},
                   {floats("a.weight", {3, 2}), {"b.weight", {32, 2}, kQ8, std::string(68, '\2')}},
                   version);
}

void check_refused(const std::string& text, const std::string& why) {
  CHECK_THROWS_WITH(parse_text(text), Catch::Contains("model.gguf: ") && Catch::Contains(why));
}

}  // namespace

TEST_CASE("a file of GGUF is read back, of either version") {
  for (const uint32_t version : {2U, 3U}) {
    const std::string text = small_file(version);
    const GgufFile file = parse_text(text);
    CHECK(file.version == version);
    CHECK(file.metadata.text("general.architecture") == "llama");
    CHECK(file.metadata.integer("llama.block_count") == 2);
    REQUIRE(file.tensors.size() == 2);
    CHECK(file.tensors[0].name == "a.weight");
    CHECK(file.tensors[0].shape == std::vector<int64_t>{2, 3});
    CHECK(file.tensors[0].bytes.size() == 24);
    CHECK(file.tensors[1].type->name == "Q8_0");
    CHECK(file.tensors[1].shape == std::vector<int64_t>{2, 32});
    CHECK(static_cast<char>(file.tensors[1].bytes[0]) == '\2');
  }
}

TEST_CASE("a tensor of GGUF without dimensions is one number") {
  const GgufFile file = parse_text(gguf_file({}, {{"one", {}, kF32, std::string(4, '\1')}}));
  CHECK(file.tensors[0].shape == std::vector<int64_t>{1});
  CHECK(file.tensors[0].bytes.size() == 4);
}

TEST_CASE("a file of the gguf package's writer is read back") {
  const std::string text =
      read_regular_file(TGI_SOURCE_DIR "/tests/fuzz/corpus/gguf/written_by_gguf");
  const GgufFile file = parse_text(text);
  const GgufMetadata& metadata = file.metadata;
  CHECK(metadata.text("general.architecture") == "llama");
  CHECK(metadata.integer("of.uint8") == 200);
  CHECK(metadata.integer("of.int8") == -100);
  CHECK(metadata.integer("of.uint16") == 60000);
  CHECK(metadata.integer("of.int16") == -30000);
  CHECK(metadata.integer("of.uint32") == 4000000000);
  CHECK(metadata.integer("of.int32") == -2000000000);
  CHECK(metadata.integer("of.uint64") == int64_t{1} << 60);
  CHECK(metadata.integer("of.int64") == -(int64_t{1} << 60));
  CHECK(metadata.number("of.float32") == 0.5);
  CHECK(metadata.number("of.float64") == 1e300);
  CHECK(metadata.boolean("of.bool"));
  CHECK(metadata.text("of.string") == "k\xC3\xA4se");
  CHECK(metadata.texts("of.strings") == std::vector<std::string_view>{"", "one", "two"});
  CHECK(metadata.integers("of.integers") == std::vector<int64_t>{3, -4});
  CHECK(metadata.numbers("of.floats") == std::vector<double>{0.25, -8.0});
  CHECK(metadata.booleans("of.bools") == std::vector<bool>{true, false});
  const Json golden =
      parse_json(read_regular_file(TGI_SOURCE_DIR "/tests/golden/ggml_blocks.json"));
  // All but Q2_0, which is younger than the package, and two of plain numbers.
  REQUIRE(file.tensors.size() == golden.size() - 1 + 2);
  for (const GgufTensor& tensor : file.tensors) {
    INFO(tensor.name);
    std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
    const int64_t num_blocks = tensor.num_elements() / tensor.type->block_size;
    tensor.type->decode(tensor.bytes.data(), num_blocks, values.data());
    if (tensor.name == "plain") {
      CHECK(tensor.shape == std::vector<int64_t>{2, 3});
      CHECK(values == std::vector<float>{0, 1, 2, 3, 4, 5});
      continue;
    }
    if (tensor.name == "half") {
      CHECK(values == std::vector<float>{0.5F, -2.0F});
      continue;
    }
    CHECK(tensor.name == std::string(tensor.type->name) + ".weight");
    std::string hex;
    for (const std::byte byte : tensor.bytes) {
      hex += fmt::format("{:02x}", std::to_integer<int>(byte));
    }
    CHECK(hex == golden.at(std::string(tensor.type->name)).at("blocks").get<std::string>());
  }
}

TEST_CASE("a file of GGUF that is cut anywhere is refused") {
  const std::string text = small_file();
  for (size_t size = 0; size < text.size(); ++size) {
    INFO(size);
    CHECK_THROWS_AS(parse_text(text.substr(0, size)), Error);
  }
  check_refused(text.substr(0, 60), "is the file complete?");
  check_refused(text.substr(0, text.size() - 1), "is the file complete?");
}

TEST_CASE("bytes of a GGUF file that are changed never lead outside of it") {
  const std::string text = small_file();
  for (size_t at = 0; at < text.size(); ++at) {
    for (const int change : {1, 0x80, 0xFF}) {
      std::string changed = text;
      changed[at] = static_cast<char>(changed[at] ^ change);
      try {
        for (const GgufTensor& tensor : parse_text(changed).tensors) {
          CHECK(tensor.bytes.data() >= bytes_of(changed).data());
          CHECK(tensor.bytes.data() + tensor.bytes.size() <=
                bytes_of(changed).data() + changed.size());
        }
      } catch (const Error&) {
      }
    }
  }
}

TEST_CASE("what no GGUF file may say is refused by what it says") {
  check_refused("", "does not begin with \"GGUF\"");
  check_refused(std::string(100, 'x'), "does not begin with \"GGUF\"");
  check_refused(small_file(1), "version 1");
  check_refused(small_file(4), "version 4");
  check_refused(small_file(0x03000000), "big-endian");
  const std::vector<GgufTestTensor> tensors = {floats("a", {4})};
  check_refused(gguf_file({u32_value("k", 1), u32_value("k", 2)}, tensors), "\"k\" twice");
  check_refused(gguf_file({}, std::vector<GgufTestTensor>(200, floats("same", {4}))),
                "two tensors \"same\"");
  check_refused(gguf_file({}, {{"a", {4}, 999, std::string(16, '\0')}}), "elements of type 999");
  check_refused(gguf_file({u32_value("\xFF", 1)}, tensors), "is not UTF-8");
  check_refused(gguf_file({}, {floats("\xFF", {4})}), "is not UTF-8");
  check_refused(gguf_file({}, {{"a", {33}, kQ8, std::string(68, '\0')}}),
                "no whole blocks of Q8_0");
  check_refused(gguf_file({}, {{"a", {1, 1, 1, 1, 1}, kF32, std::string(4, '\0')}}),
                "5 dimensions");
  check_refused(gguf_file({}, {{"a", {0}, kF32, ""}}), "size 0");
  check_refused(gguf_file({}, {{"a", {uint64_t{1} << 40, uint64_t{1} << 40}, kF32, ""}}), "size");
  check_refused(gguf_file({}, {{"a", {uint64_t{1} << 50}, kF32, ""}}), "is the file complete?");
  check_refused(gguf_file({{"k", GgufBytes().number<uint32_t>(77).text()}}, tensors), "type 77");
  check_refused(gguf_file({u32_value("general.alignment", 24)}, tensors), "power of two");
  const std::string huge = GgufBytes().number<uint32_t>(8).number(uint64_t{1} << 60).text();
  check_refused(gguf_file({{"k", huge}}, tensors), "is the file complete?");
  const std::string many =
      GgufBytes().number<uint32_t>(9).number<uint32_t>(8).number(uint64_t{1} << 60).text();
  check_refused(gguf_file({{"k", many}}, tensors), "is the file complete?");
  std::string counts = small_file();
  const uint64_t count = uint64_t{1} << 60;
  std::memcpy(counts.data() + 8, &count, sizeof count);
  check_refused(counts, "are announced");
}

TEST_CASE("tensors of GGUF that overlap or lie askew are refused") {
  std::string text = gguf_file({}, {floats("a", {16}), floats("b", {16})});
  const size_t at = text.find('b') + 1 + 4 + 8 + 4;  // its offset
  uint64_t offset = 32;
  std::memcpy(text.data() + at, &offset, sizeof offset);
  check_refused(text, "\"a\" and \"b\" overlap");
  offset = 33;
  std::memcpy(text.data() + at, &offset, sizeof offset);
  check_refused(text, "no multiple of 32");
}

TEST_CASE("metadata of GGUF is read by its type") {
  const auto array = [](uint32_t type, uint64_t count, const std::string& elements) {
    return GgufBytes().number<uint32_t>(9).number(type).number(count).raw(elements).text();
  };
  const std::string two = GgufBytes().number<int32_t>(-5).number<int32_t>(7).text();
  const std::string words = GgufBytes().string("one").string("").text();
  const std::string nested = GgufBytes().number<uint32_t>(5).number<uint64_t>(2).raw(two).text();
  const std::string text =
      gguf_file({{"byte", GgufBytes().number<uint32_t>(0).raw("\xFF").text()},
                 {"big", GgufBytes().number<uint32_t>(10).number(~uint64_t{0}).text()},
                 {"half", GgufBytes().number<uint32_t>(6).number(0.5F).text()},
                 {"yes", GgufBytes().number<uint32_t>(7).raw("\1").text()},
                 {"two", array(5, 2, two)},
                 {"words", array(8, 2, words)},
                 {"nested", array(9, 1, nested)},
                 text_value("text", "hello"),
                 text_value("bytes", "\xFF")},
                {floats("a", {4})});
  const GgufMetadata metadata = parse_text(text).metadata;
  CHECK(metadata.integer("byte") == 255);
  CHECK(metadata.number("byte") == 255.0);
  CHECK(metadata.number("half") == 0.5);
  CHECK(metadata.boolean("yes"));
  CHECK(metadata.integers("two") == std::vector<int64_t>{-5, 7});
  CHECK(metadata.numbers("two") == std::vector<double>{-5.0, 7.0});
  CHECK(metadata.texts("words") == std::vector<std::string_view>{"one", ""});
  CHECK(metadata.text("text") == "hello");
  CHECK_FALSE(metadata.find_integer("none"));
  CHECK(metadata.keys().size() == 9);
  CHECK_THROWS_WITH(metadata.text("bytes"), Catch::Contains("bytes: not UTF-8"));
  CHECK_THROWS_WITH(metadata.integer("none"), Catch::Contains("none: not in the file's metadata"));
  CHECK_THROWS_WITH(metadata.integer("text"),
                    Catch::Contains("text: expected an integer, got string"));
  CHECK_THROWS_WITH(metadata.integer("half"), Catch::Contains("got float32"));
  CHECK_THROWS_WITH(metadata.integer("big"), Catch::Contains("expected an integer"));
  CHECK_THROWS_WITH(metadata.text("two"), Catch::Contains("got an array of int32"));
  CHECK_THROWS_WITH(metadata.integers("words"), Catch::Contains("expected an array of integers"));
  CHECK_THROWS_WITH(metadata.texts("nested"), Catch::Contains("expected an array of strings"));
  CHECK_THROWS_WITH(metadata.booleans("two"), Catch::Contains("true and false"));
}

}  // namespace tgi
