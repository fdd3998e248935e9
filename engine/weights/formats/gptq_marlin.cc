#include "engine/weights/formats/gptq_marlin.h"

#include <fmt/format.h>

#include <array>
#include <string>

namespace tgi {
namespace {

constexpr int64_t kTile = 16;  // inputs, and outputs
constexpr int64_t kTileCodes = kTile * kTile;
constexpr int64_t kPerWord = 8;
constexpr int32_t kOffset = 8;           // of a stored code to a signed one
constexpr int64_t kOutputs = 4 * kTile;  // whose tiles are in one order
constexpr int64_t kOrdered = kOutputs * kTile;

// Where code i of four tiles beside each other, each by inputs, lies: thread by thread of a warp,
// each with what it multiplies of four tiles.
constexpr std::array<int16_t, kOrdered> make_places() {
  constexpr std::array<int64_t, kPerWord> kInWord = {0, 2, 4, 6, 1, 3, 5, 7};
  std::array<int16_t, kOrdered> stored{};  // which code lies there
  int64_t at = 0;
  for (int64_t thread = 0; thread < 32; ++thread) {
    const int64_t first = 2 * (thread % 4);
    for (int64_t tile = 0; tile < 4; ++tile) {
      std::array<int64_t, kPerWord> codes{};
      for (int64_t i = 0; i < kPerWord; ++i) {
        const int64_t input = first + i % 2 + (i % 4 >= 2 ? 8 : 0);
        const int64_t output = thread / 4 + (i >= 4 ? 8 : 0);
        codes[static_cast<size_t>(i)] = tile * kTileCodes + input * kTile + output;
      }
      for (const int64_t i : kInWord) {
        stored[static_cast<size_t>(at++)] = static_cast<int16_t>(codes[static_cast<size_t>(i)]);
      }
    }
  }
  std::array<int16_t, kOrdered> places{};
  for (int64_t i = 0; i < kOrdered; ++i) {
    places[static_cast<size_t>(stored[static_cast<size_t>(i)])] = static_cast<int16_t>(i);
  }
  return places;
}

constexpr std::array<int16_t, kOrdered> kPlaces = make_places();

// Where the scale of output i of 64 lies, by eights; of one group of 32, in pairs.
constexpr int64_t place_of_scale(int64_t output, bool is_one_group) {
  if (!is_one_group) return output / 64 * 64 + output % 8 * 8 + output % 64 / 8;
  const int64_t in = output % 32;
  return output - in + in % 8 / 2 * 8 + in / 8 * 2 + in % 2;
}

}  // namespace

std::vector<const StoredTensor*> collect_marlin(const Checkpoint& checkpoint,
                                                const MatrixSpec& spec,
                                                int64_t group_size,
                                                WeightProblems& problems) {
  const int64_t group = group_size == 0 ? spec.cols : group_size;
  const bool fits = spec.cols % kTile == 0 && spec.rows % kOutputs == 0 && spec.cols % group == 0;
  if (!fits) {
    problems.misshapen.push_back(
        fmt::format("{}: ({}, {}) can't be cut into marlin's tiles of {} outputs x {} inputs and "
                    "groups of {} inputs",
                    spec.name, spec.rows, spec.cols, kOutputs, kTile, group));
    return {};
  }
  ArrayCollector arrays(checkpoint, spec, problems);
  arrays.require("B", {"I32", "U32"}, {{spec.cols / kTile, spec.rows * kTile / kPerWord}});
  arrays.require("s", {"F16", "BF16", "F32"}, {{spec.cols / group, spec.rows}});
  return arrays.take();
}

void read_marlin(const Checkpoint& checkpoint,
                 const MatrixSpec& spec,
                 std::span<const StoredTensor* const> tensors,
                 Range rows,
                 Range cols,
                 int64_t first_group,
                 DecodedBlock& block) {
  const StoredTensor& stored_scales = *find_array(tensors, "s");
  const ArrayReader scales(checkpoint, stored_scales);
  const bool is_one_group = stored_scales.shape.front() == 1;
  for (int64_t group = 0; group < block.num_groups; ++group) {
    for (int64_t row = 0; row < rows.count; ++row) {
      const int64_t place = place_of_scale(rows.begin + row, is_one_group);
      block.scales[static_cast<size_t>(row * block.num_groups + group)] =
          scales.number((first_group + group) * spec.rows + place);
    }
  }
  const ArrayReader words(checkpoint, *find_array(tensors, "B"));
  decode_parallel(rows.count, cols.count, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t output = rows.begin + row;
      for (int64_t col = 0; col < cols.count; ++col) {
        const int64_t input = cols.begin + col;
        const int64_t in_order =
            output % kOutputs / kTile * kTileCodes + input % kTile * kTile + output % kTile;
        const int64_t code = input / kTile * spec.rows * kTile + output / kOutputs * kOrdered +
                             kPlaces[static_cast<size_t>(in_order)];
        const uint32_t word = words.word(code / kPerWord) >> (code % kPerWord * 4);
        block.codes[static_cast<size_t>(row * cols.count + col)] =
            static_cast<int8_t>(static_cast<int32_t>(word & 15U) - kOffset);
      }
    }
  });
}

bool is_marlin_workspace(std::string_view name) {
  return name.ends_with(".workspace");
}

}  // namespace tgi
