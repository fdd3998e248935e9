#include "engine/gguf/model_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/files/split_name.h"
#include "engine/gguf/gguf_source.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> gguf_models(const FileSource& folder) {
  std::vector<std::string> out = folder.names();
  std::erase_if(out, [](const std::string& name) { return !is_gguf_model_name(name); });
  return out;
}

}  // namespace

std::unique_ptr<FileSource> open_model_files(const std::string& path) {
  std::error_code ignored;
  const bool is_file = fs::is_regular_file(path, ignored);
  if (is_file) return open_gguf(path);
  auto folder = open_folder(path);
  if (folder->find("config.json")) return folder;
  const std::vector<std::string> models = gguf_models(*folder);
  if (models.empty()) return folder;  // whoever reads it says what is missing
  if (models.size() == 1) return open_gguf((fs::path(path) / models.front()).string());
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: there are {} GGUF models in this folder; name one of them: {}", path,
                          models.size(), fmt::join(models, ", ")));
}

}  // namespace tgi
