// Integers of 2 to 8 bits as ExLlamaV2 stores them, those of one matrix in several widths:
//   q_weight     I32 (words, out')      the codes of each output as one string of bits, group after
//                                       group: out' is out rounded up to 32
//   q_groups     I16 (2 groups)         bits and first row of words, of each group
//   q_scale      I32 (groups, out' / 8) codes of 4 bits for the scales
//   q_scale_max  F16 (groups)
//   q_invperm    I32 (in)               where in that order an input is
//   q_perm       (optional) the same the other way around
// A weight is scale * (code - half of the codes), a scale q_scale_max / 256 * (code + 1)^2,
// computed in f16. The product is not rounded again, as in the kernels for few rows there. The
// inputs of a group are scattered, so all of it is decoded. Which matrices are stored so is up to
// the tensors.
//
// Source: AdaptiveGPTQ.pack (converter) and reconstruct_kernel of
// https://github.com/turboderp-org/exllamav2 0.3.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/known_fields.h"
#include "engine/tensor/half.h"
#include "engine/weights/formats/dense.h"
#include "engine/weights/formats/quantization_fields.h"
#include "engine/weights/formats/stored_arrays.h"

namespace tgi {
namespace exl2_format {
namespace {

constexpr int64_t kPadding = 32;  // outputs are padded to a multiple
constexpr std::string_view kTensorsSay = "the tensors of each matrix say it";
constexpr std::string_view kHowMade = "how the checkpoint was made";

constexpr auto kFields = std::to_array<KnownField>({
    harmless("bits", kTensorsSay),
    harmless("head_bits", kTensorsSay),
    harmless("version", kHowMade),
    harmless("calibration", kHowMade),
});

bool claims(const JsonReader& config) {
  if (quant_method_of(config) != "exl2") return false;
  check_quantization(quantization_of(config), kFields, "exl2");
  return true;
}

// Memory is planned by this; what a matrix is read as is up to its tensors.
StoredForm form_of(const Json& /*config*/, const MatrixSpec& spec) {
  return {.quantised_as = spec.kind == MatrixKind::kEmbedding ? "" : "exl2"};
}

int64_t padded(int64_t outputs) {
  return (outputs + kPadding - 1) / kPadding * kPadding;
}

const StoredTensor* find_part(const Checkpoint& checkpoint,
                              const MatrixSpec& spec,
                              std::string_view part) {
  return find_by_any_name(checkpoint, fmt::format("{}.{}", module_name(spec), part), spec.prefix);
}

int64_t first_size(const StoredTensor* tensor) {
  return tensor == nullptr || tensor->shape.empty() ? 0 : tensor->shape[0];
}

std::vector<const StoredTensor*> collect(const Json& /*config*/,
                                         const Checkpoint& checkpoint,
                                         const MatrixSpec& spec,
                                         WeightProblems& problems) {
  const StoredTensor* codes = find_part(checkpoint, spec, "q_weight");
  if (codes == nullptr || spec.kind == MatrixKind::kEmbedding) {
    return collect_dense(checkpoint, spec, problems);
  }
  const int64_t outputs = padded(stored_rows(spec));
  const int64_t groups = first_size(find_part(checkpoint, spec, "q_scale_max"));
  ArrayCollector arrays(checkpoint, spec, problems);
  arrays.require("q_scale_max", {"F16"}, {{groups}});
  if (groups == 0) return {};
  arrays.require("q_weight", {"I32"}, {{first_size(codes), outputs}});
  arrays.require("q_groups", {"I16"}, {{2 * groups}});
  arrays.require("q_scale", {"I32"}, {{groups, outputs / 8}});
  arrays.require("q_invperm", {"I32"}, {{spec.cols}});
  arrays.allow("q_perm", {"I32", "I16"}, {{spec.cols}});
  return arrays.take();
}

struct Group {
  int32_t bits = 0;
  int64_t first_word = 0;  // row of q_weight
  int64_t first_input = 0;
};

[[noreturn]] void fail(const StoredTensor& tensor, const std::string& message) {
  throw Error(Code::kInvalidArgument,
              fmt::format("tensor {}: {}; is the file damaged?", tensor.name, message));
}

// In their order; they hold all inputs and all words.
std::vector<Group> read_groups(const Checkpoint& checkpoint,
                               const StoredTensor& tensor,
                               int64_t num_words,
                               int64_t num_inputs) {
  const ArrayReader reader(checkpoint, tensor);
  std::vector<Group> out(static_cast<size_t>(tensor.num_elements() / 2));
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].bits = reader.half(static_cast<int64_t>(2 * i));
    out[i].first_word = reader.half(static_cast<int64_t>(2 * i + 1));
  }
  int64_t inputs = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    Group& group = out[i];
    constexpr std::array kBits = {2, 3, 4, 5, 6, 8};
    if (std::ranges::find(kBits, group.bits) == kBits.end()) {
      fail(tensor, fmt::format("group {} has {} bits, expected 2, 3, 4, 5, 6 or 8", i, group.bits));
    }
    if (i == 0 && group.first_word != 0) {
      fail(tensor,
           fmt::format("group 0 begins at row {} of q_weight, expected 0", group.first_word));
    }
    const bool is_last = i + 1 == out.size();
    const int64_t end = is_last ? num_words : out[i + 1].first_word;
    const int64_t words = end - group.first_word;
    const int64_t held = words * 32 / group.bits;
    // The last word of a matrix may be filled up.
    const int64_t count = is_last ? num_inputs - inputs : held;
    const bool is_whole = words == (count * group.bits + 31) / 32;
    const bool leaves_some =
        is_last || (held < num_inputs - inputs && words * 32 % group.bits == 0);
    if (words <= 0 || count <= 0 || !is_whole || !leaves_some) {
      fail(tensor, fmt::format("group {} of {} bits has rows {} to {} of q_weight, which does not "
                               "fit inputs {} of {} on",
                               i, group.bits, group.first_word, end, inputs, num_inputs));
    }
    group.first_input = inputs;
    inputs += count;
  }
  if (out.empty()) fail(tensor, "expected at least one group, got none");
  return out;
}

// Where the codes of an input are.
struct Place {
  int64_t group = 0;
  int64_t word = 0;  // row of q_weight
  int32_t shift = 0;
  int32_t bits = 0;
};

// Of the inputs `cols`. Throws unless the order of all is one.
std::vector<Place> read_places(const Checkpoint& checkpoint,
                               const StoredTensor& order,
                               const std::vector<Group>& groups,
                               Range cols) {
  const ArrayReader reader(checkpoint, order);
  const int64_t num_inputs = order.num_elements();
  std::vector<bool> taken(static_cast<size_t>(num_inputs));
  std::vector<Place> out(static_cast<size_t>(cols.count));
  for (int64_t col = 0; col < num_inputs; ++col) {
    const int64_t at = static_cast<int32_t>(reader.word(col));
    if (at < 0 || at >= num_inputs || taken[static_cast<size_t>(at)]) {
      fail(order, fmt::format("input {} is number {} in the order of the codes, expected each of "
                              "0 to {} once",
                              col, at, num_inputs - 1));
    }
    taken[static_cast<size_t>(at)] = true;
    if (col < cols.begin || col >= cols.begin + cols.count) continue;
    const auto after = std::ranges::upper_bound(groups, at, {}, &Group::first_input);
    const Group& group = *(after - 1);
    const int64_t bit = (at - group.first_input) * group.bits;
    out[static_cast<size_t>(col - cols.begin)] = {.group = after - 1 - groups.begin(),
                                                  .word = group.first_word + bit / 32,
                                                  .shift = static_cast<int32_t>(bit % 32),
                                                  .bits = group.bits};
  }
  return out;
}

float round_to_f16(float value) {
  return f16_to_f32(f32_to_f16(value));
}

// Of the outputs `rows`: (groups, rows.count).
std::vector<float> read_scales(const Checkpoint& checkpoint,
                               std::span<const StoredTensor* const> tensors,
                               const MatrixSpec& spec,
                               Range rows) {
  const ArrayReader codes(checkpoint, *find_array(tensors, "q_scale"));
  const StoredTensor& largest = *find_array(tensors, "q_scale_max");
  const ArrayReader numbers(checkpoint, largest);
  const int64_t words = padded(stored_rows(spec)) / 8;
  std::vector<float> out;
  out.reserve(static_cast<size_t>(largest.num_elements() * rows.count));
  for (int64_t group = 0; group < largest.num_elements(); ++group) {
    const float step = round_to_f16(numbers.number(group) / 256);
    for (int64_t row = 0; row < rows.count; ++row) {
      const int64_t output = stored_row(spec, rows.begin + row);
      const uint32_t word = codes.word(group * words + output / 8);
      const auto code = static_cast<int32_t>(word >> (output % 8 * 4) & 15) + 1;
      out.push_back(round_to_f16(static_cast<float>(code * code) * step));
    }
  }
  return out;
}

// Less half of the codes.
float code_of(const ArrayReader& words, int64_t at, int64_t stride, const Place& place) {
  const uint32_t mask = (1U << place.bits) - 1;
  const uint32_t code = words.bits_from(at, stride, place.shift, place.bits) & mask;
  return static_cast<float>(static_cast<int32_t>(code) - (1 << (place.bits - 1)));
}

HostWeight slice(const Json& /*config*/,
                 const Checkpoint& checkpoint,
                 const MatrixSpec& spec,
                 std::span<const StoredTensor* const> tensors,
                 Range rows,
                 Range cols,
                 const MatrixStorage& /*storage*/) {
  if (tensors.size() == 1) return slice_dense(checkpoint, spec, *tensors.front(), rows, cols);
  const StoredTensor& words = *find_array(tensors, "q_weight");
  const std::vector<Group> groups =
      read_groups(checkpoint, *find_array(tensors, "q_groups"), words.shape[0], spec.cols);
  const std::vector<Place> places =
      read_places(checkpoint, *find_array(tensors, "q_invperm"), groups, cols);
  const std::vector<float> scales = read_scales(checkpoint, tensors, spec, rows);
  const ArrayReader reader(checkpoint, words);
  const int64_t stride = words.shape[1];
  ScratchVector<float> values(static_cast<size_t>(rows.count * cols.count));
  // A tile of outputs at a time, so that the rows that are written stay in the cache.
  constexpr int64_t kTile = 64;
  const int64_t num_tiles = (rows.count + kTile - 1) / kTile;
  decode_parallel(num_tiles, kTile * cols.count, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t last = std::min(rows.count, (tile + 1) * kTile);
      for (int64_t col = 0; col < cols.count; ++col) {
        const Place& place = places[static_cast<size_t>(col)];
        const float* const scale = scales.data() + place.group * rows.count;
        for (int64_t row = tile * kTile; row < last; ++row) {
          const int64_t at = place.word * stride + stored_row(spec, rows.begin + row);
          values[static_cast<size_t>(row * cols.count + col)] =
              code_of(reader, at, stride, place) * scale[row];
        }
      }
    }
  });
  return to_host_weight(spec.name, rows.count, cols.count, std::move(values));
}

// A head that is the embedding is stored rounded beside it.
bool may_ignore(const Checkpoint& /*checkpoint*/, const StoredTensor& tensor) {
  constexpr std::array<std::string_view, 6> kHead = {"lm_head.q_weight",    "lm_head.q_scale",
                                                     "lm_head.q_scale_max", "lm_head.q_groups",
                                                     "lm_head.q_invperm",   "lm_head.q_perm"};
  return std::ranges::find(kHead, tensor.name) != kHead.end();
}

}  // namespace
}  // namespace exl2_format

template <>
const WeightFormat& weight_format<"exl2">() {
  static constexpr WeightFormat kThis = {
      .name = "exl2",
      .claims = exl2_format::claims,
      .form_of = exl2_format::form_of,
      .collect = exl2_format::collect,
      .slice = exl2_format::slice,
      .may_ignore = exl2_format::may_ignore,
  };
  return kThis;
}

}  // namespace tgi
