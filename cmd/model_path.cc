#include "cmd/model_path.h"

#include <algorithm>
#include <filesystem>

namespace tgi {

std::string absolute_model(const std::string& model) {
  if (model == "demo") return model;
  const std::filesystem::path given = std::filesystem::absolute(model);
  // Links in the path are kept, they are often the model's readable name; only ".." has to be
  // followed.
  const bool goes_up = std::find(given.begin(), given.end(), "..") != given.end();
  std::string path =
      (goes_up ? std::filesystem::weakly_canonical(given) : given.lexically_normal()).string();
  if (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

}  // namespace tgi
