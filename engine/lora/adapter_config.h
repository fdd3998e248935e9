// What adapter_config.json says of an adapter: how PEFT describes a LoRA
// (https://huggingface.co/docs/peft, LoraConfig). Which linears it is for is not taken from here,
// but from its tensors (adapter_files.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files/file_source.h"
#include "base/known_fields.h"
#include "engine/tensor/low_rank.h"

namespace tgi {

inline constexpr const char* kAdapterConfigFile = "adapter_config.json";

// Numbers of some modules, each with the pattern that their names match (module_patterns.h), in the
// order of the file: the first that matches counts.
template <typename T>
using NumbersByPattern = std::vector<std::pair<std::string, T>>;

struct AdapterConfig {
  std::string base_model;           // a name of the Hub or a path; empty: not said
  std::string revision;             // of it; empty: not said
  int32_t rank = 8;                 // 1 to kMaxAdapterRank
  double alpha = 8.0;               // what is added is multiplied by alpha / rank,
  bool is_rank_stabilised = false;  // or by alpha / sqrt(rank)
  bool is_dora = false;             // each output's weight has a length of its own
  bool has_b_biases = false;        // B adds a bias of its own
  NumbersByPattern<int32_t> ranks;  // of modules that have another
  NumbersByPattern<double> alphas;  // likewise
  // Names, a pattern, or "all-linear": what was asked for when it was made, for people.
  std::vector<std::string> targets;
  // Names of parameters that were asked for beside modules ("mlp.experts.gate_up_proj").
  std::vector<std::string> parameters;
  // Made by a PEFT that took what is stored (outputs, inputs) for each expert the other way around.
  bool has_old_expert_order = false;
  std::string bias = "none";  // which biases were trained: none, all or lora_only
};

// Throws kNotFound without the file, kUnsupported naming a field that is not known or whose value
// asks for something else than LoRA of linears, kInvalidArgument for one that makes no sense.
AdapterConfig read_adapter_config(const FileSource& files);

// A row for each field, for tests.
std::span<const KnownField> adapter_fields();

}  // namespace tgi
