// Names of the files that a model of GGUF was split into.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tgi {

// "NAME-00002-of-00005.gguf" is part 2 of 5.
struct SplitName {
  std::string stem;  // "NAME"
  int number = 0;
  int count = 0;

  std::string part(int which) const;  // the name of that part
};

// Nothing when the name, or path, is of no part.
std::optional<SplitName> split_name(const std::string& path);

// Whether a file of this name in a folder is a model of GGUF, or the first part of one. Encoders of
// images lie beside their models.
bool is_gguf_model_name(const std::string& name);

// The names of all parts of what it is a part of; itself when it is of none.
std::vector<std::string> all_parts(const std::string& path);

}  // namespace tgi
