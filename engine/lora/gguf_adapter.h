// A LoRA adapter in a GGUF file, as llama.cpp's convert_lora_to_gguf.py writes them:
//   general.type "adapter", adapter.type "lora", general.architecture that of its base,
//   adapter.lora.alpha; NAME.lora_a (rank, inputs) and NAME.lora_b (outputs, rank) of a matrix that
//   files of the architecture call NAME: "blk.0.attn_q.weight". Of the embedding A is transposed;
//   of the matrices of all experts of a layer, "blk.0.ffn_up_exps", both have one for each expert.
// Each product is multiplied by alpha / rank, or by 1 where alpha is 0.
//
// The model's own reader of the architecture (engine/gguf) says which linears these are, and in
// which order their rows lie.
#pragma once

#include <memory>
#include <string>

#include "engine/lora/adapter_config.h"
#include "engine/model/architecture.h"
#include "engine/weights/checkpoint.h"
#include "engine/weights/ggml/gguf_file.h"

namespace tgi {

inline constexpr const char* kGgufAdapterFile = "adapter.gguf";

// What its metadata says, as adapter_config.json. Throws kUnsupported naming another kind of
// adapter, a field of adapters that is not known, or one that asks for something else;
// kInvalidArgument for a file that holds a model, or no pair of tensors, or half of one.
std::string gguf_adapter_config(const GgufFile& file);

// Its tensors under the names that PEFT has for them, with their ranks in `config`; where nobody
// says which model it is for, of modules that are called as in the file. Throws kInvalidArgument
// naming an adapter of another architecture, and the tensors that are of no linear of the model.
std::unique_ptr<Checkpoint> open_gguf_adapter(const FileSource& files,
                                              const LoadedConfig* model,
                                              AdapterConfig& config);

}  // namespace tgi
