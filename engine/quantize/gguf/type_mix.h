// Which of ggml's types each tensor of a file gets.
//
// A format is a type for most matrices, and better ones for those where errors cost most: the head,
// and in part of the layers the values' projection and the one that leaves the MLP. That is what
// files of these names have everywhere (llama.cpp's quantiser, whose names these are).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "engine/model/model_config.h"
#include "engine/quantize/gguf/file_plan.h"
#include "engine/weights/ggml/ggml_types.h"

namespace tgi {

struct GgufFormat {
  std::string_view name;     // "q4_k_m"
  std::string_view storage;  // for people: "GGUF Q4_K, some Q6_K"
  std::string_view type;     // of most matrices
  int32_t bits = 0;          // of a code
  int64_t file_type = 0;     // general.file_type
};

std::span<const GgufFormat> gguf_formats();

// Null when there is none of that name.
const GgufFormat* find_gguf_format(std::string_view name);

class TypeMix {
 public:
  // Both outlive it.
  TypeMix(const GgufFormat& format, const ModelConfig& config, const GgufFilePlan& plan);

  const GgmlType& type_of(const GgufTensorPlan& tensor) const;

 private:
  const GgmlType& wanted(std::string_view part, int32_t layer) const;

  const GgufFormat& format_;
  const ModelConfig& config_;
  bool has_head_ = false;  // a matrix of its own
  bool has_experts_ = false;
};

}  // namespace tgi
