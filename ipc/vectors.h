// The methods "embed" and "classify": what a model that gives vectors makes of texts. One result
// for all texts of a request; a client that closes cancels them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ipc/protocol.h"

namespace tgi::ipc {

inline constexpr std::string_view kEmbed = "embed";
inline constexpr std::string_view kClassify = "classify";

inline constexpr size_t kMaxTexts = 65536;  // of one request

// One of `text`, with or without `pair`, and `ids`.
struct TextInput {
  std::optional<std::string> text{};
  std::optional<std::string> pair{};  // a second text that is read together with it
  std::optional<std::vector<int32_t>> ids{};
};

struct VectorParams {
  std::optional<std::string> model{};          // by its name; absent: the default one
  std::optional<double> keep_alive_seconds{};  // as in a GenerateRequest
  std::vector<TextInput> inputs;
  bool truncate = false;  // a side of what is too long; else it is refused
  std::optional<std::string>
      truncation_side{};  // "left", "right"; absent: as the model's files say
  std::optional<std::string> adapter{};
  std::optional<std::string> adapter_path{};
  // embed: what stands before each text, or the name of one of the model's prompts; absent: the
  // model's own default.
  std::optional<std::string> prompt{};
  std::optional<std::string> prompt_name{};
  std::optional<bool> normalize{};      // to the length 1; absent: as the model's files say
  std::optional<int64_t> dimensions{};  // the first so many numbers of each vector
  // embed: a vector for each token in place of one for the text, as the last layer gives it: with
  // neither of the two above.
  bool each_token = false;
  bool raw_scores = false;  // classify: logits
};

struct EmbedResult {
  std::vector<std::string> vectors;  // base64 of little-endian f32; those of tokens in order
  std::vector<int64_t> num_tokens;   // of each text
  int64_t dimensions = 0;
};

struct EntityInfo {
  std::string group;
  double score = 0;
  std::string word;
  int64_t start = 0;  // characters of the text
  int64_t end = 0;
};

struct TextScores {
  std::vector<double> scores{};        // one for each label; of a model that classifies texts
  std::vector<EntityInfo> entities{};  // of one that classifies tokens
};

struct ClassifyResult {
  std::vector<std::string> labels;
  std::vector<TextScores> texts;
  std::vector<int64_t> num_tokens;  // of each text
};

OrderedJson to_json(const VectorParams& params);
VectorParams vector_params_from_json(const OrderedJson& params);
OrderedJson to_json(const EmbedResult& result);
EmbedResult embed_result_from_json(const OrderedJson& json);
OrderedJson to_json(const ClassifyResult& result);
ClassifyResult classify_result_from_json(const OrderedJson& json);

// Numbers as they lie in memory.
std::string base64_of(const std::vector<float>& values);
// Throws kInvalidArgument for what is no such text.
std::vector<float> floats_of_base64(std::string_view text);

}  // namespace tgi::ipc
