// What makes the answer of hidden states: which of them are pooled on the device, and what becomes
// of them on the host. Immutable once made; used by any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files/file_source.h"
#include "engine/model/architecture.h"
#include "engine/sched/request.h"
#include "engine/vectors/sentence_modules.h"
#include "engine/weights/checkpoint.h"

namespace tgi {

class VectorHead {
 public:
  // `pooling` (optional) takes the place of what the files say. Without either the vector of a text
  // is the mean of an encoder's tokens, or a decoder's last token. Throws kNotFound,
  // kInvalidArgument and kUnsupported naming file, field or tensor.
  VectorHead(const LoadedConfig& model,
             const FileSource& files,
             const Checkpoint& checkpoint,
             std::optional<PoolingMode> pooling = std::nullopt);

  Task task() const { return task_; }
  const std::vector<PooledInput>& inputs() const { return inputs_; }
  // Whether some of it could come from the prefix cache without being computed.
  bool needs_last_only() const;

  // Of a hidden state.
  int64_t hidden_size() const { return hidden_size_; }
  // Of a text's vector.
  int64_t dimensions() const { return dimensions_; }
  // Of those the ones that are given unless more or fewer are asked for.
  int64_t kept_dimensions() const { return kept_dimensions_.value_or(dimensions_); }
  bool normalises() const { return normalises_; }
  const std::map<std::string, std::string>& prompts() const { return prompts_; }
  const std::optional<std::string>& default_prompt() const { return default_prompt_; }
  std::optional<int64_t> max_tokens() const { return max_tokens_; }
  // What is lost of a text that is too long. Nothing: as the tokenizer says.
  std::optional<CutSide> cut_side() const { return cut_side_; }

  // Of scores.
  const std::vector<std::string>& labels() const { return labels_; }
  // How logits become scores: by the sigmoid of each, else by the softmax of all; or not at all.
  enum class Scores : uint8_t { kSoftmax, kSigmoid, kLogits };
  Scores scores() const { return scores_; }

  // Whether the two texts of a pair are told apart by the types of their tokens.
  bool gives_token_types() const { return gives_token_types_; }
  // How a text reaches the model, where the chat template writes it. (optional)
  const std::optional<TextMessages>& messages() const { return messages_; }

  // The head reads the last token that is not this one. (optional)
  std::optional<int32_t> padding() const { return padding_; }

  // What came of inputs() for a text of so many tokens, each row of it: one for a text, or one for
  // each token. Neither normalised nor made to scores.
  std::vector<std::vector<float>> finish(std::span<const std::vector<float>> pooled,
                                         int64_t num_tokens) const;

 private:
  void read_embedder(const LoadedConfig& model,
                     const FileSource& files,
                     std::optional<PoolingMode> pooling);
  void read_classifier(const LoadedConfig& model,
                       const FileSource& files,
                       const Checkpoint& checkpoint);
  void read_layers(const LoadedConfig& model, const Checkpoint& checkpoint);
  void read_logit_score(const LoadedConfig& model,
                        const LogitScore& score,
                        const Checkpoint& checkpoint);
  void read_labels(const LoadedConfig& model, const std::optional<std::string>& activation);
  void read_texts(SentenceModules&& modules);

  Task task_;
  int64_t hidden_size_;
  std::vector<PoolingMode> modes_;  // one for each of inputs_
  std::vector<PooledInput> inputs_;
  std::vector<DenseStep> steps_;
  bool each_token_ = false;
  bool is_mean_ = false;  // of what the head makes of each
  bool is_logit_score_ = false;
  float logit_softcap_ = 0.0F;  // of that
  std::optional<int32_t> padding_;
  bool normalises_ = false;
  int64_t dimensions_ = 0;
  std::optional<int64_t> kept_dimensions_;
  bool gives_token_types_ = true;
  std::optional<int64_t> max_tokens_;
  std::optional<CutSide> cut_side_;
  std::map<std::string, std::string> prompts_;
  std::optional<std::string> default_prompt_;
  std::optional<TextMessages> messages_;
  std::vector<std::string> labels_;
  Scores scores_ = Scores::kSoftmax;
};

}  // namespace tgi
