// The presets that are kept on this machine: one file each, whole or not there, in a folder of the
// user's. A preset is a model wherever the path of one is asked for: by the ending of its name. So
// is a model of ollama, by its place (base/files/ollama_store.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/preset.h"

namespace tgi {

inline constexpr std::string_view kPresetEnding = ".modelfile";

bool is_preset_path(std::string_view path);

// state_dir()/presets.
std::string presets_dir();

// "mario" of "mario:latest". Throws kInvalidArgument for what can be no preset's name: "demo", and
// what has other characters than letters, digits, '.', '_', '-' and ':'.
std::string preset_name(std::string_view name);

// Where it is, or would be. REQUIRES: of preset_name.
std::string preset_path(const std::string& name);

// The path of the preset; nothing where there is none, nor can be.
std::optional<std::string> find_preset(std::string_view name);

// "mario" for its path in presets_dir(), a model of ollama's name, else nothing.
std::string name_of_preset(const std::string& path);

struct StoredPreset {
  std::string name;
  std::string path;
  int64_t bytes = 0;
  int64_t written_at = 0;  // seconds since 1970
};
std::vector<StoredPreset> list_presets();  // by name

// Throws what parse_preset throws with the path before it, and kInvalidArgument when FROM,
// ADAPTER, SPECULATOR or DRAFT is no absolute path (nor "demo"): of a file that `tgi create` has
// not read. Of a model of ollama what read_ollama_model throws.
Preset read_preset(const std::string& path);

// In place of one of that name. Throws with the system's reason; nothing is left half-written.
void keep_preset(const std::string& name, const Preset& preset);

// False: there is none.
bool remove_preset(const std::string& name);

}  // namespace tgi
