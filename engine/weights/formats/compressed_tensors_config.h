// quantization_config of compressed-tensors: which modules are quantised, and how.
//
// Source: https://github.com/neuralmagic/compressed-tensors, QuantizationConfig and
// QuantizationArgs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/weights/weight_format.h"

namespace tgi {

struct CompressedScheme {
  enum class Layout { kPacked, kPlainInt, kFloat, kNvfp4, kMxfp4 };
  enum class Strategy { kTensor, kChannel, kGroup, kBlock };

  Layout layout = Layout::kPacked;
  std::string format{};  // as the config spells the layout
  int32_t bits = 0;
  Strategy strategy = Strategy::kChannel;
  int64_t group_size = 0;  // columns; kGroup
  int64_t block_rows = 0;  // kBlock
  int64_t block_cols = 0;
  bool symmetric = true;
  bool scattered_groups = false;    // weight_g_idx says which column is of which group
  bool needs_matrix_scale = false;  // weight_global_scale, which scales are divided by

  std::vector<std::string> targets{};

  bool is_fp4() const { return layout == Layout::kNvfp4 || layout == Layout::kMxfp4; }
};

struct CompressedConfig {
  std::vector<CompressedScheme> schemes;
  std::vector<std::string> ignore;

  // Nothing for a matrix that is stored plainly.
  const CompressedScheme* scheme_of(const MatrixSpec& spec) const;
};

// Reads a config.json whose quant_method is compressed-tensors. Throws kUnsupported naming what
// can't be loaded and what can, kInvalidArgument for what makes no sense.
CompressedConfig read_compressed_config(const JsonReader& config);

// The same, once before anything is read: also fields that nobody knows, at every depth.
void check_compressed_config(const JsonReader& config);

}  // namespace tgi
