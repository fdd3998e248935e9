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

// The names of all parts of what it is a part of; itself when it is of none.
std::vector<std::string> all_parts(const std::string& path);

}  // namespace tgi
