#include "cmd/models/found_models.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>

#include "base/ascii.h"
#include "base/bounded_json.h"
#include "base/error.h"
#include "base/files/ollama_store.h"
#include "base/files/regular_file.h"
#include "base/json.h"
#include "cmd/download/disk.h"
#include "cmd/download/gguf_choice.h"
#include "cmd/download/hub_names.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;
using download::RemoteFile;
using download::Variables;

std::string text_or(const Variables& variables, const char* name, const std::string& other) {
  const auto value = variables(name);
  return value && !value->empty() ? *value : other;
}

// Null for what is no JSON, or can't be read.
Json parse_or_null(const fs::path& path) {
  try {
    const Json json = json_or_discarded<Json>(read_regular_file(path.string()));
    return json.is_discarded() ? Json() : json;
  } catch (const Error&) {
    return {};
  }
}

std::string text_of(const Json& json, const char* field) {
  if (!json.is_object() || !json.contains(field) || !json[field].is_string()) return "";
  return json[field].get<std::string>();
}

// Nothing when the file is not there.
std::optional<FoundModel> describe(std::string name, std::string program, const fs::path& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
  return FoundModel{.name = std::move(name),
                    .program = std::move(program),
                    .path = path.string(),
                    .bytes = facts.st_size,
                    .last_used_at = facts.st_atime};
}

// Nothing when a part is missing.
std::optional<FoundModel> describe(std::string name,
                                   std::string program,
                                   const fs::path& folder,
                                   const download::GgufModel& found) {
  if (!found.has_all_parts()) return std::nullopt;
  auto model = describe(std::move(name), std::move(program), folder / found.files.front().path);
  if (model) model->bytes = found.bytes();
  return model;
}

// ---- ollama: see base/files/ollama_store.h.

void find_in_ollama(const fs::path& folder, std::vector<FoundModel>& out) {
  constexpr int kDepth = 3;  // HOST/NAMESPACE/MODEL
  for (const char* manifests : {"manifests", "manifests-v2", "manifest-v2"}) {
    const fs::path top = folder / manifests;
    for (const download::FileBelow& file : download::files_below(top.string(), kDepth)) {
      const std::string manifest = (top / file.name).string();
      const std::string name = ollama_name(manifest);
      const auto files = name.empty() ? std::nullopt : find_ollama_files(manifest);
      if (!files) continue;
      auto model = describe(name, "ollama", files->weights);
      if (!model) continue;
      if (files->has_defaults) model->preset = manifest;
      out.push_back(std::move(*model));
    }
  }
}

// ---- LM Studio: PUBLISHER/MODEL/FILE.gguf, as on the hub.

void find_in_lm_studio(const fs::path& folder, std::vector<FoundModel>& out) {
  constexpr int kDepth = 3;  // a folder for each quantisation may come between
  std::map<std::string, std::vector<RemoteFile>> files_of_repo;
  for (const download::FileBelow& below : download::files_below(folder.string(), kDepth)) {
    const fs::path path = below.name;
    const std::vector<std::string> parts(path.begin(), path.end());
    if (parts.size() < 3 || !download::is_gguf(parts.back())) continue;
    const std::string repo = parts[0] + "/" + parts[1];
    RemoteFile file;
    file.path = below.name.substr(repo.size() + 1);
    file.size = below.bytes;
    files_of_repo[repo].push_back(std::move(file));
  }
  for (const auto& [repo, files] : files_of_repo) {
    for (const download::GgufModel& found : download::gguf_models(files)) {
      auto model =
          describe(fmt::format("{}:{}", repo, found.tag), "LM Studio", folder / repo, found);
      if (model) out.push_back(std::move(*model));
    }
  }
}

// ---- llama.cpp: ORG_NAME_FILE.gguf, and manifest=ORG=NAME=TAG.json for those of the hub.

std::vector<std::string> split_at(const std::string& text, char separator) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

// The name that a manifest gives to a file, and the file. Nothing for another file.
std::optional<FoundModel> of_llama_manifest(const fs::path& path) {
  const std::vector<std::string> parts = split_at(path.stem().string(), '=');
  if (parts.size() != 4 || parts[0] != "manifest" || path.extension() != ".json") {
    return std::nullopt;
  }
  const Json json = parse_or_null(path);
  if (!json.is_object() || !json.contains("ggufFile")) return std::nullopt;
  std::string file =
      fmt::format("{}_{}_{}", parts[1], parts[2], text_of(json["ggufFile"], "rfilename"));
  std::ranges::replace(file, '/', '_');
  return describe(fmt::format("{}/{}:{}", parts[1], parts[2], parts[3]), "llama.cpp",
                  path.parent_path() / file);
}

void find_in_llama_cpp(const fs::path& folder, std::vector<FoundModel>& out) {
  std::vector<FoundModel> named;
  std::vector<RemoteFile> ggufs;
  for (const download::FileBelow& below : download::files_below(folder.string(), 0)) {
    if (auto model = of_llama_manifest(folder / below.name)) named.push_back(std::move(*model));
    if (!download::is_gguf(below.name)) continue;
    RemoteFile file;
    file.path = below.name;
    file.size = below.bytes;
    ggufs.push_back(std::move(file));
  }
  for (const download::GgufModel& found : download::gguf_models(ggufs)) {
    const std::string path = (folder / found.files.front().path).string();
    auto model = describe(path, "llama.cpp", folder, found);
    if (!model) continue;
    const auto at = std::ranges::find(named, path, &FoundModel::path);
    if (at != named.end()) model->name = at->name;
    out.push_back(std::move(*model));
  }
}

}  // namespace

std::vector<FoundModel> find_models_of_others(const Variables& variables) {
  std::vector<FoundModel> out;
  const fs::path home = text_or(variables, "HOME", "/nonexistent");
  find_in_ollama(text_or(variables, "OLLAMA_MODELS", (home / ".ollama/models").string()), out);
  find_in_ollama("/usr/share/ollama/.ollama/models", out);  // of the service
  const std::string moved = download::first_line_of((home / ".lmstudio-home-pointer").string());
  find_in_lm_studio((moved.empty() ? home / ".lmstudio" : fs::path(moved)) / "models", out);
  find_in_lm_studio(home / ".cache/lm-studio/models", out);
  const fs::path cache = text_or(variables, "XDG_CACHE_HOME", (home / ".cache").string());
  find_in_llama_cpp(text_or(variables, "LLAMA_CACHE", (cache / "llama.cpp").string()), out);
  std::ranges::stable_sort(out, {}, &FoundModel::name);
  const auto repeated = std::ranges::unique(out, {}, &FoundModel::name);
  out.erase(repeated.begin(), repeated.end());
  return out;
}

std::optional<FoundModel> find_model_of_others(const std::string& name,
                                               const Variables& variables) {
  const std::vector<FoundModel> models = find_models_of_others(variables);
  for (const std::string& wanted : {name, name + ":latest"}) {
    const auto at = std::ranges::find(models, wanted, &FoundModel::name);
    if (at != models.end()) return *at;
  }
  // As the hub has it: a quantisation in any case, or none.
  std::optional<download::HubName> asked;
  try {
    asked = download::parse_hub_name(name);
  } catch (const Error&) {
    return std::nullopt;
  }
  if (!asked || asked->revision != "main" || asked->repo.find('/') == std::string::npos) {
    return std::nullopt;
  }
  std::optional<FoundModel> found;
  for (const FoundModel& model : models) {
    std::string same = model.name;
    for (const std::string_view host : {"hf.co/", "huggingface.co/"}) {
      if (same.starts_with(host)) same.erase(0, host.size());
    }
    const size_t colon = same.rfind(':');
    if (colon == std::string::npos || same.substr(0, colon) != asked->repo) continue;
    const std::string tag = same.substr(colon + 1);
    const bool fits = asked->file.empty() || ascii_upper(tag) == ascii_upper(asked->file);
    if (!fits) continue;
    if (found) return std::nullopt;  // several quantisations: which is meant is not known
    found = model;
  }
  return found;
}

std::string name_of_others(const std::string& path, const Variables& variables) {
  for (const FoundModel& model : find_models_of_others(variables)) {
    if (download::is_same_file(model.path, path)) return model.name;
  }
  return "";
}

}  // namespace tgi
