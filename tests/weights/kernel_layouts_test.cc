// Layouts of weights that are those of a kernel: gptq's for marlin, awq's for gemv. What the
// packers of their projects write, written here anew as they publish it, is read as the same codes
// and scales as in the plain layout, bit for bit.
#include <fmt/format.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/weights/formats/awq_layout.h"
#include "engine/weights/weight_format.h"
#include "tests/catch.h"
#include "tests/weights/safetensors_builder.h"

namespace tgi::kernel_layouts_test {
namespace {

using Words = std::vector<uint32_t>;

constexpr int64_t kRows = 128;  // outputs
constexpr int64_t kCols = 512;  // inputs
const std::string kModule = "model.layers.0.mlp.up_proj";

std::string bytes_of(const Words& words) {
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint32_t)};
}

std::string shape_of(int64_t rows, int64_t cols) {
  return fmt::format("[{},{}]", rows, cols);
}

// Codes (outputs, inputs), scales and zero points (outputs, groups).
struct Matrix {
  int64_t group_size = 0;
  int64_t num_groups = 0;
  std::vector<uint32_t> codes{};
  std::vector<float> scales{};
  std::vector<uint32_t> zeros{};

  uint32_t code(int64_t row, int64_t col) const {
    return codes[static_cast<size_t>(row * kCols + col)];
  }
  float scale(int64_t row, int64_t group) const {
    return scales[static_cast<size_t>(row * num_groups + group)];
  }
  uint32_t zero(int64_t row, int64_t group) const {
    return zeros[static_cast<size_t>(row * num_groups + group)];
  }
};

Matrix random_matrix(int64_t group_size) {
  std::mt19937 random(static_cast<uint32_t>(group_size));
  Matrix out{.group_size = group_size, .num_groups = kCols / group_size};
  for (int64_t i = 0; i < kRows * kCols; ++i) out.codes.push_back(random() % 16);
  for (int64_t i = 0; i < kRows * out.num_groups; ++i) {
    out.scales.push_back(0.5F + static_cast<float>(i));
    out.zeros.push_back(random() % 16);
  }
  return out;
}

struct Stored {
  Json quantization;
  std::vector<TestTensor> tensors;
};

std::string by_groups(const Matrix& matrix) {
  std::vector<float> out;
  for (int64_t group = 0; group < matrix.num_groups; ++group) {
    for (int64_t row = 0; row < kRows; ++row) out.push_back(matrix.scale(row, group));
  }
  return f32_bytes(out);
}

int64_t stated_group(const Matrix& matrix) {
  return matrix.num_groups == 1 ? -1 : matrix.group_size;
}

Stored plain_gptq(const Matrix& matrix) {
  Words weights(static_cast<size_t>(kCols / 8 * kRows));
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t col = 0; col < kCols; ++col) {
      weights[static_cast<size_t>(col / 8 * kRows + row)] |= matrix.code(row, col) << (col % 8 * 4);
    }
  }
  // Of codes with an offset of 8, less one.
  const Words zeros(static_cast<size_t>(matrix.num_groups * kRows / 8), 0x77777777U);
  return {{{"quant_method", "gptq"}, {"bits", 4}, {"group_size", stated_group(matrix)}},
          {{kModule + ".qweight", "I32", shape_of(kCols / 8, kRows), bytes_of(weights)},
           {kModule + ".qzeros", "I32", shape_of(matrix.num_groups, kRows / 8), bytes_of(zeros)},
           {kModule + ".scales", "F32", shape_of(matrix.num_groups, kRows), by_groups(matrix)}}};
}

// Marlin's Layer.pack, step by step: the permutation of 1024 codes from rows of a warp's threads,
// its interleaving, tiles of 16 x 16, then eight codes a word.
Stored marlin(const Matrix& matrix) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < 32; ++i) {
    std::vector<int64_t> first;
    for (const int64_t block : {0, 1}) {
      for (const int64_t row :
           {2 * (i % 4), 2 * (i % 4) + 1, 2 * (i % 4 + 4), 2 * (i % 4 + 4) + 1}) {
        first.push_back(16 * row + i / 4 + 8 * block);
      }
    }
    for (int64_t j = 0; j < 4; ++j) {
      for (const int64_t each : first) order.push_back(each + 256 * j);
    }
  }
  std::vector<int64_t> interleaved;
  for (size_t i = 0; i < order.size(); i += 8) {
    for (const size_t j : {0, 2, 4, 6, 1, 3, 5, 7}) interleaved.push_back(order[i + j]);
  }
  std::vector<uint32_t> tiled;  // (inputs / 16, outputs / 16, 16 inputs, 16 outputs)
  for (int64_t k = 0; k < kCols / 16; ++k) {
    for (int64_t n = 0; n < kRows / 16; ++n) {
      for (int64_t i = 0; i < 256; ++i) {
        tiled.push_back(matrix.code(n * 16 + i % 16, k * 16 + i / 16));
      }
    }
  }
  Words words(tiled.size() / 8);
  for (size_t i = 0; i < tiled.size(); ++i) {
    const size_t from = i / 1024 * 1024 + static_cast<size_t>(interleaved[i % 1024]);
    words[i / 8] |= tiled[from] << (i % 8 * 4);
  }
  std::vector<size_t> scale_order;
  if (matrix.num_groups > 1) {
    for (size_t i = 0; i < 8; ++i) {
      for (size_t j = 0; j < 8; ++j) scale_order.push_back(i + 8 * j);
    }
  } else {
    for (size_t i = 0; i < 4; ++i) {
      for (const size_t j : {0, 1, 8, 9, 16, 17, 24, 25}) scale_order.push_back(2 * i + j);
    }
  }
  std::vector<float> scales;
  const size_t length = scale_order.size();
  for (int64_t group = 0; group < matrix.num_groups; ++group) {
    for (size_t i = 0; i < static_cast<size_t>(kRows); ++i) {
      const size_t row = i / length * length + scale_order[i % length];
      scales.push_back(matrix.scale(static_cast<int64_t>(row), group));
    }
  }
  return {{{"quant_method", "gptq"},
           {"bits", 4},
           {"group_size", stated_group(matrix)},
           {"checkpoint_format", "marlin"}},
          {{kModule + ".B", "I32", shape_of(kCols / 16, kRows * 2), bytes_of(words)},
           {kModule + ".s", "F32", shape_of(matrix.num_groups, kRows), f32_bytes(scales)},
           {kModule + ".workspace", "I32", "[16]", std::string(64, '\0')}}};
}

Stored plain_awq(const Matrix& matrix) {
  const auto packed = [](int64_t lines, const auto& value) {
    Words out(static_cast<size_t>(lines * kRows / 8));
    for (int64_t line = 0; line < lines; ++line) {
      for (int64_t row = 0; row < kRows; ++row) {
        out[static_cast<size_t>(line * kRows / 8 + row / 8)] |= value(line, row)
                                                                << awq_shift(row % 8);
      }
    }
    return bytes_of(out);
  };
  return {{{"quant_method", "awq"}, {"bits", 4}, {"group_size", stated_group(matrix)}},
          {{kModule + ".qweight", "I32", shape_of(kCols, kRows / 8),
            packed(kCols, [&](int64_t col, int64_t row) { return matrix.code(row, col); })},
           {kModule + ".qzeros", "I32", shape_of(matrix.num_groups, kRows / 8),
            packed(matrix.num_groups,
                   [&](int64_t group, int64_t row) { return matrix.zero(row, group); })},
           {kModule + ".scales", "F32", shape_of(matrix.num_groups, kRows), by_groups(matrix)}}};
}

// AutoAWQ's WQLinear_GEMV.from_linear.
Stored gemv_awq(const Matrix& matrix) {
  const auto divided = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  const int64_t multiple = matrix.group_size >= 128 ? 1 : matrix.group_size == 64 ? 2 : 4;
  const int64_t width = divided(divided(matrix.num_groups, 8), multiple) * multiple;
  Words weights(static_cast<size_t>(kRows * kCols / 8));
  Words zeros(static_cast<size_t>(kRows * width));
  std::vector<float> scales(static_cast<size_t>(kRows * width * 8));
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t col = 0; col < kCols; ++col) {
      weights[static_cast<size_t>(row * kCols / 8 + col / 8)] |= matrix.code(row, col)
                                                                 << (col % 8 * 4);
    }
    for (int64_t group = 0; group < matrix.num_groups; ++group) {
      zeros[static_cast<size_t>(row * width + group / 8)] |= matrix.zero(row, group)
                                                             << (group % 8 * 4);
      scales[static_cast<size_t>(row * width * 8 + group)] = matrix.scale(row, group);
    }
  }
  return {{{"quant_method", "awq"},
           {"bits", 4},
           {"group_size", stated_group(matrix)},
           {"version", "gemv"}},
          {{kModule + ".qweight", "I32", shape_of(kRows, kCols / 8), bytes_of(weights)},
           {kModule + ".qzeros", "I32", shape_of(kRows, width), bytes_of(zeros)},
           {kModule + ".scales", "F32", shape_of(kRows, width * 8), f32_bytes(scales)}}};
}

// As a device takes it.
struct Held {
  StoredForm form;
  std::vector<int8_t> codes{};
  std::vector<float> scales{};
  std::vector<int8_t> zeros{};
};

Held held(const Stored& stored, Range rows, Range cols) {
  const MemorySource files({{"model.safetensors", build_safetensors(stored.tensors)}});
  const auto checkpoint = open_checkpoint(files);
  const Json config = {{"quantization_config", stored.quantization}};
  const MatrixSpec spec{.name = kModule + ".weight", .prefix = "", .rows = kRows, .cols = kCols};
  const WeightFormat& format = find_weight_format(JsonReader(config, ""));
  WeightProblems problems;
  const auto tensors = format.collect(config, *checkpoint, spec, problems);
  REQUIRE(problems.empty());
  Held out{.form = format.form_of(config, spec)};
  const HostWeight got = format.slice(config, *checkpoint, spec, tensors, rows, cols,
                                      storage_of(out.form, cols, DType::kBF16));
  REQUIRE(got.format == "grouped");
  const auto copy = [](auto& to, const auto* from, int64_t count) {
    if (from != nullptr) to.assign(from, from + count);
  };
  const GroupedPart& part = got.grouped;
  copy(out.codes, part.codes, rows.count * cols.count);
  copy(out.scales, part.scales, rows.count * part.num_groups);
  copy(out.zeros, part.zeros, rows.count * part.num_groups);
  return out;
}

void check_same(const Stored& plain, const Stored& other) {
  for (const auto& [rows, cols] : {std::pair{Range{0, kRows}, Range{0, kCols}},
                                   {Range{13, 70}, Range{256, 256}},
                                   {Range{64, 64}, Range{128, 128}}}) {
    const Held expected = held(plain, rows, cols);
    const Held got = held(other, rows, cols);
    CHECK(got.form.bits == 4);
    CHECK(got.form.group_size == expected.form.group_size);
    CHECK(got.codes == expected.codes);
    CHECK(got.scales == expected.scales);
    CHECK(got.zeros == expected.zeros);
  }
}

TEST_CASE("gptq in marlin's layout holds the bits of the plain one") {
  for (const int64_t group_size : {int64_t{128}, int64_t{64}, kCols}) {
    INFO("groups of " << group_size);
    const Matrix matrix = random_matrix(group_size);
    check_same(plain_gptq(matrix), marlin(matrix));
    Stored by_flag = marlin(matrix);
    by_flag.quantization.erase("checkpoint_format");
    by_flag.quantization["is_marlin_format"] = true;
    check_same(plain_gptq(matrix), by_flag);
  }
}

TEST_CASE("awq in gemv's layout holds the bits of the plain one") {
  for (const int64_t group_size : {int64_t{128}, int64_t{64}, int64_t{32}, kCols}) {
    INFO("groups of " << group_size);
    const Matrix matrix = random_matrix(group_size);
    check_same(plain_awq(matrix), gemv_awq(matrix));
  }
}

TEST_CASE("what can't be cut into marlin's tiles, or is of another shape, is told") {
  const Stored stored = marlin(random_matrix(128));
  const MemorySource files({{"model.safetensors", build_safetensors(stored.tensors)}});
  const auto checkpoint = open_checkpoint(files);
  const Json config = {{"quantization_config", stored.quantization}};
  const WeightFormat& format = find_weight_format(JsonReader(config, ""));
  const auto problem = [&](int64_t rows, int64_t cols) {
    WeightProblems problems;
    const MatrixSpec spec{.name = kModule + ".weight", .prefix = "", .rows = rows, .cols = cols};
    (void)format.collect(config, *checkpoint, spec, problems);
    REQUIRE(!problems.misshapen.empty());
    return problems.misshapen.front();
  };
  CHECK_THAT(problem(96, kCols), Catch::Contains("marlin's tiles of 64 outputs x 16 inputs"));
  CHECK_THAT(problem(kRows, 520), Catch::Contains("marlin's tiles"));
  CHECK_THAT(problem(kRows, 640), Catch::Contains(".B"));
  CHECK(format.may_ignore(*checkpoint, *checkpoint->find(kModule + ".workspace")));
}

}  // namespace
}  // namespace tgi::kernel_layouts_test
