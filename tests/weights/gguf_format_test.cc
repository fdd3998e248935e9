// Matrices out of GGUF files: the integers that a device gets stand for the very values that the
// blocks have, whole, in parts, by expert, in another order of rows, and put together of several
// tensors.
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "engine/tensor/weight_element.h"
#include "engine/weights/ggml/ggml_types.h"
#include "engine/weights/ggml/gguf_checkpoint.h"
#include "engine/weights/weight_format.h"
#include "tests/catch.h"
#include "tests/weights/gguf_files.h"
#include "tests/weights/safetensors_builder.h"

namespace tgi {
namespace {

constexpr int64_t kRows = 6;
constexpr int64_t kCols = 512;

const WeightFormat& format() {
  return weight_format<"gguf">();
}

// Random blocks whose scales are numbers: bytes below 0x78 make no infinite f16.
std::string random_blocks(const GgmlType& type, int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::string out(static_cast<size_t>(count * type.block_bytes), '\0');
  for (char& byte : out) byte = static_cast<char>(random() % 0x70);
  return out;
}

std::vector<float> values_of(const GgmlType& type, const std::string& blocks) {
  const auto count = static_cast<int64_t>(blocks.size()) / type.block_bytes;
  std::vector<float> out(static_cast<size_t>(count * type.block_size));
  type.decode(reinterpret_cast<const std::byte*>(blocks.data()), count, out.data());
  return out;
}

// One file with these tensors, under these names.
struct Model {
  MemorySource files;
  std::unique_ptr<Checkpoint> checkpoint;
  Json config;

  Model(const std::vector<GgufTestTensor>& tensors,
        Json names,
        Json types,
        Json orders = Json::object())
      : files({{"m.gguf", gguf_file({}, tensors)},
               {kGgufIndexFile, Json({{"files", {"m.gguf"}},
                                      {"tensors", std::move(names)},
                                      {"orders", std::move(orders)}})
                                    .dump()}}),
        checkpoint(open_checkpoint(files)),
        config({{"quantization_config", {{"quant_method", "gguf"}, {"types", std::move(types)}}}}) {
  }

  HostWeight slice(const MatrixSpec& spec,
                   Range rows,
                   Range cols,
                   const MatrixStorage& storage) const {
    WeightProblems problems;
    const auto tensors = format().collect(config, *checkpoint, spec, problems);
    REQUIRE(problems.empty());
    return format().slice(config, *checkpoint, spec, tensors, rows, cols, storage);
  }
  MatrixStorage storage(const MatrixSpec& spec, Range cols) const {
    return storage_of(format().form_of(config, spec), cols, DType::kF32);
  }
};

std::vector<float> values_of(const HostWeight& weight) {
  std::vector<float> out;
  for (int64_t row = 0; row < weight.rows; ++row) {
    for (int64_t col = 0; col < weight.cols; ++col) {
      if (weight.format == "grouped") {
        const GroupedPart& part = weight.grouped;
        const int64_t group = row * part.num_groups + col / part.group_size;
        float value = part.scales[group] * static_cast<float>(part.codes[row * weight.cols + col]);
        if (part.minima != nullptr) value += part.minima[group];
        out.push_back(value);
      } else {
        const WeightPart& part = weight.parts.at(0);
        out.push_back(read_element(part.data, part.dtype, row * part.row_stride + col));
      }
    }
  }
  return out;
}

MatrixSpec spec_of(const std::string& name, int64_t rows = kRows) {
  return {.name = name, .prefix = "", .rows = rows, .cols = kCols};
}

Json entry(const std::string& tensor, std::vector<int64_t> shape) {
  return {{"tensor", tensor}, {"shape", std::move(shape)}};
}

GgufTestTensor tensor_of(const std::string& name,
                         const GgmlType& type,
                         int64_t rows,
                         uint32_t seed) {
  return {name,
          {static_cast<uint64_t>(kCols), static_cast<uint64_t>(rows)},
          type.id,
          random_blocks(type, rows * kCols / type.block_size, seed)};
}

std::vector<float> part_of(const std::vector<float>& all, Range rows, Range cols) {
  std::vector<float> out;
  for (int64_t row = rows.begin; row < rows.begin + rows.count; ++row) {
    const auto first = all.begin() + row * kCols + cols.begin;
    out.insert(out.end(), first, first + cols.count);
  }
  return out;
}

}  // namespace

TEST_CASE("matrices of every type of GGUF are their blocks' values, kept as integers or decoded") {
  int num_kept = 0;
  for (const GgmlType& type : ggml_types()) {
    if (type.decode == nullptr) continue;
    INFO(type.name);
    const GgufTestTensor tensor = tensor_of("w", type, kRows, 5);
    const std::vector<float> all = values_of(type, tensor.bytes);
    const Model model({tensor}, {{"a.weight", entry("w", {kRows, kCols})}},
                      {{"a.weight", type.name}});
    const MatrixSpec spec = spec_of("a.weight");
    for (const Range rows : {Range{0, kRows}, Range{2, 3}}) {
      for (const Range cols : {Range{0, kCols}, Range{256, 256}, Range{64, 128}, Range{32, 32}}) {
        INFO("columns from " << cols.begin << ", " << cols.count);
        const MatrixStorage storage = model.storage(spec, cols);
        num_kept += storage.stored ? 1 : 0;
        CHECK(values_of(model.slice(spec, rows, cols, storage)) == part_of(all, rows, cols));
        CHECK(values_of(model.slice(spec, rows, cols, DType::kF32)) == part_of(all, rows, cols));
      }
    }
    CHECK(format().form_of(model.config, spec).quantised_as.empty() == !type.is_quantised());
  }
  CHECK(num_kept > 100);
}

TEST_CASE("experts, rows in another order and parts of GGUF tensors are found where they lie") {
  const GgmlType& type = *find_ggml_type("Q4_K");
  GgufTestTensor stack = tensor_of("e", type, 3 * kRows, 7);
  stack.dims = {static_cast<uint64_t>(kCols), static_cast<uint64_t>(kRows), 3};
  const GgufTestTensor other = tensor_of("o", *find_ggml_type("Q6_K"), 2, 8);
  Json names = {{"all", entry("e", {3, kRows, kCols})},
                {"turned.weight", entry("o", {4, kCols})},
                {"both(0).weight", entry("o", {2, kCols})},
                {"both(1).weight", entry("p", {kRows, kCols})}};
  names["turned.weight"]["order"] = "turned";
  for (int expert = 0; expert < 3; ++expert) {
    Json& one = names["experts." + std::to_string(expert) + ".up.weight"] =
        entry("e", {kRows, kCols});
    one["expert"] = expert;
  }
  const GgufTestTensor plain = tensor_of("p", type, kRows, 9);
  const Model model({stack, other, plain}, names,
                    {{"all", "Q4_K"},
                     {"experts.{expert}.up.weight", "Q4_K"},
                     {"turned.weight", "Q6_K"},
                     {"both(0).weight", "Q6_K"},
                     {"both(1).weight", "Q4_K"}},
                    {{"turned", {1, 0, 1, 1}}});
  const std::vector<float> all = values_of(type, stack.bytes);
  const Range cols{0, kCols};
  for (int64_t expert = 0; expert < 3; ++expert) {
    const std::vector<float> expected = part_of(all, {expert * kRows, kRows}, cols);
    const MatrixSpec one = spec_of("experts." + std::to_string(expert) + ".up.weight");
    CHECK(model.storage(one, cols).stored);
    CHECK(values_of(model.slice(one, {0, kRows}, cols, model.storage(one, cols))) == expected);
    MatrixSpec stacked = spec_of("all");
    stacked.stack = {.index = expert, .count = 3};
    CHECK(values_of(model.slice(stacked, {0, kRows}, cols, model.storage(stacked, cols))) ==
          expected);
  }
  const std::vector<float> two = values_of(*find_ggml_type("Q6_K"), other.bytes);
  std::vector<float> turned;
  for (const int64_t row : {1, 0, 1, 1}) {
    const auto one = part_of(two, {row, 1}, cols);
    turned.insert(turned.end(), one.begin(), one.end());
  }
  const MatrixSpec turned_spec = spec_of("turned.weight", 4);
  CHECK(values_of(model.slice(turned_spec, {0, 4}, cols, model.storage(turned_spec, cols))) ==
        turned);
  // Of two types: decoded.
  const MatrixSpec both = spec_of("both.weight", 2 + kRows);
  CHECK_FALSE(model.storage(both, cols).stored);
  std::vector<float> expected = two;
  const std::vector<float> below = values_of(type, plain.bytes);
  expected.insert(expected.end(), below.begin(), below.end());
  CHECK(values_of(model.slice(both, {0, 2 + kRows}, cols, DType::kF32)) == expected);
}

TEST_CASE("vectors of GGUF are undone what was done to them") {
  const auto floats = [](const std::string& name, std::vector<float> values) {
    return GgufTestTensor{
        name,
        {values.size()},
        0,
        std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4)};
  };
  Json names = {{"norm.weight", entry("n", {3})},
                {"decay", entry("d", {2})},
                {"bias", entry("n", {2})},
                {"turns", entry("d", {4})}};
  names["norm.weight"]["change"] = "plus_one";
  names["decay"]["change"] = "minus_exp";
  names["bias"]["order"] = "swapped";
  names["turns"]["turn"] = "t";
  const Model model(
      {floats("n", {1.5F, 1.0F, 0.25F}), floats("d", {-1.0F, -0.5F}), floats("t", {8.0F, 9.0F})},
      names, Json::object(), {{"swapped", {2, 0}}});
  const auto read = [&](const char* name) {
    const StoredTensor* tensor = model.checkpoint->find(name);
    REQUIRE(tensor != nullptr);
    return read_elements(model.checkpoint->bytes(*tensor), *tensor->dtype);
  };
  CHECK(read("norm.weight") == std::vector<float>{0.5F, 0.0F, -0.75F});
  CHECK(read("decay") == std::vector<float>{0.0F, std::log(0.5F)});
  CHECK(read("bias") == std::vector<float>{0.25F, 1.5F});
  CHECK(read("turns") == std::vector<float>{-1.0F, 8.0F, -0.5F, 9.0F});
}

TEST_CASE("a tensor of GGUF that has other numbers than its shape is refused, never read beyond") {
  const GgufTestTensor floats{"w", {4, 2}, 0, std::string(32, '\0')};
  const auto open = [&](Json one) {
    Model({floats, {"other", {2}, 0, std::string(8, '\0')}}, {{"a", std::move(one)}},
          Json::object(), {{"order", {0, 1, 1}}, {"before", {-1}}});
  };
  open(entry("w", {2, 4}));
  open(entry("w", {8}));
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{2, 5}, {9}, {1, 1, 1}, {1 << 30, 4}}) {
    CHECK_THROWS_WITH(open(entry("w", shape)),
                      Catch::Contains("m.gguf: tensor w has 8 elements where") &&
                          Catch::Contains(shape_text(shape)));
  }
  Json ordered = entry("w", {3, 4});
  ordered["order"] = "order";
  open(ordered);
  ordered["shape"] = {4, 4};
  CHECK_THROWS_WITH(open(ordered), Catch::Contains("has 12 elements"));
  ordered["order"] = "before";
  CHECK_THROWS_WITH(open(ordered), Catch::Contains("ask for row -1"));
  Json expert = entry("w", {4});
  expert["expert"] = 1;
  open(expert);
  expert["shape"] = {8};
  CHECK_THROWS_WITH(open(expert), Catch::Contains("has 4 elements"));
  Json turns = entry("w", {10});
  turns["turn"] = "other";
  CHECK_THROWS_WITH(open(turns), Catch::Contains("expected as many"));
}

TEST_CASE("a scale that is no number is refused with the tensor and the row") {
  const GgmlType& type = *find_ggml_type("Q8_0");
  GgufTestTensor tensor = tensor_of("w", type, kRows, 3);
  tensor.bytes[static_cast<size_t>(kCols / 32 * 34 * 4 + 1)] =
      '\x7C';  // row 4: an infinity, or NaN
  const Model model({tensor}, {{"a.weight", entry("w", {kRows, kCols})}}, {{"a.weight", "Q8_0"}});
  const MatrixSpec spec = spec_of("a.weight");
  const Range cols{0, kCols};
  CHECK_THROWS_WITH(model.slice(spec, {0, kRows}, cols, model.storage(spec, cols)),
                    Catch::Contains("a.weight") && Catch::Contains("row 4"));
}

TEST_CASE(
    "a matrix of GGUF that is missing, of another shape or of a type without values is told") {
  const Model model(
      {tensor_of("w", *find_ggml_type("Q8_0"), kRows, 3), {"i", {4, 2}, 26, std::string(32, '\0')}},
      {{"a.weight", entry("w", {kRows, kCols})}, {"ids.weight", entry("i", {2, 4})}},
      Json::object());
  WeightProblems problems;
  (void)format().collect(model.config, *model.checkpoint, spec_of("none.weight"), problems);
  (void)format().collect(model.config, *model.checkpoint, spec_of("a.weight", kRows + 1), problems);
  MatrixSpec ids = spec_of("ids.weight", 2);
  ids.cols = 4;
  (void)format().collect(model.config, *model.checkpoint, ids, problems);
  CHECK(problems.missing == std::vector<std::string>{"none.weight"});
  REQUIRE(problems.misshapen.size() == 1);
  CHECK_THAT(problems.misshapen[0], Catch::Contains("expected (7, 512), got (6, 512)"));
  REQUIRE(problems.unsupported.size() == 1);
  CHECK_THAT(problems.unsupported[0], Catch::Contains("I32"));
}

}  // namespace tgi
