// The text that a quantiser measures on, as sequences of token ids.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/model/model_config.h"
#include "engine/text/tokenizer.h"

namespace tgi {

struct CalibrationOptions {
  std::string file;            // plain text, or *.jsonl with a "text" in each line; "": built in
  int32_t num_sequences = 64;  // at most
  // Tokens, at most; nothing: 512, or the model's context where that is shorter.
  std::optional<int32_t> sequence_length{};
};

struct Calibration {
  std::string source;  // for people: the file, or what the built-in text is
  std::vector<std::vector<int32_t>> sequences;  // each of 2 tokens at least
  int64_t num_tokens = 0;
};

// Evenly spread over the text, of which at most 32 MiB are read. Throws what reading a file throws,
// and kInvalidArgument naming file and line, or when there is too little text for one sequence.
Calibration read_calibration(const CalibrationOptions& options,
                             const ModelConfig& config,
                             const Tokenizer& tokenizer);

// The text built into the executable: prose, questions and answers, lists, tables, code.
std::string_view built_in_calibration_text();

}  // namespace tgi
