// What stands beside the weights in a folder that a model is written to.
#pragma once

#include <string>
#include <string_view>

#include "base/files/file_source.h"
#include "base/files/new_folder.h"

namespace tgi {

// Throws kOutOfMemory. What is written goes to the disk when the folder is committed.
void write_text_file(const NewFolder& folder, const std::string& name, std::string_view text);

// The tokenizer's files, templates, licences: all but config.json, weights of any kind, and lists
// of them.
void copy_side_files(const FileSource& files, const NewFolder& folder);

}  // namespace tgi
