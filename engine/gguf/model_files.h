// The files of a model, whatever it is kept in.
#pragma once

#include <memory>
#include <string>

#include "base/files/file_source.h"

namespace tgi {

// `path` is a folder as Hugging Face has it, a GGUF file, or a folder with one GGUF model in it.
// Throws what open_folder and open_gguf throw, and kInvalidArgument naming them where a folder has
// several.
std::unique_ptr<FileSource> open_model_files(const std::string& path);

}  // namespace tgi
