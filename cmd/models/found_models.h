// GGUF models that other programs brought to this machine: those of ollama, LM Studio and
// llama.cpp, in the folders where these programs keep them. Nothing there is ever written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cmd/download/hub_env.h"

namespace tgi {

struct FoundModel {
  std::string name;      // as its program writes it: "llama3.2:1b", "ORG/NAME:Q4_K_M", or the path
  std::string program;   // "ollama", "LM Studio" or "llama.cpp"
  std::string path;      // of the file, of its first part
  std::string preset{};  // of the same with defaults of its own, as of ollama's; empty: it has none
  int64_t bytes = 0;     // of all parts
  int64_t last_used_at = 0;  // as the file system tells: roughly
};

// Sorted by name, each once. Folders and manifests that can't be read are passed over, models of
// ollama that are more than one GGUF file (with an adapter, or in another format) too.
std::vector<FoundModel> find_models_of_others(const download::Variables& variables);

// `name` as above; ":latest" may be left out, and ORG/NAME means the one file that there is of it.
std::optional<FoundModel> find_model_of_others(const std::string& name,
                                               const download::Variables& variables);

// The name of the model whose file this is; empty: nobody's.
std::string name_of_others(const std::string& path, const download::Variables& variables);

}  // namespace tgi
