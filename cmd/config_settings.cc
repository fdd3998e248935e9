#include "cmd/config_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/files/paths.h"
#include "base/manual/usage.h"
#include "cmd/launcher_flags.h"
#include "cmd/serve_flags.h"
#include "ipc/daemon_settings.h"
#include "ipc/model_settings.h"

namespace tgi {
namespace {

using Values = std::vector<std::string>;

void take_one(const Values& values) {
  if (values.size() != 1) {
    throw Error(Code::kInvalidArgument, fmt::format("expected one value, got {}", values.size()));
  }
}

ConfigSetting of_row(std::string_view section, const ipc::SettingFacts& row) {
  ConfigSetting out;
  out.section = section;
  out.name = row.name;
  out.variable = ipc::environment_name(row);
  out.is_switch = row.is_switch();
  out.is_path = row.is_file || row.is_model;
  return out;
}

ConfigSetting of_daemon(const ipc::DaemonSetting& row) {
  ConfigSetting out = of_row(ipc::kDaemonSection, row);
  out.is_list = row.reset != nullptr;
  out.is_path = out.is_path || out.is_list || row.name == "socket";
  out.default_value = row.name == "socket" ? own_socket_path() : row.get({});
  out.check = [&row](const Values& values) {
    ipc::DaemonSettings scratch;
    for (const std::string& value : values) row.set(scratch, value);
  };
  return out;
}

template <typename Settings>
ConfigSetting of_plain(std::string_view section, const ipc::Setting<Settings>& row) {
  ConfigSetting out = of_row(section, row);
  out.default_value = row.get(Settings());
  out.check = [&row](const Values& values) {
    Settings scratch;
    row.set(scratch, values.front());
  };
  return out;
}

ConfigSetting of_launcher(const LauncherRow& row) {
  ConfigSetting out;
  out.section = ipc::kServeSection;
  out.name = row.flag;
  if (row.env != EnvUse::kNone && row.env != EnvUse::kUnread) {
    out.variable = launcher_variable(row.flag);
  }
  out.is_list = row.is_list;
  out.is_path = row.flag == "model-id" || row.flag == "tokenizer-config-path";
  out.is_secret = row.flag == "api-key";
  out.is_listed = row.use == FlagUse::kSets;
  out.check = [&row](const Values& values) {
    ServeOptions scratch;
    for (const std::string& value : values) apply_launcher_row(row, value, scratch);
  };
  return out;
}

std::vector<ConfigSetting> make_settings() {
  std::vector<ConfigSetting> out;
  for (const auto& row : ipc::daemon_model_settings()) out.push_back(of_daemon(row));
  for (const auto& row : ipc::model_settings()) out.push_back(of_plain(ipc::kDaemonSection, row));
  for (const auto& row : ipc::daemon_own_settings()) out.push_back(of_daemon(row));
  for (const LauncherGroup& group : launcher_groups()) {
    for (const LauncherRow& row : group.rows) {
      if (!row.is_variable()) out.push_back(of_launcher(row));
    }
  }
  for (const auto& row : terminal_settings()) out.push_back(of_plain(ipc::kTerminalSection, row));
  return out;
}

// Of the flags that every command has.
std::optional<std::string> flag_of(const ConfigSetting& setting, const CommonFlags& common) {
  if (setting.full_name() == "daemon.socket" && !common.socket.empty()) return common.socket;
  if (setting.full_name() == "terminal.no-start" && common.no_start) return "true";
  if (setting.full_name() == "terminal.verbose" && common.verbose) return "true";
  return std::nullopt;
}

}  // namespace

const std::vector<ConfigSetting>& config_settings() {
  static const std::vector<ConfigSetting> kSettings = make_settings();
  return kSettings;
}

const ConfigSetting& find_config_setting(const std::string& name) {
  std::vector<const ConfigSetting*> found;
  Values names;
  for (const ConfigSetting& setting : config_settings()) {
    if (setting.full_name() == name) return setting;
    if (setting.name == name) found.push_back(&setting);
    names.push_back(name.find('.') == std::string::npos ? setting.name : setting.full_name());
  }
  if (found.size() == 1) return *found.front();
  if (found.empty()) {
    const std::string_view meant = nearest_word(name, names);
    throw Error(Code::kNotFound,
                fmt::format("{}: no such setting; {}", name,
                            meant.empty() ? "`tgi config list` shows all"
                                          : fmt::format("did you mean {}?", meant)));
  }
  Values choices;
  for (const ConfigSetting* each : found) choices.push_back(each->full_name());
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: expected one of {}", name, fmt::join(choices, ", ")));
}

void check_config(const ipc::ConfigFile& file) {
  for (const std::string_view section :
       {ipc::kDaemonSection, ipc::kServeSection, ipc::kTerminalSection}) {
    Values names;
    for (const ConfigSetting& setting : config_settings()) {
      if (setting.section == section) names.push_back(setting.name);
    }
    ipc::check_config_names(file, section, names);
  }
  for (const ipc::ConfigEntry& entry : file.entries) {
    const ConfigSetting& setting = find_config_setting(entry.section + "." + entry.name);
    try {
      if (!setting.is_list) take_one(entry.values);
      setting.check(entry.values);
    } catch (const Error& error) {
      throw error.in(file.place(entry));
    }
  }
}

ConfigValue value_of(const ConfigSetting& setting,
                     const ipc::ConfigFile& file,
                     const CommonFlags& common,
                     const Environment& environment) {
  ConfigValue out{.setting = &setting, .text = setting.default_value, .origin = {}, .where = {}};
  if (const ipc::ConfigEntry* entry = file.find(setting.section, setting.name)) {
    out.text = fmt::format("{}", fmt::join(entry->values, ", "));
    out.origin = ConfigOrigin::kFile;
    out.where = fmt::format("{}:{}", file.path, entry->line);
  }
  if (!setting.variable.empty()) {
    const std::optional<std::string> text = environment(setting.variable);
    if (text && !text->empty()) {
      out = {&setting, text, ConfigOrigin::kEnvironment, setting.variable};
    }
  }
  if (const std::optional<std::string> text = flag_of(setting, common)) {
    out = {&setting, text, ConfigOrigin::kFlag, "--" + setting.name};
  }
  if (setting.is_switch && out.text == "1") out.text = "true";
  if (setting.is_switch && out.text == "0") out.text = "false";
  return out;
}

}  // namespace tgi
