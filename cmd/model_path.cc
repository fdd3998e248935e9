#include "cmd/model_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/files/preset_files.h"
#include "base/files/speculator_folder.h"
#include "base/standard_error.h"
#include "cmd/advised_error.h"
#include "cmd/download/converted.h"
#include "cmd/download/fetch_model.h"
#include "cmd/download/folder_source.h"
#include "cmd/download/gguf_choice.h"
#include "cmd/download/hub_env.h"
#include "cmd/download/hub_names.h"
#include "cmd/download/install_record.h"
#include "cmd/download/run_fetch.h"
#include "cmd/models/found_models.h"

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

static download::FetchedModel fetch(const download::FetchRequest& request,
                                    const ResolveOptions& options) {
  const auto kind = options.on_line ? download::ProgressKind::kLines : download::kind_for_stderr();
  const auto write = [&](const std::string& text) {
    if (!options.on_line) return write_stderr(text);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) options.on_line(line);
  };
  return download::run_fetch(request, kind, options.cancel_fd, write);
}

namespace {

// "llama3.2:1b", as ollama calls its models, and no folder.
void refuse_unknown_tag(const std::string& model) {
  const bool has_tag = model.find(':') != std::string::npos && model.find('/') == std::string::npos;
  std::error_code error;
  if (!has_tag || std::filesystem::exists(model, error)) return;
  throw Error(
      Code::kNotFound,
      fmt::format("{}: ollama has no such model on this machine; `tgi ls` lists what is here, "
                  "ORG/NAME:QUANTISATION is downloaded from the hub",
                  model));
}

// A model of another program, where no folder has that name.
std::optional<FoundModel> find_of_others(const std::string& model) {
  std::error_code error;
  if (model == "demo" || std::filesystem::exists(model, error)) return std::nullopt;
  return find_model_of_others(model, download::environment());
}

download::FetchRequest download_of(const std::string& model, const ResolveOptions& options) {
  download::FetchRequest request = download::request_for(model);
  request.revision = options.revision;
  request.offline = options.offline;
  if (options.token) {
    request.settings.token = download::clean_token(*options.token, "api_token");
    request.settings.token_from = "api_token";
  }
  if (!options.cache_dir.empty()) {
    request.cache_dir = download::expand_path(options.cache_dir, request.variables);
  }
  return request;
}

std::string path_of(const FoundModel& found) {
  return found.preset.empty() ? found.path : found.preset;
}

}  // namespace

std::optional<std::string> preset_of(const std::string& model) {
  std::error_code error;
  const bool is_model_here =
      std::filesystem::is_directory(model, error) || download::is_gguf_file(model);
  return is_model_here ? std::nullopt : find_preset(model);
}

std::string resolve_model(const std::string& model, const ResolveOptions& options) {
  if (model.empty()) {
    throw Error(Code::kInvalidArgument, "expected a model, got an empty name");
  }
  if (const auto preset = preset_of(model)) return *preset;
  download::refuse_missing_gguf(model);
  const bool is_remote = download::is_remote(model);
  if (!is_remote) {
    if (const auto found = find_of_others(model)) return path_of(*found);
    refuse_unknown_tag(model);
    const std::string path = absolute_model(model);
    std::error_code error;
    if (options.must_be_model && std::filesystem::is_directory(path, error)) {
      download::refuse_no_model(path);
    }
    const bool converts =
        model != "demo" && options.needs_weights && download::needs_conversion(path);
    return converts ? fetch(download::request_for(path), options).path : path;
  }
  const download::FetchRequest request = download_of(model, options);
  if (const auto found = download::find_usable(request)) {
    // Used just now; whoever wants the model need not hear of trouble with the list of models.
    (void)download::record_install(request, *found);
    return found->path;
  }
  const bool is_any_revision = options.revision.empty() && options.cache_dir.empty();
  if (const auto found = is_any_revision ? find_of_others(model) : std::nullopt) {
    return path_of(*found);
  }
  try {
    return fetch(request, options).path;
  } catch (const Error& error) {
    if (error.code() != Code::kNotFound && error.code() != Code::kUnavailable) throw;
    const std::string message =
        fmt::format("{}; there is no folder {} here either", error.what(), model);
    if (const auto* advised = dynamic_cast<const AdvisedError*>(&error)) {
      throw AdvisedError(error.code(), message, advised->advice());
    }
    throw Error(error.code(), message);
  }
}

void check_access(const std::string& model, const ResolveOptions& options) {
  download::check_access(download_of(model, options), {});
}

std::string resolve_files(const std::string& model, const ResolveOptions& options) {
  const std::string path = resolve_model(model, options);
  return is_preset_path(path) ? read_preset(path).from : path;
}

// "/cache/models--ORG--NAME/snapshots/COMMIT" and "FILE.gguf" of a file in it, else two empty
// texts.
static std::pair<std::string, std::string> file_of_snapshot(const std::string& path) {
  constexpr std::string_view kSnapshots = "/snapshots/";
  const size_t at = path.rfind(kSnapshots);
  if (at == std::string::npos || !download::is_gguf(path)) return {};
  const size_t end = path.find('/', at + kSnapshots.size());
  if (end == std::string::npos) return {};
  return {path.substr(0, end), path.substr(end + 1)};
}

ModelPaths resolve_model_or_heads(const std::string& model, const ResolveOptions& options) {
  ModelPaths out{.model = resolve_model(model, options), .speculator = {}};
  const std::optional<std::string> base = base_of_speculator(out.model);
  if (!base) return out;
  ResolveOptions of_base = options;
  of_base.revision.clear();
  out.speculator = std::exchange(out.model, resolve_model(*base, of_base));
  return out;
}

std::string shown_model(const std::string& path) {
  if (std::string preset = name_of_preset(path); !preset.empty()) return preset;
  // .../models--ORG--NAME/snapshots/COMMIT, .../converted/ORG--NAME/COMMIT, and a file in the first
  if (const auto [snapshot, file] = file_of_snapshot(path); !file.empty()) {
    const std::string name = shown_model(snapshot);
    if (name == snapshot) return path;
    const std::string quantization = download::quantization_of(file);
    return fmt::format("{}:{}", name, quantization.empty() ? file : quantization);
  }
  const bool is_blob = std::filesystem::path(path).filename().string().starts_with("sha256");
  if (is_blob) {  // ollama's files have no names
    const std::string name = name_of_others(path, download::environment());
    return name.empty() ? path : name;
  }
  const std::filesystem::path given(path);
  const bool is_snapshot = given.parent_path().filename() == "snapshots";
  const std::filesystem::path folder =
      is_snapshot ? given.parent_path().parent_path() : given.parent_path();
  std::string name = folder.filename().string();
  constexpr std::string_view kPrefix = "models--";
  const bool is_converted = folder.parent_path().filename() == "converted";
  if (!download::is_commit(given.filename().string()) ||
      !(is_snapshot ? name.starts_with(kPrefix) : is_converted)) {
    return path;
  }
  if (is_snapshot) name.erase(0, kPrefix.size());
  if (const size_t at = name.find("--"); at != std::string::npos) name.replace(at, 2, "/");
  return name;
}

}  // namespace tgi
