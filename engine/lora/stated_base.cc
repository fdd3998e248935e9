#include "engine/lora/stated_base.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "base/ascii.h"
#include "base/error.h"
#include "base/files/file_source.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBaseConfigFile = "config.json";
// In the cache of the hub: models--ORG--NAME/snapshots/COMMIT.
constexpr std::string_view kRepoPrefix = "models--";
constexpr std::string_view kSnapshots = "snapshots";

std::string repo_folder(std::string name) {
  for (size_t at = name.find('/'); at != std::string::npos; at = name.find('/')) {
    name.replace(at, 1, "--");
  }
  return std::string(kRepoPrefix) + name;
}

// The folder models--ORG--NAME that the path lies in; empty: it is not in such a cache.
fs::path repo_of(const fs::path& path) {
  fs::path folder = path;
  while (folder.has_relative_path()) {
    if (folder.filename().string().starts_with(kRepoPrefix)) return folder;
    folder = folder.parent_path();
  }
  return {};
}

std::string last_name(const std::string& name) {
  const size_t end = name.find_last_not_of('/');
  const size_t begin = name.find_last_of('/', end);
  return ascii_lower(name.substr(begin + 1, end - begin));
}

// Folders where the stated model's config.json may be.
std::vector<fs::path> places_of(const std::string& stated, const std::string& served) {
  if (stated.starts_with('/')) return {stated};
  const fs::path repo = repo_of(served);
  if (repo.empty()) return {};
  std::vector<fs::path> out;
  std::error_code error;
  const fs::path snapshots = repo.parent_path() / repo_folder(stated) / kSnapshots;
  for (const auto& entry : fs::directory_iterator(snapshots, error)) out.push_back(entry.path());
  std::ranges::sort(out);
  return out;
}

// Null: it can't be told.
const Architecture* architecture_in(const fs::path& folder) {
  try {
    const auto files = open_folder(folder.string());
    const Json json = parse_json(files->require_text(kBaseConfigFile));
    return &find_architecture(JsonReader(json, ""));
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace

std::optional<std::string> doubt_about_base(const std::string& stated,
                                            const std::string& served,
                                            const LoadedConfig& model) {
  if (stated.empty() || served.empty()) return std::nullopt;
  // Folders and files are called after their model, what was made of it too: models--ORG--NAME,
  // NAME-Q4_K_M.gguf.
  if (ascii_lower(served).find(last_name(stated)) != std::string::npos) return std::nullopt;
  for (const fs::path& place : places_of(stated, served)) {
    const Architecture* const other = architecture_in(place);
    if (other == nullptr) continue;
    if (other == model.architecture) return fmt::format("it was made for {}", stated);
    throw Error(Code::kInvalidArgument,
                fmt::format("it was made for {}, a {}, and the model is a {}", stated,
                            other->names.front(), model.architecture->names.front()));
  }
  return fmt::format("it was made for {}, whose config is not here to be compared", stated);
}

}  // namespace tgi
