#include "cmd/models/model_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/bounded_json.h"
#include "base/error.h"
#include "base/files/adapter_path.h"
#include "base/files/paths.h"
#include "base/files/regular_file.h"
#include "cmd/download/disk.h"
#include "cmd/download/fetch_model.h"
#include "cmd/download/gguf_choice.h"
#include "cmd/download/hub_env.h"
#include "cmd/download/run_fetch.h"
#include "cmd/model_path.h"
#include "cmd/models/found_models.h"
#include "cmd/models/use_record.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;
using State = ListedModel::State;

constexpr std::string_view kGgufFormat = "gguf";

struct WeightsEnding {
  std::string_view ending;
  std::string_view format;
};

constexpr std::array<WeightsEnding, 3> kWeights = {{
    {".safetensors", "safetensors"},
    {".bin", "torch"},
    {".gguf", kGgufFormat},
}};

std::string repo_of_name(const std::string& name) {
  return name.substr(0, name.find_first_of("@:"));
}

bool is_in_snapshot(const InstalledModel& model, const HubSnapshot& snapshot) {
  return download::is_same_file(model.path, snapshot.path) ||
         model.path.starts_with(snapshot.path + "/");  // a GGUF file in it
}

// A conversion lies elsewhere than the snapshot it was made from.
bool is_of_snapshot(const InstalledModel& model, const HubSnapshot& snapshot) {
  if (is_in_snapshot(model, snapshot)) return true;
  return !model.commit.empty() && model.commit == snapshot.commit &&
         repo_of_name(model.name) == snapshot.repo;
}

State state_of_folder(const std::string& folder) {
  std::error_code error;
  if (download::is_gguf_file(folder)) return State::kReady;
  if (!fs::is_directory(folder, error)) return State::kMissing;
  const std::string format = format_of_folder(folder);
  const bool says_it_itself = format == kAdapterFormat || format == kGgufFormat;
  const bool is_whole =
      !format.empty() && (says_it_itself || fs::exists(folder + "/config.json", error));
  return is_whole ? State::kReady : State::kPartial;
}

ListedModel built_in() {
  ListedModel out;
  out.model.name = "demo";
  out.model.source = "built in";
  out.model.format = "safetensors";
  out.state = State::kBuiltIn;
  return out;
}

ListedModel of_snapshot(const HubSnapshot& snapshot) {
  ListedModel out;
  out.model.name = snapshot.name();
  out.model.source = "hub";
  out.model.revision = snapshot.refs.empty() ? "" : snapshot.refs.front();
  out.model.commit = snapshot.commit;
  out.model.format = format_of_folder(snapshot.path);
  out.model.path = snapshot.path;
  out.model.bytes = snapshot.bytes;
  out.model.last_used_at = snapshot.last_used_at;
  out.state = snapshot.has_gaps() ? State::kPartial : state_of_folder(snapshot.path);
  out.snapshot = snapshot;
  return out;
}

// GGUF models of a snapshot, each under a name of its own: "ORG/NAME:Q4_K_M".
std::vector<download::GgufModel> ggufs_of(const HubSnapshot& snapshot) {
  std::vector<download::RemoteFile> files;
  for (const HubFile& file : snapshot.files) {
    download::RemoteFile listed;
    listed.path = file.name;
    listed.size = file.target.empty() ? -1 : file.bytes;
    files.push_back(std::move(listed));
  }
  return download::gguf_models(files);
}

std::vector<ListedModel> models_of_snapshot(const HubSnapshot& snapshot) {
  const ListedModel whole = of_snapshot(snapshot);
  const std::vector<download::GgufModel> ggufs = ggufs_of(snapshot);
  const bool is_other = !whole.model.format.empty() && whole.model.format != kGgufFormat;
  if (is_other || ggufs.empty()) return {whole};
  std::vector<ListedModel> out;
  for (const download::GgufModel& gguf : ggufs) {
    ListedModel one = whole;
    const size_t end = snapshot.repo.size();  // its name may go on with a revision
    one.model.name.insert(std::min(end, one.model.name.size()), ":" + gguf.tag);
    one.model.path = fmt::format("{}/{}", snapshot.path, gguf.files.front().path);
    one.model.format = kGgufFormat;
    one.model.bytes = gguf.bytes();
    const bool has_gap = std::ranges::any_of(
        gguf.files, [](const download::RemoteFile& file) { return file.size < 0; });
    one.state = gguf.has_all_parts() && !has_gap ? State::kReady : State::kPartial;
    out.push_back(std::move(one));
  }
  return out;
}

ListedModel of_others(const FoundModel& found) {
  ListedModel out;
  out.model.name = found.name;
  out.model.source = found.program;
  out.model.format = kGgufFormat;
  out.model.path = found.path;
  out.model.bytes = found.bytes;
  out.model.last_used_at = found.last_used_at;
  out.program = found.program;
  out.preset = found.preset;
  return out;
}

// Missing: what it is made of can't be read any more.
ListedModel of_preset(const StoredPreset& stored) {
  ListedModel out;
  out.model.name = stored.name;
  out.model.source = "preset";
  out.model.format = "preset";
  out.model.path = stored.path;
  out.model.bytes = stored.bytes;
  out.model.installed_at = stored.written_at;
  std::error_code error;
  try {
    const std::string from = read_preset(stored.path).from;
    if (from != "demo" && !fs::exists(from, error)) out.state = State::kMissing;
  } catch (const Error&) {
    out.state = State::kMissing;
  }
  return out;
}

ListedModel of_record(InstalledModel model, const std::vector<HubSnapshot>& snapshots) {
  ListedModel out;
  out.is_recorded = true;
  out.state = state_of_folder(model.path);
  for (const HubSnapshot& snapshot : snapshots) {
    if (is_of_snapshot(model, snapshot)) out.snapshot = snapshot;
  }
  if (out.snapshot && out.snapshot->has_gaps() &&
      download::is_same_file(model.path, out.snapshot->path)) {
    out.state = State::kPartial;
  }
  if (model.format.empty()) model.format = format_of_folder(model.path);
  out.model = std::move(model);
  return out;
}

ListedModel of_folder(const std::string& folder) {
  ListedModel out;
  out.model.name = folder;
  out.model.source = "folder";
  out.model.format = format_of_folder(folder);
  out.model.path = folder;
  if (download::is_gguf_file(folder)) {
    std::error_code error;
    out.model.source = "file";
    out.model.bytes = static_cast<int64_t>(fs::file_size(folder, error));
  }
  for (const InstalledFile& file : files_of_folder(folder)) out.model.bytes += file.bytes;
  out.state = state_of_folder(folder);
  return out;
}

}  // namespace

std::string_view state_name(State state) {
  switch (state) {
    case State::kReady:
      return "ready";
    case State::kPartial:
      return "partial";
    case State::kMissing:
      return "missing";
    case State::kBuiltIn:
      return "built in";
  }
  return "";
}

std::string converted_dir() {
  return cache_dir() + "/converted";
}

std::string sources_dir() {
  return cache_dir() + "/sources";
}

std::string format_of_folder(const std::string& folder) {
  if (download::is_gguf_file(folder)) return std::string(kGgufFormat);
  std::string text;
  try {
    text = read_regular_file(folder + "/config.json");
  } catch (const Error&) {
    // What is wrong with it, loading tells.
  }
  const Json config = json_or_discarded<Json>(text);  // what is wrong with it, loading tells
  if (config.is_object() && config.contains("quantization_config")) {
    const Json& how = config["quantization_config"];
    if (how.is_object() && how.contains("quant_method") && how["quant_method"].is_string()) {
      return how["quant_method"].get<std::string>();
    }
  }
  std::error_code error;
  size_t best = kWeights.size();
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    std::error_code dangling;
    if (!entry.is_regular_file(dangling)) continue;
    for (size_t i = 0; i < best; ++i) {
      if (name.ends_with(kWeights[i].ending)) best = i;
    }
  }
  if (best == kWeights.size()) return "";
  return std::string(is_peft_folder(folder) ? kAdapterFormat : kWeights[best].format);
}

std::vector<InstalledFile> files_of_folder(const std::string& folder) {
  std::vector<InstalledFile> out;
  for (download::FileBelow& file : download::files_below(folder)) {
    out.push_back({.name = std::move(file.name), .bytes = file.bytes, .hash = {}});
  }
  return out;
}

std::vector<ListedModel> list_models(const Store& store) {
  std::vector<HubSnapshot> snapshots = scan_hub_cache(download::request_for("").settings.cache_dir);
  const std::vector<HubSnapshot> of_sources = scan_hub_cache(sources_dir());
  snapshots.insert(snapshots.end(), of_sources.begin(), of_sources.end());
  std::vector<ListedModel> out;
  std::vector<InstalledModel> uses;  // of presets, which are listed below
  for (InstalledModel& model : store.models()) {
    if (model.source == kPresetUse) {
      uses.push_back(std::move(model));
      continue;
    }
    // Loaded by its path alone: listed while it is there, and where it is no snapshot's.
    std::error_code error;
    const bool is_path = model.name == model.path;
    const bool is_listed_below = std::ranges::any_of(
        snapshots, [&](const HubSnapshot& snapshot) { return is_in_snapshot(model, snapshot); });
    if (is_path && (is_listed_below || !fs::exists(model.path, error))) continue;
    out.push_back(of_record(std::move(model), snapshots));
  }
  for (const HubSnapshot& snapshot : snapshots) {
    for (ListedModel& model : models_of_snapshot(snapshot)) {
      const bool is_known = std::ranges::any_of(out, [&](const ListedModel& listed) {
        const bool is_of_it = listed.snapshot && listed.snapshot->path == snapshot.path;
        return is_of_it && (!model.is_gguf_of_snapshot() || listed.model.path == model.model.path);
      });
      if (!is_known) out.push_back(std::move(model));
    }
  }
  for (const StoredPreset& preset : list_presets()) {
    out.push_back(of_preset(preset));
    const auto use = std::ranges::find(uses, preset.path, &InstalledModel::path);
    if (use != uses.end()) out.back().model.last_used_at = use->last_used_at;
  }
  for (const FoundModel& found : find_models_of_others(download::environment())) {
    const bool is_known = std::ranges::any_of(
        out, [&](const ListedModel& listed) { return listed.model.name == found.name; });
    if (!is_known) out.push_back(of_others(found));
  }
  std::ranges::stable_sort(out, {}, [](const ListedModel& listed) { return listed.model.name; });
  out.insert(out.begin(), built_in());
  return out;
}

ListedModel find_listed_model(const Store& store, const std::string& name) {
  const std::vector<ListedModel> models = list_models(store);
  const std::string path = absolute_model(name);
  const std::optional<std::string> preset = preset_of(name);
  for (const ListedModel& listed : models) {
    if (preset ? listed.model.path == *preset
               : listed.model.name == name || listed.model.path == path) {
      return listed;
    }
  }
  const auto variables = download::environment();
  if (const auto found = find_model_of_others(name, variables)) return of_others(*found);
  // "org/name" when only other revisions are there.
  std::string others;
  for (const ListedModel& listed : models) {
    if (repo_of_name(listed.model.name) == name) others += " " + listed.model.name;
  }
  if (!others.empty()) {
    throw Error(Code::kNotFound,
                fmt::format("model {}: it is not here as such, but:{}", name, others));
  }
  std::error_code error;
  if (fs::is_directory(path, error) || download::is_gguf_file(path)) return of_folder(path);
  download::refuse_missing_gguf(name);
  throw Error(Code::kNotFound,
              fmt::format("model {}: not on this machine; `tgi ls` lists those that are, `tgi "
                          "download-weights {}` brings one from the hub",
                          name, name));
}

ipc::OrderedJson to_json(const ListedModel& listed) {
  const InstalledModel& model = listed.model;
  const auto or_null = [](const std::string& text) {
    return text.empty() ? ipc::OrderedJson() : ipc::OrderedJson(text);
  };
  const auto time_or_null = [](int64_t time) {
    return time == 0 ? ipc::OrderedJson() : ipc::OrderedJson(time);
  };
  return {{"name", model.name},
          {"state", state_name(listed.state)},
          {"format", or_null(model.format)},
          {"bytes", model.bytes},
          {"path", or_null(model.path)},
          {"source", or_null(model.source)},
          {"revision", or_null(model.revision)},
          {"commit", or_null(model.commit)},
          {"installed_at", time_or_null(model.installed_at)},
          {"last_used_at", time_or_null(model.last_used_at)},
          {"recorded", listed.is_recorded}};
}

}  // namespace tgi
