// What SafetensorsWriter writes is what the parser reads, and a file is never told complete that
// is not.
#include "base/files/safetensors_writer.h"

#include <fstream>
#include <iterator>

#include "base/error.h"
#include "engine/weights/safetensors.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"
#include "tests/weights/safetensors_builder.h"

namespace tgi {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("what is written in pieces is read back by the parser") {
  const TempFolder folder;
  const std::string path = folder.file("model.safetensors");
  const std::vector<TensorHeader> entries = {
      {"z.first", "F32", {2, 3}}, {"a.second", "BF16", {0, 4}}, {"m.third", "U8", {5}}};
  const std::string data = f32_bytes({1, 2, 3, 4, 5, 6}) + "abcde";

  SafetensorsWriter writer(path, entries, {{"format", "pt"}, {"by", "a \"test\""}});
  writer.append(as_bytes(data).first(7));
  writer.append(as_bytes(data).subspan(7));
  writer.finish();

  const std::string file = read_file(path);
  const auto read = parse_safetensors(as_bytes(file), path);
  REQUIRE(read.size() == 3);
  CHECK(read[0].name == "a.second");
  CHECK(read[0].bytes.empty());
  CHECK(read[1].name == "m.third");
  CHECK(std::string(reinterpret_cast<const char*>(read[1].bytes.data()), 5) == "abcde");
  CHECK(read[2].shape == std::vector<int64_t>{2, 3});
  CHECK(read[2].dtype->name == "F32");
  // Mapped arrays are aligned to their elements.
  CHECK((read[2].bytes.data() - as_bytes(file).data()) % 8 == 0);
}

TEST_CASE("a file of safetensors that lacks bytes is never finished, and one takes no more") {
  const TempFolder folder;
  SafetensorsWriter writer(folder.file("m"), std::vector<TensorHeader>{{"a", "U8", {4}}});
  writer.append(as_bytes("abc"));
  CHECK_THROWS_AS(writer.finish(), Error);
  CHECK_THROWS_AS(writer.append(as_bytes("de")), Error);
  writer.append(as_bytes("d"));
  writer.finish();
}

TEST_CASE("entries that can't be written are refused with the path and the name") {
  const TempFolder folder;
  const auto message = [&](std::vector<TensorHeader> entries, const std::string& file) {
    try {
      const SafetensorsWriter writer(folder.file(file), entries);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  CHECK_THAT(message({{"w", "F4", {4}}}, "m"), Catch::Contains("/m: w: element type F4"));
  CHECK_THAT(message({{"w", "U8", {-1}}}, "m"), Catch::Contains("w: a size of -1"));
  CHECK_THAT(message({{"w", "U8", {1}}, {"w", "U8", {1}}}, "m"), Catch::Contains("named 'w'"));
  CHECK_THAT(message({{"w", "U8", {int64_t{1} << 40, int64_t{1} << 40}}}, "m"),
             Catch::Contains("too large"));
  CHECK_THAT(message({{"w", "U8", {1}}}, "not/there"), Catch::Contains("can't create"));
}

TEST_CASE("a full disk is told as one") {
  SafetensorsWriter* none = nullptr;
  try {
    SafetensorsWriter writer("/dev/full", std::vector<TensorHeader>{{"a", "U8", {4}}});
    none = &writer;
  } catch (const Error& error) {
    CHECK(error.code() == Code::kOutOfMemory);
    CHECK_THAT(error.what(), Catch::StartsWith("/dev/full: can't write"));
  }
  CHECK(none == nullptr);
}

TEST_CASE("shards keep the order, stay below the limit where they can, and are told in the index") {
  const ShardPlan plan = plan_shards(
      {{"a", "U8", {6}}, {"b", "U8", {4}}, {"c", "U8", {1}}, {"d", "U8", {30}}, {"e", "U8", {2}}},
      10);
  REQUIRE(plan.shards.size() == 4);
  CHECK(plan.shards[0].entries.size() == 2);
  CHECK(plan.shards[2].entries.front().name == "d");
  CHECK(plan.shards[2].file == "model-00003-of-00004.safetensors");
  const Json index = plan.index_json();
  CHECK(index["metadata"]["total_size"] == 43);
  CHECK(index["weight_map"]["e"] == "model-00004-of-00004.safetensors");

  CHECK(plan_shards({{"a", "U8", {30}}}, 10).shards.front().file == "model.safetensors");
  CHECK(plan_shards({}, 10).shards.empty());
}

}  // namespace
}  // namespace tgi
