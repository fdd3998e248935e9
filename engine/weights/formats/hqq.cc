// Integers of 1 to 8 bits as HQQ stores them, each matrix with all that is to be known of it:
//   W_q      (rows of words, columns)  U8 or I32, or (view_as_float) the same bytes as another type
//   scale, zero                        of each group, F16, BF16 or F32: scale * (code - zero)
//   shape    I64 (2)                   (out, in)
//   axis     I32 ()                    1: the matrix is seen as rows of one group each, 0: as
//   columns packing  U8 (letters)              "4bit_u8" and so on nbits, group_size and what else
//   is in HQQLinear.state_dict, as scalars and letters
// A word holds codes of as many rows, which lie as far apart as there are rows of words; the first
// is in the highest bits. Zero points are no integers, so all of it is decoded.
//
// Source: core/quantize.py and core/bitpack.py of https://github.com/mobiusml/hqq 0.2, HqqConfig of
// `transformers`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/known_fields.h"
#include "engine/weights/formats/dense.h"
#include "engine/weights/formats/module_names.h"
#include "engine/weights/formats/quantization_fields.h"
#include "engine/weights/formats/stored_arrays.h"

namespace tgi {
namespace hqq_format {
namespace {

constexpr auto kFields = std::to_array<KnownField>({
    harmless("quant_config", "the tensors of each matrix say it"),
    read_or_null("skip_modules"),
});

struct Packing {
  std::string_view name;
  int32_t bits;
  int64_t per_word;
  int64_t word_bytes;
};

constexpr auto kPackings = std::to_array<Packing>({
    {"8bit_u8", 8, 1, 1},
    {"4bit_u8", 4, 2, 1},
    {"3bit_32", 3, 10, 4},
    {"2bit_u8", 2, 4, 1},
    {"1bit_u8", 1, 8, 1},
});

// What is stored beside a matrix and changes nothing of its numbers, or is said by others of it.
constexpr std::string_view kBeside[] = {
    "nbits",    "unpack_view_dtype", "view_as_float",      "compute_dtype",      "offload_meta",
    "optimize", "round_zero",        "encoded_state_dict", "stores_quant_config"};

bool claims(const JsonReader& config) {
  if (quant_method_of(config) != "hqq") return false;
  const JsonReader quantization = quantization_of(config);
  (void)quantization.strings_or_empty("skip_modules");
  check_quantization(quantization, kFields, "hqq");
  return true;
}

// Memory is planned by this; what a matrix is read as is up to its tensors.
StoredForm form_of(const Json& config, const MatrixSpec& spec) {
  if (spec.kind != MatrixKind::kLayer) return {};
  const std::vector<std::string> plain = quantization_of(config).strings_or_empty("skip_modules");
  const bool is_plain = any_is_part_of_module(plain, module_name(spec));
  return {.quantised_as = is_plain ? "" : "hqq"};
}

const StoredTensor* find_part(const Checkpoint& checkpoint,
                              const MatrixSpec& spec,
                              std::string_view part) {
  return find_by_any_name(checkpoint, fmt::format("{}.{}", module_name(spec), part), spec.prefix);
}

[[noreturn]] void fail(const StoredTensor& tensor, const std::string& message) {
  throw Error(Code::kInvalidArgument, fmt::format("tensor {}: {}", tensor.name, message));
}

template <typename T>
T element(const Checkpoint& checkpoint, const StoredTensor& tensor, int64_t index) {
  T out{};
  std::memcpy(&out, checkpoint.bytes(tensor).data() + static_cast<size_t>(index) * sizeof out,
              sizeof out);
  return out;
}

// Of a tensor of whole numbers.
int64_t whole_number(const Checkpoint& checkpoint, const StoredTensor& tensor, int64_t index = 0) {
  if (index >= tensor.num_elements()) fail(tensor, "expected a number, got none");
  if (tensor.dtype_name == "U8") return element<uint8_t>(checkpoint, tensor, index);
  if (tensor.dtype_name == "I32") return element<int32_t>(checkpoint, tensor, index);
  if (tensor.dtype_name == "I64") return element<int64_t>(checkpoint, tensor, index);
  fail(tensor, fmt::format("expected U8, I32 or I64, got {}", tensor.dtype_name));
}

const Packing& packing_of(const Checkpoint& checkpoint, const StoredTensor& tensor) {
  std::string name;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    name.push_back(static_cast<char>(whole_number(checkpoint, tensor, i)));
  }
  std::string known;
  for (const Packing& packing : kPackings) {
    if (packing.name == name) return packing;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", packing.name);
  }
  throw Error(Code::kUnsupported,
              fmt::format("tensor {}: hqq packed as \"{}\" can't be loaded; supported: {}",
                          tensor.name, name, known));
}

// How the codes of a matrix lie. Seen as groups it has `rows` and `cols`, in the order of the
// elements.
struct Layout {
  const Packing* packing = nullptr;
  bool groups_are_rows = true;
  int64_t rows = 0;
  int64_t cols = 0;

  int64_t rows_of_words() const { return (rows + packing->per_word - 1) / packing->per_word; }
  int64_t num_groups() const { return groups_are_rows ? rows : cols; }
};

// A flag that is not there is not set.
bool is_set(const Checkpoint& checkpoint, const MatrixSpec& spec, std::string_view part) {
  const StoredTensor* tensor = find_part(checkpoint, spec, part);
  return tensor != nullptr && whole_number(checkpoint, *tensor) != 0;
}

void check_flags(const Checkpoint& checkpoint, const MatrixSpec& spec) {
  for (const char* part : {"quant_scale", "quant_zero"}) {
    if (!is_set(checkpoint, spec, part)) continue;
    throw Error(Code::kUnsupported,
                fmt::format("tensor {}: scales and zero points that are quantised too can't be "
                            "loaded",
                            find_part(checkpoint, spec, part)->name));
  }
  const StoredTensor* by_channel = find_part(checkpoint, spec, "channel_wise");
  if (by_channel == nullptr || whole_number(checkpoint, *by_channel) != 0) return;
  throw Error(
      Code::kUnsupported,
      fmt::format("tensor {}: one scale for a whole matrix can't be loaded", by_channel->name));
}

// REQUIRES: the tensors that say it are there.
Layout layout_of(const Checkpoint& checkpoint, const MatrixSpec& spec) {
  check_flags(checkpoint, spec);
  Layout out{.packing = &packing_of(checkpoint, *find_part(checkpoint, spec, "packing"))};
  const StoredTensor& axis = *find_part(checkpoint, spec, "axis");
  const int64_t number = whole_number(checkpoint, axis);
  if (number != 0 && number != 1) fail(axis, fmt::format("expected 0 or 1, got {}", number));
  out.groups_are_rows = number == 1;
  out.rows = stored_rows(spec);
  out.cols = spec.cols;
  const StoredTensor* group = find_part(checkpoint, spec, "group_size");
  if (group == nullptr) return out;  // a row or a column of the matrix is one
  const int64_t size = whole_number(checkpoint, *group);
  const int64_t count = out.rows * out.cols;
  if (size <= 0 || count % size != 0) {
    fail(*group, fmt::format("expected a number that divides the {} elements of {}, got {}", count,
                             shape_text(std::array{out.rows, out.cols}), size));
  }
  out.rows = out.groups_are_rows ? count / size : size;
  out.cols = count / out.rows;
  return out;
}

bool has_shape(const Checkpoint& checkpoint, const MatrixSpec& spec, WeightProblems& problems) {
  const StoredTensor& tensor = *find_part(checkpoint, spec, "shape");
  std::vector<int64_t> shape;
  for (int64_t i = 0; i < std::min<int64_t>(tensor.num_elements(), 8); ++i) {
    shape.push_back(whole_number(checkpoint, tensor, i));
  }
  const std::vector<int64_t> expected = {stored_rows(spec), spec.cols};
  if (shape == expected) return true;
  problems.misshapen.push_back(
      fmt::format("{}: expected {}, got {}", tensor.name, shape_text(expected), shape_text(shape)));
  return false;
}

std::vector<const StoredTensor*> collect(const Json& /*config*/,
                                         const Checkpoint& checkpoint,
                                         const MatrixSpec& spec,
                                         WeightProblems& problems) {
  const StoredTensor* codes = find_part(checkpoint, spec, "W_q");
  if (codes == nullptr || spec.kind == MatrixKind::kEmbedding) {
    return collect_dense(checkpoint, spec, problems);
  }
  std::vector<const StoredTensor*> out = {codes};
  bool is_whole = true;
  for (const char* part : {"shape", "axis", "packing"}) {
    const StoredTensor* tensor = find_part(checkpoint, spec, part);
    if (tensor == nullptr)
      problems.missing.push_back(fmt::format("{}.{}", module_name(spec), part));
    is_whole = is_whole && tensor != nullptr;
    out.push_back(tensor);
  }
  if (!is_whole || !has_shape(checkpoint, spec, problems)) return {};
  const Layout layout = layout_of(checkpoint, spec);
  ArrayCollector arrays(checkpoint, spec, problems);
  const std::vector<int64_t> groups = layout.groups_are_rows
                                          ? std::vector<int64_t>{layout.num_groups(), 1}
                                          : std::vector<int64_t>{1, layout.num_groups()};
  arrays.require("scale", {"F16", "BF16", "F32"}, {groups});
  arrays.require("zero", {"F16", "BF16", "F32"}, {groups});
  const int64_t num_bytes = layout.rows_of_words() * layout.cols * layout.packing->word_bytes;
  if (std::ssize(checkpoint.bytes(*codes)) != num_bytes) {
    problems.misshapen.push_back(
        fmt::format("{}: expected {} rows of {} words of {} bytes, got {} of {}", codes->name,
                    layout.rows_of_words(), layout.cols, layout.packing->word_bytes,
                    shape_text(codes->shape), codes->dtype_name));
  }
  for (const StoredTensor* tensor : arrays.take()) out.push_back(tensor);
  for (const std::string_view part : kBeside) {
    if (const StoredTensor* tensor = find_part(checkpoint, spec, part)) out.push_back(tensor);
  }
  for (const char* part : {"group_size", "quant_scale", "quant_zero", "channel_wise"}) {
    if (const StoredTensor* tensor = find_part(checkpoint, spec, part)) out.push_back(tensor);
  }
  return out;
}

// Follows the elements of the matrix in their order, from one on.
class CodeReader {
 public:
  CodeReader(const ArrayReader& codes, const Layout& layout, int64_t element)
      : codes_(codes),
        layout_(layout),
        row_(element / layout.cols),
        col_(element % layout.cols),
        mask_((1U << layout.packing->bits) - 1) {
    begin_row();
  }

  int64_t group() const { return layout_.groups_are_rows ? row_ : col_; }
  uint32_t next() {
    const int64_t word = first_word_ + col_;
    const bool is_wide = layout_.packing->word_bytes == 4;
    const uint32_t code = (is_wide ? codes_.word(word) : codes_.byte(word)) >> shift_;
    if (++col_ == layout_.cols) {
      col_ = 0;
      ++row_;
      begin_row();
    }
    return code & mask_;
  }

 private:
  void begin_row() {
    const int64_t rows_of_words = layout_.rows_of_words();
    const Packing& packing = *layout_.packing;
    first_word_ = row_ % rows_of_words * layout_.cols;
    shift_ = static_cast<int32_t>((packing.per_word - 1 - row_ / rows_of_words) * packing.bits);
  }

  const ArrayReader& codes_;
  const Layout& layout_;
  int64_t row_;
  int64_t col_;
  uint32_t mask_;
  int64_t first_word_ = 0;
  int32_t shift_ = 0;
};

std::vector<float> numbers_of(const Checkpoint& checkpoint, const StoredTensor& tensor) {
  const ArrayReader reader(checkpoint, tensor);
  std::vector<float> out(static_cast<size_t>(tensor.num_elements()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = reader.number(static_cast<int64_t>(i));
  return out;
}

HostWeight slice(const Json& /*config*/,
                 const Checkpoint& checkpoint,
                 const MatrixSpec& spec,
                 std::span<const StoredTensor* const> tensors,
                 Range rows,
                 Range cols,
                 const MatrixStorage& /*storage*/) {
  if (tensors.size() == 1) return slice_dense(checkpoint, spec, *tensors.front(), rows, cols);
  const Layout layout = layout_of(checkpoint, spec);
  const ArrayReader codes(checkpoint, *tensors.front());
  const std::vector<float> scales = numbers_of(checkpoint, *find_array(tensors, "scale"));
  const std::vector<float> zeros = numbers_of(checkpoint, *find_array(tensors, "zero"));
  ScratchVector<float> values(static_cast<size_t>(rows.count * cols.count));
  decode_parallel(rows.count, cols.count, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* to = values.data() + row * cols.count;
      const int64_t first = stored_row(spec, rows.begin + row) * spec.cols + cols.begin;
      CodeReader reader(codes, layout, first);
      for (int64_t col = 0; col < cols.count; ++col) {
        const auto group = static_cast<size_t>(reader.group());
        to[col] = (static_cast<float>(reader.next()) - zeros[group]) * scales[group];
      }
    }
  });
  return to_host_weight(spec.name, rows.count, cols.count, std::move(values));
}

}  // namespace
}  // namespace hqq_format

template <>
const WeightFormat& weight_format<"hqq">() {
  static constexpr WeightFormat kThis = {
      .name = "hqq",
      .claims = hqq_format::claims,
      .form_of = hqq_format::form_of,
      .collect = hqq_format::collect,
      .slice = hqq_format::slice,
      .may_ignore = nullptr,
  };
  return kThis;
}

}  // namespace tgi
