// The models of this machine under the names that commands take: the one that is built in, presets,
// those the store knows, those that lie in the Hugging Face cache although nobody told the store,
// and GGUF files of other programs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/preset_files.h"
#include "base/json.h"
#include "base/store/store.h"
#include "cmd/models/hub_scan.h"
#include "ipc/protocol.h"

namespace tgi {

struct ListedModel {
  enum class State { kReady, kPartial, kMissing, kBuiltIn };

  InstalledModel model;                 // with what was found out where the store knows nothing
  State state = State::kReady;          // kMissing: the store knows it, but its folder is gone
  bool is_recorded = false;             // in the store
  std::optional<HubSnapshot> snapshot;  // when it lies in a cache of the hub's layout
  std::string program{};                // "ollama" and the like, whose file it is; mostly empty
  std::string preset{};                 // FoundModel's

  bool is_preset() const { return is_preset_path(model.path); }

  // A file of a snapshot that may hold others of the same repository.
  bool is_gguf_of_snapshot() const {
    return snapshot && model.path.starts_with(snapshot->path + "/");
  }
};

std::string_view state_name(ListedModel::State state);  // "ready", "partial", ...

// "demo" first, then by name.
std::vector<ListedModel> list_models(const Store& store);

// Finds a model by its name in the list, or a folder that is not in it by its path. Throws
// kNotFound, saying what to do.
ListedModel find_listed_model(const Store& store, const std::string& name);

inline constexpr std::string_view kAdapterFormat = "lora";

// How a folder's weights are stored: the quant_method of its config.json, else "safetensors",
// "torch", "gguf", or "" without weights; kAdapterFormat where they are an adapter's.
std::string format_of_folder(const std::string& folder);

// Regular files below it, links followed, by name.
std::vector<InstalledFile> files_of_folder(const std::string& folder);

// Those of tgi itself: conversions and models from other places than the hub.
std::string converted_dir();
std::string sources_dir();

ipc::OrderedJson to_json(const ListedModel& listed);

}  // namespace tgi
