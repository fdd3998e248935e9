// The files of an adapter, whatever it is kept in.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/files/file_source.h"

namespace tgi {

// `path` is a folder as PEFT has it, a GGUF file, or a folder with one GGUF file in it. What is in
// a GGUF file is found under the names that a folder of PEFT has: adapter_config.json, and the file
// itself as kGgufAdapterFile. Throws what open_folder and parse_gguf throw, and what
// gguf_adapter_config throws.
std::unique_ptr<FileSource> open_adapter_source(const std::string& path);

// The files that it would read. When one of them changes, so may the adapter.
std::vector<std::string> adapter_paths(const std::string& path);

// Whether it is a GGUF file that says it holds an adapter. False for one that can't be read.
bool is_gguf_adapter_path(const std::string& path);

}  // namespace tgi
