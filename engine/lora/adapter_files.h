// An adapter that was opened and fits its base model: which of the model's linears it changes, with
// which tensors, and how much. Nothing of it is copied, and no device is involved.
//
// Source of the format: PEFT's save_pretrained (https://huggingface.co/docs/peft).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/lora/adapter_config.h"
#include "engine/lora/factor.h"
#include "engine/lora/module_sites.h"
#include "engine/weights/checkpoint.h"

namespace tgi {

inline constexpr const char* kAdapterWeightsFile = "adapter_model.safetensors";

// y = W x + bias becomes y = gain * (W x + bias + scale * B (A x)) + offset. The embedding is a
// linear too, whose x is 1 at the token and 0 elsewhere.
struct AdapterLinear {
  std::string module;  // as the adapter names it: "model.layers.0.self_attn.q_proj"
  Factor a{};          // (rank, inputs), of the embedding (rank, tokens); false: none
  Factor b{};          // (outputs, rank); as a
  int32_t rank = 0;
  float scale = 0.0F;
  std::vector<float> gain{};    // (optional: 1) (outputs)
  std::vector<float> offset{};  // (optional: 0) (outputs)
  std::vector<SitePart> parts;  // what of the model it is
};

// What can be told without a base model, for lists.
struct AdapterFacts {
  std::string base_model;
  int32_t max_rank = 0;
  int64_t size_bytes = 0;  // of its tensors
  int32_t num_linears = 0;
  std::vector<std::string> targets;  // the last parts of their modules' names, sorted: "q_proj"
};

// Immutable. The files must outlive it: its numbers are read from their bytes.
struct AdapterFiles {
  AdapterConfig config;
  std::unique_ptr<Checkpoint> tensors;
  AdapterFacts facts;
  std::vector<AdapterLinear> linears;  // in the order of their sites
};

// Opens an adapter and checks it against the model: every tensor has to be of one of its linears,
// of the right size, and finite. `base` is the model's checkpoint, for adapters that bring copies
// of its embedding or head, which have to be equal to it, or biases, and for DoRA, for which all
// the weights are read that it changes (row_lengths.h). Without one such adapters are refused.
//
// Throws kNotFound without a file; kInvalidArgument listing all tensors that do not fit, with the
// model that the adapter was made for; kUnsupported for what only is not supported.
AdapterFiles open_adapter(const FileSource& files,
                          const LoadedConfig& model,
                          const Checkpoint* base = nullptr);

// Throws kNotFound without a file, and as read_adapter_config; whether it fits a model is not
// looked at.
AdapterFacts read_adapter_facts(const FileSource& files);

}  // namespace tgi
