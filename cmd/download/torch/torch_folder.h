// Which files of a model's folder are its torch checkpoint, and which others a converted model
// needs beside its weights.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tgi::download {

struct TorchFolder {
  std::string folder;
  std::vector<std::string> files{};  // names, in the order of the index or by name; at least one
  std::map<std::string, std::string> index{};  // tensor to file; empty without an index
  std::vector<std::string> others{};           // config, tokenizer, licence: to be copied
  std::vector<std::string> modules{};          // folders of sentence-transformers' modules
  bool ties_head = false;  // config.json says, or leaves open, that the output head is tied to the
                           // embedding
  std::string converted_name = "model.safetensors";  // of the weights, when they are one file
};

// Of a LoRA adapter (adapter_config.json, without config.json) adapter_model.bin is the file. Else
// pytorch_model.bin.index.json says the files, else pytorch_model.bin is the one, else all *.bin
// but those of training. Throws kNotFound when there is none or one that the index names is not
// there, and kInvalidArgument for a malformed index or config.json.
TorchFolder find_torch_files(const std::string& folder);

// Whether a file of that name holds weights as torch.save writes them, rather than what training
// leaves beside them.
bool is_torch_weights(const std::string& name);

// Whether a folder of that name is of a module of sentence-transformers: "1_Pooling".
bool is_module_folder(std::string_view name);

// What such a folder may hold.
inline constexpr std::string_view kModuleFiles[] = {"config.json", "model.safetensors",
                                                    "pytorch_model.bin"};

}  // namespace tgi::download
