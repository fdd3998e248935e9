#include "cmd/download/folder_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/files/split_name.h"
#include "base/json.h"
#include "cmd/download/disk.h"
#include "cmd/download/file_choice.h"

namespace tgi::download {
namespace {

namespace fs = std::filesystem;

Json parse_file(const std::string& path) {
  const std::string text = read_whole(path);
  try {
    return parse_json(text);
  } catch (const Error& error) {
    throw error.in(path);
  }
}

// The first shard of an index that is not there; empty: all are.
std::string missing_shard(const std::string& folder, const std::string& index) {
  const Json json = parse_file(folder + "/" + index);
  for (const auto& [tensor, shard] : JsonReader(json, index).object("weight_map").json().items()) {
    const std::string name = shard.is_string() ? shard.get<std::string>() : "";
    if (name.empty() || size_of(folder + "/" + name) < 0) {
      return fmt::format("{}, which {} names", name.empty() ? tensor : name, index);
    }
  }
  return "";
}

bool has_gguf_model(const std::string& folder) {
  std::error_code error;
  const fs::directory_iterator entries(folder, error);
  return std::any_of(begin(entries), end(entries), [](const fs::directory_entry& entry) {
    return is_gguf_model_name(entry.path().filename().string());
  });
}

// Of a folder that is no model: what in it is one, for who gave the folder above, or a repository
// of the hub's cache, whose models are its snapshots.
std::string models_inside(const std::string& folder) {
  constexpr size_t kMostTold = 3;
  std::vector<std::string> names;
  for (const std::string& place : {folder, folder + "/snapshots"}) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(place, error)) {
      const std::string path = entry.path().string();
      if (exists(path + "/config.json") || has_gguf_model(path)) names.push_back(path);
    }
  }
  std::ranges::sort(names);
  if (names.empty()) return "";
  const bool is_more = names.size() > kMostTold;
  names.resize(std::min(names.size(), kMostTold));
  return fmt::format("; models in it are {}{}", fmt::join(names, ", "), is_more ? ", ..." : "");
}

constexpr const char* kConfigFile = "config.json";

bool has_config(const std::string& folder) {
  return exists(folder + "/" + kConfigFile) || exists(folder + "/adapter_config.json");
}

[[noreturn]] void refuse(const std::string& folder, const std::string& missing) {
  throw Error(Code::kNotFound,
              fmt::format("the folder {} has no {}{}", folder, missing, models_inside(folder)));
}

}  // namespace

void refuse_no_model(const std::string& folder) {
  std::error_code error;
  // A link that leads nowhere is told as that, by whoever reads it.
  const bool is_linked = fs::is_symlink(folder + "/" + kConfigFile, error);
  if (!is_linked && !has_config(folder) && !has_gguf_model(folder)) refuse(folder, kConfigFile);
}

std::string missing_of(const std::string& folder) {
  if (!has_config(folder)) return kConfigFile;
  for (const char* index : {"model.safetensors.index.json", "pytorch_model.bin.index.json"}) {
    if (exists(folder + "/" + index)) return missing_shard(folder, index);
  }
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if ((is_safetensors(name) || is_torch_checkpoint(name)) &&
        size_of(entry.path().string()) >= 0) {
      return "";
    }
  }
  return "weights (*.safetensors or *.bin)";
}

FolderReport check_folder(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw Error(Code::kNotFound, fmt::format("there is no folder {}", folder));
  }
  if (const std::string missing = missing_of(folder); !missing.empty()) {
    refuse(folder, missing);
  }
  FolderReport report;
  report.path = fs::absolute(folder).lexically_normal().string();
  if (report.path.size() > 1 && report.path.ends_with('/')) report.path.pop_back();
  for (const auto& entry : fs::directory_iterator(folder)) {
    const int64_t bytes = size_of(entry.path().string());
    if (bytes < 0) continue;
    ++report.num_files;
    report.bytes += bytes;
  }
  return report;
}

}  // namespace tgi::download
