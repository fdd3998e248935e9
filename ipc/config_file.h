// The file of settings, config.toml: what it says, and how one line of it is changed. A section
// [daemon], [serve] or [terminal] holds settings under the names of their flags:
//
//   [daemon]
//   kv-cache-memory = "4GiB"
//   max-running = 32
//   on-demand = ["small=/models/small", "large=/models/large"]
//
// What they may be is told by those who read them: daemon_settings.h, cmd/config_settings.h.
// Format: TOML 1.0 (toml.io).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ipc/setting.h"

namespace tgi::ipc {

struct ConfigEntry {
  std::string section;
  std::string name;
  std::vector<std::string> values;  // as flags take them: 32 is "32", ~/ and NAME=~/ the home
  bool is_list = false;
  int line = 0;  // from 1
};

struct ConfigFile {
  std::string path;
  std::vector<ConfigEntry> entries;  // in the order of the file
  // Null when it is not there.
  const ConfigEntry* find(std::string_view section, std::string_view name) const;
  // "PATH:LINE: SECTION.NAME"
  std::string place(const ConfigEntry& entry) const;
};

inline constexpr std::string_view kDaemonSection = "daemon";
inline constexpr std::string_view kServeSection = "serve";
inline constexpr std::string_view kTerminalSection = "terminal";

// A file that is not there says nothing, nor does /dev/null. Throws what read_regular_file throws
// for one that can't be read, and kInvalidArgument with file and line for what is no TOML, an
// unknown section, a setting outside of one, and a value that is no text, number, true or false, or
// list of them.
ConfigFile read_config(const std::string& path);

// Throws kInvalidArgument for the first entry of the section that is not among `names`, with the
// one that was meant.
void check_config_names(const ConfigFile& file,
                        std::string_view section,
                        std::span<const std::string> names);

// Throws kInvalidArgument, with file and line, for a list of what is one value, and for a file's
// path that depends on where a program runs.
void check_config_entry(const ConfigFile& file,
                        const ConfigEntry& entry,
                        const SettingFacts& row,
                        bool may_be_list);

// The text of a file with the setting in it, at its old place where it has one: all else, comments
// too, stays as it is. Throws kInvalidArgument where that can't be done by line. `text` is valid.
std::string with_setting(const std::string& text,
                         std::string_view section,
                         std::string_view name,
                         const std::vector<std::string>& values,
                         bool is_list);

// The same without it.
std::string without_setting(const std::string& text,
                            std::string_view section,
                            std::string_view name);

}  // namespace tgi::ipc
