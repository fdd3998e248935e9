// The other direction of weight_format.h: a quantised matrix as the arrays of a storage format, and
// what config.json says about them. One specialisation of weight_encoder for each name of `tgi
// quantize --format`, in engine/weights/formats/NAME_encode.cc, and its name in base/known_names.h.
//
// What is written is what transformers reads: compressed-tensors for int8, int4 and fp8; the
// layouts of AutoGPTQ and of AutoAWQ ("gemm") for gptq and awq.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/literal.h"
#include "engine/tensor/tensor.h"
#include "engine/weights/grouped_matrix.h"

namespace tgi {

// One stored array of a matrix. Its name in the checkpoint is the module's and the suffix:
// "model.layers.0.mlp.up_proj" + "." + "weight_packed".
struct EncodedArray {
  std::string suffix;
  std::string dtype;  // as safetensors spells it
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;  // row-major; empty when only described
};

// What the encoded arrays of a matrix depend on.
struct EncodedShape {
  int64_t rows = 0;        // out_features
  int64_t cols = 0;        // in_features
  int32_t group_size = 0;  // columns that share a scale; == cols: one per row
  bool asymmetric = false;
  DType model_dtype = DType::kBF16;  // of the dense checkpoint
};

// What the checkpoint's quantization_config has to say.
struct EncodedModel {
  int32_t group_size = 0;  // 0: a scale per row
  bool asymmetric = false;
  std::vector<std::string> dense_modules{};  // that stay as they were: "lm_head"
  double damping = 0.01;                     // gptq, for the record
  bool act_order = false;  // gptq, for the record: groups are contiguous all the same
};

// How codes are chosen (engine/quantize).
enum class QuantizeMethod : uint8_t {
  kNearest,  // each weight by itself
  kGptq,     // column by column, the error of one made good in the next
  kAwq,      // to nearest, after columns that matter more were scaled up
};

struct WeightEncoder {
  std::string_view name;       // "int4"
  std::string_view storage;    // for people: "compressed-tensors pack-quantized"
  int32_t bits;                // of a code; 8 for fp8
  bool takes_floats;           // encode_floats is there, and not encode
  bool per_row_scales;         // group_size may be == cols
  bool asymmetric;             // may have zero points
  QuantizeMethod method;       // how `tgi quantize` chooses the codes
  bool writes_zero_points;     // `tgi quantize` gives it groups with zero points
  int32_t default_group_size;  // 0: a scale per row
  // transformers puts arrays of this format into modules that hold their weight transposed (Conv1D)
  // too, and not into Linear ones only: what it does not replace it fills with random numbers.
  bool takes_conv1d;

  // The type in which scales are stored. A quantiser rounds its scales to it (stored_scale) before
  // it chooses the codes.
  DType (*scale_dtype)(DType model_dtype);

  // The arrays of a matrix before there is data: suffixes, types and shapes, in the order of
  // `encode`. Throws kInvalidArgument with the numbers when the format can't store such a matrix;
  // the caller adds the name (Error::in).
  std::vector<EncodedArray> (*describe)(const EncodedShape& shape);

  // (optional) REQUIRES: describe accepts the shape, codes in their range. Throws kInvalidArgument
  // for a scale that is not finite in its stored type.
  std::vector<EncodedArray> (*encode)(const GroupedMatrix& matrix, DType model_dtype);

  // (optional) From w (rows, cols): fp8, a scale for each row.
  std::vector<EncodedArray> (*encode_floats)(std::span<const float> w,
                                             int64_t rows,
                                             int64_t cols,
                                             DType model_dtype);

  // For config.json.
  Json (*quantization_config)(const EncodedModel& model);
};

// That of the name: a specialisation for each name of kEncoderNames.
template <Literal kName>
const WeightEncoder& weight_encoder();

// As kEncoderNames.
std::span<const WeightEncoder* const> weight_encoders();

// The encoder of that name. Throws kInvalidArgument listing the known ones.
const WeightEncoder& find_weight_encoder(std::string_view name);

// The scale as it will be read back.
float stored_scale(const WeightEncoder& encoder, DType model_dtype, float scale);

// --- shared by the encoders

// `value` rounded to `dtype` (f32, f16 or bf16), as f32.
float round_to_dtype(DType dtype, float value);

// (count) as safetensors' bytes. Throws kInvalidArgument for one that is not finite there.
std::vector<std::byte> encode_floats_as(std::span<const float> values, DType dtype);

// "F32", "F16", "BF16".
std::string safetensors_name(DType dtype);

// Throws kInvalidArgument unless group_size > 0 divides the columns.
void check_group_size(const EncodedShape& shape);

// Little-endian words of 32 bits.
class WordArray {
 public:
  explicit WordArray(int64_t count) : words_(static_cast<size_t>(count)) {}
  void add(int64_t index, uint32_t bits) { words_[static_cast<size_t>(index)] |= bits; }
  std::vector<std::byte> bytes() const;

 private:
  std::vector<uint32_t> words_;
};

}  // namespace tgi
