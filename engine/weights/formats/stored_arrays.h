// What the quantised formats share: finding and checking the arrays that a matrix is stored in,
// reading their elements, and handing on a decoded block as the device wants it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/weights/scratch.h"
#include "engine/weights/weight_format.h"

namespace tgi {

// "model.layers.0.mlp.up_proj": the tensor's name without ".weight".
std::string_view module_name(const MatrixSpec& spec);

// Of a module of which the matrix is some of the rows: how many it has, and which of them is row
// `row` of the matrix.
int64_t stored_rows(const MatrixSpec& spec);
int64_t stored_row(const MatrixSpec& spec, int64_t row);

// Collects the arrays of one matrix.
class ArrayCollector {
 public:
  // `joint` stands between the module's name and a suffix.
  ArrayCollector(const Checkpoint& checkpoint,
                 const MatrixSpec& spec,
                 WeightProblems& problems,
                 std::string_view joint = ".")
      : checkpoint_(checkpoint), spec_(spec), problems_(problems), joint_(joint) {}

  // "MODULE.suffix", which must be there, of one of these types (as safetensors spells them) and
  // one of these shapes; else that is added to the problems.
  void require(std::string_view suffix,
               std::initializer_list<std::string_view> dtypes,
               std::initializer_list<std::vector<int64_t>> shapes);
  // The same where it may be absent; says whether it is there.
  bool allow(std::string_view suffix,
             std::initializer_list<std::string_view> dtypes,
             std::initializer_list<std::vector<int64_t>> shapes);

  std::vector<const StoredTensor*> take() { return std::move(arrays_); }

 private:
  void check(const StoredTensor& tensor,
             std::initializer_list<std::string_view> dtypes,
             std::initializer_list<std::vector<int64_t>> shapes);

  const Checkpoint& checkpoint_;
  const MatrixSpec& spec_;
  WeightProblems& problems_;
  std::string_view joint_;
  std::vector<const StoredTensor*> arrays_;
};

// The one of a matrix's collected arrays whose name ends so; null when it is not there.
const StoredTensor* find_array(std::span<const StoredTensor* const> arrays,
                               std::string_view suffix);

// Elements of a stored array, which need not be aligned.
class ArrayReader {
 public:
  ArrayReader(const Checkpoint& checkpoint, const StoredTensor& tensor)
      : tensor_(&tensor), data_(checkpoint.bytes(tensor).data()) {}

  const std::string& name() const { return tensor_->name; }
  uint8_t byte(int64_t index) const { return std::to_integer<uint8_t>(data_[index]); }
  uint16_t half(int64_t index) const { return read<uint16_t>(index); }
  uint32_t word(int64_t index) const { return read<uint32_t>(index); }
  // What is in a word from bit `shift` on; where that is less than `count` bits, also the first
  // ones of the word that lies `stride` behind it.
  uint32_t bits_from(int64_t index, int64_t stride, int32_t shift, int32_t count) const {
    uint32_t out = word(index) >> shift;
    if (shift + count > 32) out |= word(index + stride) << (32 - shift);
    return out;
  }
  // An element of type F32, F16 or BF16. Throws kInvalidArgument naming tensor and index when it is
  // not finite.
  float number(int64_t index) const;

 private:
  template <typename T>
  T read(int64_t index) const {
    T value{};
    std::memcpy(&value, data_ + static_cast<size_t>(index) * sizeof value, sizeof value);
    return value;
  }

  const StoredTensor* tensor_;
  const std::byte* data_;
};

// A block of a matrix as integers. Whether their groups are contiguous and how large is up to
// whoever takes it.
struct DecodedBlock {
  std::string name;  // for messages
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t num_groups = 0;
  std::vector<int32_t> group_of;  // (cols)
  ScratchVector<int8_t> codes;    // (rows, cols)
  std::vector<float> scales;      // (rows, num_groups)
  std::vector<int8_t> zeros;      // (rows, num_groups), or empty
  std::vector<float> minima;      // likewise
  // (optional) What scales and minima are made of, see ScaleFactors; REQUIRES: groups and blocks of
  // kFactorCols begin with the columns.
  std::vector<float> block_scales;   // (rows, num_blocks)
  std::vector<int8_t> group_scales;  // as scales
  std::vector<float> block_minima;   // of those without minima empty
  std::vector<int8_t> group_minima;

  DecodedBlock(std::string_view what, Range row_range, Range col_range);
  // Groups of `group_size` columns from the matrix's first one on; 0: one per row. Returns the
  // number of the first group in the matrix.
  int64_t cut_groups(Range col_range, int64_t group_size, bool with_zeros);
};

// The block as integers in groups of storage.group_size, or as their values in f32.
HostWeight to_host_weight(DecodedBlock block, const MatrixStorage& storage);

// (rows, cols) of numbers.
HostWeight to_host_weight(std::string_view name,
                          int64_t rows,
                          int64_t cols,
                          ScratchVector<float> values);

// Calls fn(begin, end) for parts of [0, count), on several threads where that pays. What fn throws
// is thrown here.
void decode_parallel(int64_t count,
                     int64_t elements_each,
                     const std::function<void(int64_t begin, int64_t end)>& fn);

}  // namespace tgi
