// What a model is for, and what follows its last hidden states when that is not to draw tokens:
// data, as the tensors of a family are. Such heads are small and run on the host (engine/vectors).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tgi {

enum class Task : uint8_t {
  kGenerate,
  kEmbed,           // a vector of a text
  kClassify,        // scores of a text, or of a pair of texts
  kClassifyTokens,  // scores of each token
};

// "generate", "embed", "classify", "classify-tokens".
constexpr std::string_view task_name(Task task) {
  switch (task) {
    case Task::kGenerate:
      return "generate";
    case Task::kEmbed:
      return "embed";
    case Task::kClassify:
      return "classify";
    case Task::kClassifyTokens:
      return "classify-tokens";
  }
  return "";
}

// Which hidden states of a text its head reads. kMeanOfEach: each, and the scores are the mean of
// what it makes of them.
enum class HeadInput : uint8_t { kFirst, kLast, kMean, kEach, kMeanOfEach, kAsConfigured };

enum class HeadActivation : uint8_t { kNone, kTanh, kGelu, kRelu };

// out = norm(activation(weight * in + bias)).
struct HeadLayer {
  std::string_view weight;  // (outputs, inputs), as tables of tensors spell it
  std::string_view bias{};  // empty: none; where the checkpoint has none, there is none
  HeadActivation activation = HeadActivation::kNone;
  std::string_view norm{};       // (optional) a layer norm's weight
  std::string_view norm_bias{};  // (optional) where the checkpoint has it
};

struct HeadSpec {
  Task task;
  HeadInput input;
  std::span<const HeadLayer> layers;
};

}  // namespace tgi
