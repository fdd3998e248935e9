// How the matrices of a checkpoint are stored: plainly, or in one of the quantised formats (later).
// A format is one constexpr in engine/weights/formats/ and one line in weight_format.cc; neither
// the model nor the loader knows which one is in use.
//
// Which kernel computes with a format is the device's affair: it looks HostWeight::format up once,
// at load.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/tensor/weight.h"
#include "engine/weights/checkpoint.h"

namespace tgi {

// A matrix that the model needs, whole, under the name it has in a dense checkpoint.
struct MatrixSpec {
  std::string name;  // "model.layers.0.self_attn.q_proj.weight"
  std::string_view prefix;
  int64_t rows = 0;         // out_features
  int64_t cols = 0;         // in_features
  bool transposed = false;  // stored as (cols, rows)
};

// [begin, begin + count)
struct Range {
  int64_t begin = 0;
  int64_t count = 0;
};

// What is wrong with a checkpoint, gathered so that one error can tell all of it.
struct WeightProblems {
  std::vector<std::string> missing;      // names
  std::vector<std::string> misshapen;    // "name: expected (..), got (..)"
  std::vector<std::string> unsupported;  // "name: element type I64"
};

struct WeightFormat {
  std::string_view name;

  // Whether config.json (by its quantization_config) asks for this format.
  bool (*claims)(const JsonReader& config);

  // Which format the matrix will have at the device, from the config alone: a quantised checkpoint
  // leaves some matrices dense. For the plan.
  std::string_view (*format_of)(const Json& config, std::string_view name);

  // The tensors that store the matrix, in the order that `slice` wants them. What is not there or
  // does not fit is added to `problems`; the result is then empty or partial and not for `slice`.
  std::vector<const StoredTensor*> (*collect)(const Json& config,
                                              const Checkpoint& checkpoint,
                                              const MatrixSpec& spec,
                                              WeightProblems& problems);

  // A block of the matrix, as views of the stored bytes.
  // REQUIRES: `tensors` came from a collect without problems.
  HostWeight (*slice)(const Json& config,
                      const Checkpoint& checkpoint,
                      const MatrixSpec& spec,
                      std::span<const StoredTensor* const> tensors,
                      Range rows,
                      Range cols);
};

// All formats, in the order they are asked.
std::span<const WeightFormat* const> weight_formats();

// By config.json. Throws kUnsupported naming the quant_method when no format claims it.
const WeightFormat& find_weight_format(const JsonReader& config);

// Shared by formats. Adds to `problems` when the tensor's type can't be computed with or its shape
// is not `expected`.
void check_stored_tensor(const StoredTensor& tensor,
                         std::span<const int64_t> expected,
                         WeightProblems& problems);

}  // namespace tgi
