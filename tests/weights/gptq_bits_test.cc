// Integers of gptq of every width: codes are one string of bits over words, whole and in parts.
#include <fmt/format.h>

#include <random>
#include <string>
#include <vector>

#include "engine/weights/weight_format.h"
#include "tests/catch.h"
#include "tests/weights/safetensors_builder.h"

namespace tgi::gptq_bits_test {
namespace {

constexpr const char* kModule = "model.layers.0.mlp.up_proj";
constexpr int64_t kRows = 64;
constexpr int64_t kCols = 96;
constexpr int64_t kGroup = 32;

// (lines, count) of codes into words along each line, or across lines where `is_across`.
std::string packed(const std::vector<uint32_t>& codes,
                   int64_t lines,
                   int32_t bits,
                   bool is_across) {
  const int64_t count = std::ssize(codes) / lines;
  const int64_t words = count * bits / 32;
  std::vector<uint32_t> out(static_cast<size_t>(lines * words));
  for (int64_t line = 0; line < lines; ++line) {
    for (int64_t bit = 0; bit < count * bits; ++bit) {
      const uint32_t code = codes[static_cast<size_t>(line * count + bit / bits)];
      const int64_t word = is_across ? bit / 32 * lines + line : line * words + bit / 32;
      out[static_cast<size_t>(word)] |= ((code >> (bit % bits)) & 1U) << (bit % 32);
    }
  }
  return {reinterpret_cast<const char*>(out.data()), out.size() * sizeof(uint32_t)};
}

TEST_CASE("gptq is read with 2, 3, 4 and 8 bits, also where a code is in two words") {
  for (const int32_t bits : {2, 3, 4, 8}) {
    INFO(bits << " bits");
    std::mt19937 random(static_cast<uint32_t>(bits));
    const auto numbers = [&](int64_t count) {
      std::vector<uint32_t> out(static_cast<size_t>(count));
      for (uint32_t& each : out) each = static_cast<uint32_t>(random()) % (1U << bits);
      return out;
    };
    const int64_t groups = kCols / kGroup;
    const std::vector<uint32_t> codes = numbers(kRows * kCols);
    const std::vector<uint32_t> zeros = numbers(groups * kRows);
    std::vector<float> scales;
    for (int64_t i = 0; i < groups * kRows; ++i) scales.push_back(0.5F + static_cast<float>(i));
    const int64_t rows_of_words = kCols * bits / 32;
    const std::string name = kModule;
    const MemorySource files(
        {{"model.safetensors",
          build_safetensors(
              {{name + ".qweight", "I32", fmt::format("[{},{}]", rows_of_words, kRows),
                packed(codes, kRows, bits, true)},
               {name + ".qzeros", "I32", fmt::format("[{},{}]", groups, kRows * bits / 32),
                packed(zeros, groups, bits, false)},
               {name + ".scales", "F32", fmt::format("[{},{}]", groups, kRows),
                f32_bytes(scales)}})}});
    const auto checkpoint = open_checkpoint(files);
    const Json config = {{"quantization_config",
                          {{"quant_method", "gptq"},
                           {"bits", bits},
                           {"group_size", kGroup},
                           {"sym", false},
                           {"checkpoint_format", "gptq"}}}};
    const MatrixSpec spec{.name = name + ".weight", .prefix = "", .rows = kRows, .cols = kCols};
    const WeightFormat& format = find_weight_format(JsonReader(config, ""));
    WeightProblems problems;
    const auto tensors = format.collect(config, *checkpoint, spec, problems);
    REQUIRE(problems.empty());
    const StoredForm form = format.form_of(config, spec);
    CHECK(form.bits == std::max(bits, 4));
    for (const auto& [rows, cols] :
         {std::pair{Range{0, kRows}, Range{0, kCols}}, {Range{9, 23}, Range{32, 64}}}) {
      const HostWeight got = format.slice(config, *checkpoint, spec, tensors, rows, cols,
                                          storage_of(form, cols, DType::kBF16));
      REQUIRE(got.format == "grouped");
      bool same = true;
      for (int64_t row = 0; row < rows.count; ++row) {
        for (int64_t col = 0; col < cols.count; ++col) {
          const int64_t of_row = rows.begin + row;
          const int64_t of_col = cols.begin + col;
          const auto group = static_cast<size_t>(of_col / kGroup * kRows + of_row);
          const int64_t held = row * got.grouped.num_groups + col / kGroup;
          const auto code =
              static_cast<int32_t>(codes[static_cast<size_t>(of_row * kCols + of_col)]);
          // The first layout stores one less, 0 as the largest code.
          const auto zero = static_cast<int32_t>((zeros[group] + 1) % (1U << bits));
          same = same && got.grouped.scales[held] == scales[group] &&
                 got.grouped.codes[row * cols.count + col] - got.grouped.zeros[held] == code - zero;
        }
      }
      CHECK(same);
    }
  }
}

}  // namespace
}  // namespace tgi::gptq_bits_test
