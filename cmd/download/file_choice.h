// Which files of a model are downloaded. As text-generation-server's download-weights chooses:
// weights at the top of the repository, safetensors before .bin, without those of training; and
// beside them what a tokenizer, a chat template and a configuration need.
#pragma once

#include <string>
#include <vector>

#include "cmd/download/source.h"

namespace tgi::download {

struct ChoiceRules {
  std::vector<std::string> include;  // globs; empty: the choice below. "*" matches "/" too
  std::vector<std::string> exclude;
  std::string gguf{};  // a GGUF file by its quantisation or name (gguf_choice.h); empty: none
  bool operator==(const ChoiceRules&) const = default;
};

// In the order of the listing. Where there are no other weights, and nothing was asked for, the
// GGUF file of the usual quantisation. Throws kNotFound when nothing is left, or no weights without
// `include`, saying what the model has; what choose_gguf throws.
std::vector<RemoteFile> choose_files(const std::vector<RemoteFile>& files,
                                     const ChoiceRules& rules);

// Whether a GGUF file was chosen: it is the model, and not the folder that it lies in.
bool is_of_gguf(const std::vector<RemoteFile>& chosen, const ChoiceRules& rules);

bool is_safetensors(const std::string& path);
bool is_torch_checkpoint(const std::string& path);  // .bin, .pt, .pth that hold weights

// Small files that readers look for although many models lack them.
const std::vector<std::string>& optional_names();

}  // namespace tgi::download
