// Completions of a program for bash, zsh and fish: command names, options, and for values the
// choices where there are few, file or folder names, and for a model what `tgi ls` lists beside
// folders.
#pragma once

#include <string>

#include "base/manual/program_doc.h"

namespace tgi {

std::string bash_completion(const ProgramDoc& doc);
std::string zsh_completion(const ProgramDoc& doc);
std::string fish_completion(const ProgramDoc& doc);

}  // namespace tgi
