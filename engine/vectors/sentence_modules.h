// The files of sentence-transformers beside a model: modules.json and a folder for each module,
// which say how hidden states become the vector of a text. Source: https://sbert.net
// (models.Pooling, models.Dense, models.Normalize).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/files/file_source.h"
#include "engine/vectors/head_steps.h"

namespace tgi {

// In the order in which their results stand one after the other where they are switches; a list has
// its own.
enum class PoolingMode : uint8_t { kCls, kMax, kMean, kMeanSqrtLen, kWeightedMean, kLastToken };

inline constexpr const char* kModulesFile = "modules.json";

// "cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken". Nothing for another.
std::optional<PoolingMode> pooling_mode_from_name(std::string_view name);
std::string pooling_mode_names();  // for messages

struct SentenceModules {
  std::vector<PoolingMode> modes;
  std::vector<DenseStep> dense;
  bool normalises = false;
  std::optional<int64_t> max_tokens;           // of a text, those that mark its ends included
  std::map<std::string, std::string> prompts;  // what stands before a text, by name
  std::optional<std::string> default_prompt;   // the name of the one that is used unless told
};

// Nothing without modules.json: then only what else is there is read. `hidden_size` is that of the
// model. Throws kInvalidArgument naming file and field, kUnsupported for modules and settings that
// are not known, kNotFound for a file that is missing.
SentenceModules read_sentence_modules(const FileSource& files, int32_t hidden_size);

}  // namespace tgi
