// What is written is read back as it was given.
#include "engine/weights/ggml/gguf_writer.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/files/mapped_file.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace tgi {
namespace {

std::vector<std::byte> counted(int64_t size, int first) {
  std::vector<std::byte> out;
  for (int64_t i = 0; i < size; ++i) out.push_back(static_cast<std::byte>(first + i));
  return out;
}

GgufFields all_kinds() {
  GgufFields fields;
  fields.put_text("general.architecture", "llama");
  fields.put_integer("small", 7);
  fields.put_integer("large", int64_t{1} << 40);
  fields.put_integer("negative", -3);
  fields.put_number("number", 0.1);
  fields.put_boolean("yes", true);
  fields.put_boolean("no", false);
  fields.put_text("empty", "");
  fields.put_text("umlaut", "\u00FC");
  fields.put_integers("integers", std::vector<int32_t>{-1, 0, 1});
  fields.put_numbers("numbers", std::vector<float>{0.5F, -std::numeric_limits<float>::max()});
  fields.put_booleans("booleans", {true, false, true});
  fields.put_texts("texts", {"a", "", std::string("nul\0byte", 8)});
  fields.put_texts("none", {});
  return fields;
}

void check_kinds(const GgufMetadata& metadata) {
  CHECK(metadata.keys().size() == 14);
  CHECK(metadata.integer("small") == 7);
  CHECK(metadata.find("small")->type == GgufValueType::kUint32);
  CHECK(metadata.integer("large") == int64_t{1} << 40);
  CHECK(metadata.integer("negative") == -3);
  CHECK(metadata.number("number") == double{0.1F});
  CHECK(metadata.boolean("yes"));
  CHECK(!metadata.boolean("no"));
  CHECK(metadata.text("empty").empty());
  CHECK(metadata.text("umlaut") == "\u00FC");
  CHECK(metadata.integers("integers") == std::vector<int64_t>{-1, 0, 1});
  CHECK(metadata.numbers("numbers") ==
        std::vector<double>{0.5, -double{std::numeric_limits<float>::max()}});
  CHECK(metadata.booleans("booleans") == std::vector<bool>{true, false, true});
  CHECK(metadata.texts("texts") ==
        std::vector<std::string_view>{"a", "", std::string_view("nul\0byte", 8)});
  CHECK(metadata.texts("none").empty());
}

}  // namespace

TEST_CASE("a GGUF file that is written is read back as it was given") {
  const TempFolder folder;
  const std::string path = folder.file("out.gguf");
  const GgufFields fields = all_kinds();
  const std::vector<GgufTensorHeader> headers = {
      {.name = "vector", .type = find_ggml_type("F32"), .shape = {3}},
      {.name = "matrix", .type = find_ggml_type("Q8_0"), .shape = {5, 64}},
      {.name = "stack", .type = find_ggml_type("BF16"), .shape = {2, 3, 5}},
  };
  const std::vector<std::vector<std::byte>> contents = {counted(12, 1), counted(340, 2),
                                                        counted(60, 3)};
  NewFile file(path);
  GgufWriter writer(file, fields, headers);
  writer.append(contents[0]);
  // In parts, as experts come one by one.
  writer.append(std::span(contents[1]).first(100));
  writer.append(std::span(contents[1]).subspan(100));
  CHECK_THROWS(writer.finish());  // a tensor is missing
  writer.append(contents[2]);
  writer.finish();
  CHECK_THROWS(writer.append(contents[2]));
  REQUIRE(file.commit());

  const MappedFile written(path);
  CHECK(static_cast<int64_t>(written.bytes().size()) == writer.total_bytes());
  const GgufFile read = parse_gguf(written.bytes(), path);
  CHECK(read.version == 3);
  check_kinds(read.metadata);
  check_kinds(fields.metadata());
  REQUIRE(read.tensors.size() == headers.size());
  for (size_t i = 0; i < headers.size(); ++i) {
    CHECK(read.tensors[i].name == headers[i].name);
    CHECK(read.tensors[i].type == headers[i].type);
    CHECK(read.tensors[i].shape == headers[i].shape);
    CHECK(std::ranges::equal(read.tensors[i].bytes, contents[i]));
    const int64_t offset = read.tensors[i].bytes.data() - written.bytes().data();
    CHECK(offset % 32 == 0);
  }
}

TEST_CASE("a tensor does not take more bytes than it holds") {
  const TempFolder folder;
  NewFile file(folder.file("out.gguf"));
  const std::vector<GgufTensorHeader> headers = {
      {.name = "vector", .type = find_ggml_type("F32"), .shape = {3}},
      {.name = "another", .type = find_ggml_type("F32"), .shape = {3}}};
  GgufWriter writer(file, GgufFields(), headers);
  CHECK_THROWS(writer.append(counted(16, 0)));
}

TEST_CASE("a field replaces what was there, and what is erased is gone") {
  GgufFields fields;
  fields.put_integer("a", 1);
  fields.put_text("b", "x");
  fields.put_text("a", "two");
  CHECK(fields.fields().size() == 2);
  CHECK(fields.metadata().text("a") == "two");
  fields.erase("a");
  CHECK(!fields.has("a"));
  CHECK(fields.metadata().keys() == std::vector<std::string_view>{"b"});
  const GgufFields other = all_kinds();
  for (const std::string_view key : other.metadata().keys()) {
    fields.put(key, *other.metadata().find(key));
  }
  fields.erase("b");
  check_kinds(fields.metadata());
}

}  // namespace tgi
