// A model family as data: which names it goes by, how its config.json is read, which tensors it has
// under which names. One constexpr per family in engine/model/families/, one line in
// kArchitectures. No behaviour: the forward pass is written once (transformer.cc) and is switched
// by which roles have a weight and by the traits of ModelConfig.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/json.h"
#include "engine/model/model_config.h"

namespace tgi {

// What a tensor is for. Fused and separate spellings of one thing are different roles; a checkpoint
// has one of them.
enum class Role : uint8_t {
  kTokenEmbedding,
  kPositionEmbedding,
  kFinalNorm,
  kFinalNormBias,
  kLmHead,
  // per layer
  kAttentionNorm,
  kAttentionNormBias,
  kQ,
  kK,
  kV,
  kQkv,
  kQBias,
  kKBias,
  kVBias,
  kQkvBias,
  kQNorm,
  kKNorm,
  kO,
  kOBias,
  kMlpNorm,
  kMlpNormBias,
  kGate,
  kUp,
  kUpBias,
  kDown,
  kDownBias,
  kCount,
};

// A symbolic size, so that one table row serves every layer of every checkpoint of the family.
enum class Dim : uint8_t {
  kOne,
  kVocab,
  kPositions,
  kHidden,
  kIntermediate,
  kQ,
  kKv,
  kQkv,
  kHeadDim
};

// How tensor parallelism cuts a tensor (world size 1 takes all of it). Heads are never cut in two.
enum class Split : uint8_t {
  kNone,     // every rank holds all of it
  kRows,     // by output features: q, k, v, gate, up
  kColumns,  // by input features, results summed over ranks: o, down
};

struct TensorSpec {
  Role role;
  std::string_view name;  // "{layer}" stands for the layer's number
  Dim rows;               // output features; kOne for vectors
  Dim cols;               // input features, or the length of a vector
  Split split = Split::kNone;
  bool required = true;     // false: the presence of the weight is the switch
  bool transposed = false;  // stored as (cols, rows), as GPT-2's Conv1D does
};

struct Architecture {
  std::span<const std::string_view> names;  // of config.json's "architectures"
  std::string_view model_type;              // of config.json, when "architectures" is missing
  std::string_view prefix;  // of the layer tensors, stripped or added when a checkpoint differs
  ModelConfig (*read_config)(const JsonReader& config);
  std::span<const TensorSpec> tensors;
  std::span<const std::string_view> ignored;  // suffixes of tensors that are known and not needed
};

// All families, in the order they are tried.
std::span<const Architecture* const> architectures();

// By config.json. Throws kUnsupported naming the architecture and listing the known ones.
const Architecture& find_architecture(const JsonReader& config);

// config.json and generation_config.json. Throws kInvalidArgument naming the field, with the value
// and what was expected.
class FileSource;
struct LoadedConfig {
  const Architecture* architecture;
  ModelConfig config;
};
LoadedConfig load_model_config(const FileSource& files);

}  // namespace tgi
