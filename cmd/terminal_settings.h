// The settings of the terminal in one table: the section [terminal] of the file of settings and
// their variables; most are flags of commands too. To add one: a member, a row, and the place in
// main.cc that hands it to a command.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "ipc/config_file.h"
#include "ipc/setting.h"

namespace tgi {

struct TerminalSettings {
  bool no_start = false;
  bool verbose = false;
  std::string color = "auto";
  bool raw = false;
  bool stats = false;
  std::string context = "stop";
  bool no_save = false;
};

using TerminalSetting = ipc::Setting<TerminalSettings>;
std::span<const TerminalSetting> terminal_settings();

// A variable's value; nothing when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> process_environment(const std::string& name);

// A variable goes before the file. Throws kInvalidArgument naming it, or file and line.
TerminalSettings resolve_terminal_settings(const ipc::ConfigFile& file,
                                           const Environment& environment = process_environment);

// Sets the variables that base/color.h reads, unless one of them is set.
void apply_color(const TerminalSettings& settings);

}  // namespace tgi
