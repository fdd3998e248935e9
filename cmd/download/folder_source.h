// A model that is a folder of this machine: nothing is copied, it is only looked at.
#pragma once

#include <string>
#include <vector>

namespace tgi::download {

struct FolderReport {
  std::string path;  // absolute
  int64_t num_files = 0;
  int64_t bytes = 0;
};

// Throws kNotFound when it is no folder, has no config.json, no weights, or lacks a shard that its
// index names.
FolderReport check_folder(const std::string& folder);

// Throws kNotFound when a folder is none of a model, and tells what models are in it. What else it
// lacks is found when it is loaded. REQUIRES: it is a folder.
void refuse_no_model(const std::string& folder);

// What a folder lacks to be a model; empty: nothing. Links are followed.
std::string missing_of(const std::string& folder);

}  // namespace tgi::download
