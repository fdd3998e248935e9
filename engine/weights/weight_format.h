// How the matrices of a checkpoint are stored: plainly, or in one of the quantised formats. A
// format is one file in engine/weights/formats/ and its name in base/known_names.h; neither the
// model nor the loader knows which one is in use.
//
// A device sees one of two forms (engine/tensor/weight.h): a quantised matrix reaches it as
// integers in groups where the device can hold them exactly, else as f32 that it rounds once. Which
// of the two is settled here from the config alone, so that memory can be planned before anything
// is read.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/literal.h"
#include "engine/tensor/weight.h"
#include "engine/weights/checkpoint.h"

namespace tgi {

// Where a matrix is used: formats leave embeddings alone, and most of them the head.
enum class MatrixKind : uint8_t { kLayer, kHead, kEmbedding };

// Which of the matrices of a tensor, of three dimensions or with their rows one below the other.
struct StackPlace {
  int64_t index = 0;
  int64_t count = 0;  // 0: the tensor holds one matrix
  bool is_flat = false;

  // Of the tensor, from that of one matrix.
  std::vector<int64_t> shape_of_all(std::vector<int64_t> shape) const {
    if (count > 0 && is_flat) shape[0] *= count;
    if (count > 0 && !is_flat) shape.insert(shape.begin(), count);
    return shape;
  }
};

// Matrices whose rows alternate in one tensor: row r of this one is row r * count + index of all.
struct Turns {
  int64_t index = 0;
  int64_t count = 1;
};

// A matrix that the model needs, whole, under the name it has in a dense checkpoint.
struct MatrixSpec {
  std::string name;  // "model.layers.0.self_attn.q_proj.weight"
  std::string_view prefix;
  int64_t rows = 0;         // out_features
  int64_t cols = 0;         // in_features
  bool transposed = false;  // a dense checkpoint stores it as (cols, rows)
  StackPlace stack{};
  Turns turns{};
  MatrixKind kind = MatrixKind::kLayer;
  // Few rows that decide where a token goes. Devices hold them as numbers, however they are stored:
  // formats may look which of both it is.
  bool is_choice = false;
};

// What a checkpoint holds of a matrix, by its config.
struct StoredForm {
  std::string quantised_as{};  // for people: "gptq, 4 bits in groups of 128"; empty: plain numbers
  int32_t bits = 0;        // 4, 5, 6 or 8: integers that a device can take over; 0: to be decoded
  int64_t group_size = 0;  // columns; 0: one scale per row
  bool zero_points = false;
  bool minima = false;
  bool is_mxfp4 = false;  // the 4 bits are those of Quantization::kMxfp4
  bool is_iq4 = false;    // integers of 8 bits are some of kIq4Codes
  bool is_f8 = false;     // the 8 bits are floats, e4m3: for devices that keep those
  // The 4 bits are places in its table (value_table): for devices that keep those.
  Quantization table = Quantization::kNone;
  ScaleForm scales = ScaleForm::kF32;
};

// [begin, begin + count)
struct Range {
  int64_t begin = 0;
  int64_t count = 0;

  auto operator<=>(const Range&) const = default;
};

// What is wrong with a checkpoint, gathered so that one error can tell all of it.
struct WeightProblems {
  std::vector<std::string> missing;      // names
  std::vector<std::string> misshapen;    // "name: expected (..), got (..)"
  std::vector<std::string> unsupported;  // "name: element type I64"

  bool empty() const { return missing.empty() && misshapen.empty() && unsupported.empty(); }
};

// An array of bytes in a checkpoint of random numbers.
struct RandomArray {
  std::string name;
  std::vector<int64_t> shape;
  std::optional<uint8_t> all{};  // of the bytes; else they are random
};

struct WeightFormat {
  std::string_view name;
  bool is_quantised = true;

  // Whether config.json (by its quantization_config) asks for this format. Throws kUnsupported or
  // kInvalidArgument when it does, but in a way that can't be loaded: what, and what can.
  bool (*claims)(const JsonReader& config);

  // How the matrix is stored, from the config alone: a quantised checkpoint leaves some plain.
  StoredForm (*form_of)(const Json& config, const MatrixSpec& spec);

  // The tensors that store the matrix. What is not there or does not fit is added to `problems`;
  // the result is then empty or partial and not for `slice`.
  std::vector<const StoredTensor*> (*collect)(const Json& config,
                                              const Checkpoint& checkpoint,
                                              const MatrixSpec& spec,
                                              WeightProblems& problems);

  // A block of the matrix: as integers when `storage` says so (it came from storage_of), else as
  // numbers; views of the stored bytes where possible. Throws kInvalidArgument naming the tensor
  // for contents that make no sense, such as a scale that is not a number. REQUIRES: `tensors` came
  // from a collect without problems.
  HostWeight (*slice)(const Json& config,
                      const Checkpoint& checkpoint,
                      const MatrixSpec& spec,
                      std::span<const StoredTensor* const> tensors,
                      Range rows,
                      Range cols,
                      const MatrixStorage& storage);

  // (optional) Whether a tensor that the model has no use for is harmless all the same.
  bool (*may_ignore)(const Checkpoint& checkpoint, const StoredTensor& tensor) = nullptr;

  // (optional) What stores the matrix in a checkpoint of random numbers; nothing where it is plain.
  std::vector<RandomArray> (*random_arrays)(const Json& config, const MatrixSpec& spec) = nullptr;
};

// What holds the parts of one matrix that are stored in different ways: integers of the most bits
// any of them needs, in groups that divide theirs. Of 0 bits where there is no such form.
StoredForm common_form(std::span<const StoredForm> forms);

// How a device holds columns `cols` of a matrix of this form: integers in groups of a size that
// devices have kernels for and that divides the stored groups and their offset, or `dtype`.
// `keeps`: what the device has kernels for beside integers.
struct KeptForms {
  bool f8 = false;
  bool tables = false;
};
MatrixStorage storage_of(const StoredForm& form, Range cols, DType dtype, KeptForms keeps = {});

// The format of that name: a specialisation in its own file, for "dense" and for each name of
// kWeightFormatNames. A name that no file has a format for does not link.
template <Literal kName>
const WeightFormat& weight_format();

// All formats, in the order they are asked: dense, then as kWeightFormatNames.
std::span<const WeightFormat* const> weight_formats();

// The format that config.json names. Throws kUnsupported naming the quant_method when no format
// claims it.
const WeightFormat& find_weight_format(const JsonReader& config);

// --- shared by formats

// Columns in a group, from a member of quantization_config: -1 or null stand for one group per row,
// which is returned as 0. Throws kInvalidArgument for 0 and other negative numbers.
int64_t read_group_size(const JsonReader& quantization, std::string_view key, int64_t fallback);

// Adds to `problems` when the tensor's shape is not `expected`.
void check_stored_shape(const StoredTensor& tensor,
                        std::span<const int64_t> expected,
                        WeightProblems& problems);
// The same, and when its type can't be computed with.
void check_stored_tensor(const StoredTensor& tensor,
                         std::span<const int64_t> expected,
                         WeightProblems& problems);

}  // namespace tgi
