// Every setting that the file of settings may hold, from the tables of the daemon, of models, of
// `tgi serve` and of the terminal, and where the value of each comes from.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cmd/session.h"
#include "cmd/terminal_settings.h"
#include "ipc/config_file.h"

namespace tgi {

struct ConfigSetting {
  std::string section;
  std::string name;
  std::string variable;  // empty: it has none
  bool is_list = false;
  bool is_switch = false;  // its value is shown as true or false
  bool is_path = false;    // of a file or a model: a path in it is made absolute
  bool is_secret = false;  // never listed
  bool is_listed = true;   // false: understood, but refused with the reason
  // As text. Nothing: what holds then is not one value, its help says.
  std::optional<std::string> default_value;
  // Throws what is wrong with a value, without its name.
  std::function<void(const std::vector<std::string>& values)> check;

  std::string full_name() const { return section + "." + name; }
};

const std::vector<ConfigSetting>& config_settings();

// "daemon.max-running", or "max-running" where one section alone has it. Throws kNotFound with what
// was meant, kInvalidArgument where several have it.
const ConfigSetting& find_config_setting(const std::string& name);

// Throws kInvalidArgument with file and line for the first entry that is not known or not right.
void check_config(const ipc::ConfigFile& file);

enum class ConfigOrigin { kDefault, kFile, kEnvironment, kFlag };
inline constexpr const char* kConfigOriginNames[] = {"default", "file", "environment", "flag"};

struct ConfigValue {
  const ConfigSetting* setting = nullptr;
  std::optional<std::string> text;  // nothing: not set, and there is no one default
  ConfigOrigin origin = ConfigOrigin::kDefault;
  std::string where;  // "PATH:LINE", "TGI_MAX_RUNNING", "--socket"; empty: the default
};

// What a command or a daemon that is started now has; common flags are those of this command.
ConfigValue value_of(const ConfigSetting& setting,
                     const ipc::ConfigFile& file,
                     const CommonFlags& common,
                     const Environment& environment = process_environment);

}  // namespace tgi
