// `tgi quantize`: a dense checkpoint in, a quantised one out. A layer at a time: peak memory is one
// layer in f32, what the method needs for its widest matrix, and the hidden states of the
// calibration text, twice.
//
// Each layer is measured on the states that the layers before it give after they were quantised,
// and in GPTQ each matrix on what the ones before it give. Beside it the states of the source are
// carried along: at the end both meet in the head, which gives perplexity and divergence for free.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "base/files/file_source.h"
#include "engine/device/backend.h"
#include "engine/quantize/calibration.h"
#include "engine/quantize/layer_runner.h"

namespace tgi {

// Perplexity on the calibration text may grow by this part.
inline constexpr double kMaxPerplexityGrowth = 0.1;

struct QuantizeOptions {
  std::string model;   // for messages
  std::string folder;  // to be written; of a GGUF format the file
  // As engine/weights/weight_encoder.h names them: "int8", "int4", "gptq", "awq", "fp8"; or a GGUF
  // format (engine/quantize/gguf/type_mix.h): "q4_k_m".
  std::string format;
  // Columns that share a scale; -1: a row. Nothing: the format's own, or the next smaller power of
  // two that divides all matrices.
  std::optional<int32_t> group_size;
  CalibrationOptions calibration;
  bool act_order = false;  // gptq
  double damping = 0.01;   // gptq
  double max_perplexity_growth = kMaxPerplexityGrowth;
  bool force = false;  // write it even though it is worse
};

struct QuantizeProgress {
  std::string phase;  // "reading", "layer", "comparing"
  int32_t layer = 0;  // done
  int32_t num_layers = 0;
  double seconds = 0;                    // so far
  std::optional<double> seconds_left{};  // after the first layer
};

struct QuantizeResult {
  std::string folder;
  std::string format;
  std::string storage;  // what the format is
  int32_t bits = 0;
  int32_t group_size = 0;  // 0: a row
  std::string calibration;
  int64_t num_sequences = 0;
  int64_t num_tokens = 0;
  Fidelity fidelity{};  // of no tokens: nothing was measured
  int64_t source_bytes = 0;
  int64_t bytes = 0;
  double seconds = 0;
};

struct QuantizeJob {
  const FileSource& files;
  const QuantizeOptions& options;
  Backend& backend;     // of the host's memory: cpu
  int num_threads = 0;  // 0: the backend's default
  std::function<void(const QuantizeProgress&)> on_progress;
  std::stop_token stop{};
};

// Throws kInvalidArgument with both figures when the quantised model is much worse, unless that was
// to be written all the same.
void check_fidelity(const QuantizeOptions& options, const Fidelity& fidelity);

// Throws before any work what is wrong with the settings, the model, the text or the disk
// (kInvalidArgument, kNotFound, kUnsupported, kOutOfMemory); kCancelled soon after a stop was asked
// for; kInvalidArgument with both figures when the quantised model is much worse and `force` is not
// set. Then nothing is left of the folder.
QuantizeResult quantize_model(const QuantizeJob& job);

// The same from a checkpoint that is open already (made, in tests).
QuantizeResult quantize_checkpoint(const QuantizeJob& job,
                                   const LoadedConfig& model,
                                   const Checkpoint& checkpoint,
                                   const Tokenizer& tokenizer);

}  // namespace tgi
