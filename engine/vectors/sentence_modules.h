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
#include "base/json.h"
#include "engine/model/sentence_files.h"
#include "engine/text/token_pairs.h"
#include "engine/vectors/head_steps.h"

namespace tgi {

// In the order in which their results stand one after the other where they are switches; a list has
// its own.
enum class PoolingMode : uint8_t { kCls, kMax, kMean, kMeanSqrtLen, kWeightedMean, kLastToken };

// Of a class of Python its name without the modules that it lies in.
std::string class_name(std::string_view path);

// "cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken". Nothing for another.
std::optional<PoolingMode> pooling_mode_from_name(std::string_view name);
std::string pooling_mode_names();  // for messages

// The score of a pair is the logit of a token behind its last one, less that of another.
// Of a file that has kept only their rows of the head, those.
struct LogitScore {
  int32_t true_token = 0;
  std::optional<int32_t> false_token;
  std::optional<DenseStep> rows{};  // of the true one, and of the other
};

// Texts reach the model as messages of a conversation, written by the chat template: of a pair one
// of `query` and one of `document`, of a text alone one of `user`, behind the prompt as `system`.
struct TextMessages {
  std::optional<bool> has_parts;  // a content is a list of parts; nothing: as the template takes it
  bool add_generation_prompt = false;
  Json variables = Json::object();  // of the template
};

struct SentenceModules {
  std::vector<PoolingMode> modes;
  std::vector<DenseStep> dense;
  bool normalises = false;
  std::optional<LogitScore> logit_score;
  std::optional<TextMessages> messages;
  std::optional<std::string> activation;       // torch's class that makes a logit a score
  std::optional<int64_t> max_tokens;           // of a text, those that mark its ends included
  std::map<std::string, std::string> prompts;  // what stands before a text, by name
  std::optional<std::string> default_prompt;   // the name of the one that is used unless told
  std::optional<int64_t> kept_dimensions;      // of a vector, the first; nothing: all
  bool gives_token_types = true;               // of a pair: else all tokens are of the first type
  std::optional<CutSide> cut_side;  // of what is too long; nothing: as the tokenizer says
};

// Nothing without modules.json: then only what else is there is read. `hidden_size` is that of the
// model. Throws kInvalidArgument naming file and field, kUnsupported for modules and settings that
// are not known, kNotFound for a file that is missing.
SentenceModules read_sentence_modules(const FileSource& files, int32_t hidden_size);

}  // namespace tgi
