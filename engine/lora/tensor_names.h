// Names of the tensors of an adapter, as PEFT writes them:
//   base_model.model.<module>.lora_A.weight      <module> as transformers names it in the base
//   model base_model.model.<module>.lora_A.<adapter>.weight      in files of other tools
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tgi {

enum class AdapterTensor : uint8_t {
  kA,           // (rank, inputs)
  kB,           // (outputs, rank)
  kBBias,       // of lora_B (outputs)
  kEmbeddingA,  // of an embedding (rank, tokens)
  kEmbeddingB,  // likewise (embedding's width, rank)
  kMagnitude,   // of DoRA (outputs)
  kBias,        // of the module itself (outputs), trained or a copy of the base's
  kWeight,      // likewise: of a module that is changed as a whole, or a copy of the base's
  kOther,
};

struct AdapterTensorName {
  AdapterTensor kind = AdapterTensor::kOther;
  std::string_view module;  // of the name that was given; of kOther all that follows the prefix
};

AdapterTensorName parse_adapter_tensor(std::string_view name);

// Of an embedding, not of a linear.
constexpr bool is_of_embedding(AdapterTensor kind) {
  return kind == AdapterTensor::kEmbeddingA || kind == AdapterTensor::kEmbeddingB;
}

}  // namespace tgi
