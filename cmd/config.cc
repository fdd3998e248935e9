#include "cmd/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files/paths.h"
#include "cmd/config_settings.h"
#include "cmd/download/file_lock.h"
#include "ipc/config_file.h"
#include "ipc/line_socket.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHidden = "(set, not shown)";

std::string shown(const ConfigValue& value) {
  if (!value.text) return "-";
  if (value.setting->is_secret) return std::string(kHidden);
  return value.text->empty() ? "none" : *value.text;
}

std::string origin_of(const ConfigValue& value) {
  if (value.where.empty()) return kConfigOriginNames[static_cast<size_t>(value.origin)];
  return fmt::format("{}, {}", kConfigOriginNames[static_cast<size_t>(value.origin)], value.where);
}

ipc::OrderedJson json_of(const ConfigValue& value) {
  ipc::OrderedJson out = {{"name", value.setting->full_name()}, {"value", nullptr}};
  if (value.text) out["value"] = value.setting->is_secret ? std::string(kHidden) : *value.text;
  out["origin"] = kConfigOriginNames[static_cast<size_t>(value.origin)];
  if (!value.where.empty()) out["where"] = value.where;
  return out;
}

int list(const ConfigFlags& flags, const CommonFlags& common, Output& out) {
  const ipc::ConfigFile file = ipc::read_config(config_path());
  check_config(file);
  auto all = ipc::OrderedJson::array();
  std::string text;
  for (const ConfigSetting& setting : config_settings()) {
    if (!setting.is_listed) continue;
    const ConfigValue value = value_of(setting, file, common);
    if (flags.changed && value.origin == ConfigOrigin::kDefault) continue;
    all.push_back(json_of(value));
    text +=
        fmt::format("{:<38} = {:<20} ({})\n", setting.full_name(), shown(value), origin_of(value));
  }
  out.write(flags.json ? all.dump() + "\n" : text);
  return 0;
}

int get(const ConfigFlags& flags, const CommonFlags& common, Output& out) {
  const ConfigSetting& setting = find_config_setting(flags.name);
  const ipc::ConfigFile file = ipc::read_config(config_path());
  check_config(file);
  const ConfigValue value = value_of(setting, file, common);
  if (flags.json) {
    out.write(json_of(value).dump() + "\n");
    return 0;
  }
  if (!value.text) {
    throw Error(Code::kNotFound,
                fmt::format("{} is not set; `tgi serve --help-all` tells what holds then",
                            setting.full_name()));
  }
  out.write(*value.text + "\n");
  return 0;
}

std::string text_of_file(const std::string& path) {
  return fs::exists(path) ? read_input(path) : std::string();
}

// The file itself when the path is a link to it. Its folder is there then, and can be written.
std::string prepare_target(const std::string& path) {
  std::error_code missing;
  const fs::path found = fs::canonical(path, missing);
  const fs::path target = missing ? fs::absolute(path) : found;
  if (missing) make_private_dir(target.parent_path().string());
  if (::access(target.parent_path().c_str(), W_OK) != 0) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: {}; $TGI_CONFIG names another file", path, std::strerror(errno)));
  }
  return target.string();
}

// Keeps another `tgi config` from changing the file between reading and writing it.
class ConfigLock {
 public:
  ConfigLock(const std::string& target, const Session& session) : path_(target + ".lock") {
    constexpr int kPollMs = 10;
    while (!(lock_ = download::FileLock::try_lock(path_))) session.client().pause(kPollMs);
  }
  ~ConfigLock() {
    std::error_code error;
    fs::remove(path_, error);  // while it is held: who waits for it sees that, and makes a new one
  }
  ConfigLock(const ConfigLock&) = delete;
  ConfigLock& operator=(const ConfigLock&) = delete;

 private:
  const std::string path_;
  std::optional<download::FileLock> lock_;
};

// The programs that read the file run elsewhere.
std::string with_absolute_path(const std::string& value) {
  const size_t equals = value.find('=');
  const bool has_name = equals != std::string::npos && equals < value.find('/');
  const std::string head = has_name ? value.substr(0, equals + 1) : "";
  const std::string path = has_name ? value.substr(equals + 1) : value;
  std::error_code error;
  if (path.empty() || path.front() == '/' || !fs::exists(path, error)) return value;
  return head + fs::absolute(path).lexically_normal().string();
}

// What goes before the file, and when a daemon has it.
void say_when_it_holds(const ConfigSetting& setting, Session& session) {
  const auto variable = process_environment(setting.variable);
  if (!setting.variable.empty() && variable && !variable->empty()) {
    Session::say(fmt::format("{} is set here and goes before the file", setting.variable));
  }
  if (setting.section != ipc::kDaemonSection) return;
  if (ipc::someone_listens(session.client().socket_path())) {
    Session::say(
        "the daemon that runs goes on as it was started; after `tgi stop` the next one "
        "has it");
  }
}

int set(const ConfigFlags& flags, const CommonFlags& common) {
  const ConfigSetting& setting = find_config_setting(flags.name);
  std::vector<std::string> values = flags.values;
  if (values.empty()) throw UsageError(fmt::format("set {}: which value?", flags.name));
  if (values.size() > 1 && !setting.is_list) {
    throw UsageError(fmt::format("{}: expected one value, got {}", flags.name, values.size()));
  }
  if (setting.is_path) {
    for (std::string& value : values) value = with_absolute_path(value);
  }
  try {
    setting.check(values);
  } catch (const Error& error) {
    throw error.in(setting.full_name());
  }
  Session session(common);
  const std::string path = config_path();
  const std::string target = prepare_target(path);
  {
    const ConfigLock lock(target, session);
    (void)ipc::read_config(path);  // says what is wrong with it by line
    write_file(target, ipc::with_setting(text_of_file(path), setting.section, setting.name, values,
                                         setting.is_list && values.size() > 1));
  }
  say_when_it_holds(setting, session);
  return 0;
}

// A setting that this version does not know can be taken out too.
int unset(const ConfigFlags& flags, const CommonFlags& common) {
  Session session(common);
  const std::string path = config_path();
  const auto place_in = [&](const ipc::ConfigFile& file) -> std::pair<std::string, std::string> {
    for (const ipc::ConfigEntry& entry : file.entries) {
      if (entry.section + "." + entry.name == flags.name) return {entry.section, entry.name};
    }
    const ConfigSetting& setting = find_config_setting(flags.name);
    if (file.find(setting.section, setting.name) == nullptr) {
      throw Error(Code::kNotFound, fmt::format("{} is not in {}", setting.full_name(), path));
    }
    return {setting.section, setting.name};
  };
  (void)place_in(ipc::read_config(path));  // before a lock is made where there is nothing
  std::string name;
  {
    const std::string target = prepare_target(path);
    const ConfigLock lock(target, session);
    const auto [section, setting] = place_in(ipc::read_config(path));
    write_file(target, ipc::without_setting(text_of_file(path), section, setting));
    name = section + "." + setting;
  }
  for (const ConfigSetting& setting : config_settings()) {
    if (setting.full_name() == name) say_when_it_holds(setting, session);
  }
  return 0;
}

void require_words(const ConfigFlags& flags, bool has_name, bool has_values) {
  if (has_name && flags.name.empty()) {
    throw UsageError(
        fmt::format("{}: of which setting? `tgi config list` shows all", flags.action));
  }
  if ((!has_name && !flags.name.empty()) || (!has_values && !flags.values.empty())) {
    throw UsageError(fmt::format("{}: too many words", flags.action));
  }
  if (flags.changed && flags.action != "list") {
    throw UsageError(fmt::format("--changed goes with list, not {}", flags.action));
  }
  if (flags.json && flags.action != "list" && flags.action != "get") {
    throw UsageError(fmt::format("--json goes with list and get, not {}", flags.action));
  }
}

}  // namespace

void add_config_flags(CLI::App& app, ConfigFlags& flags) {
  app.footer(
      "The file has the sections [daemon], for tgid and the models that it loads, [serve], for "
      "`tgi serve`, and [terminal]; a setting has the name of its flag: max-running in [daemon] is "
      "`tgid --max-running`. It is TOML, and comments in it stay. A flag goes before a variable, "
      "that before the file, that before the default. A setting or value that is not right stops "
      "the program that reads it, which says where it stands.\n\n"
      "list shows every setting, its value, and where it comes from: default, file, environment or "
      "flag. - stands where the default is no one value (`tgi serve --help-all` tells). What a "
      "daemon was started with by flags only its `--print-config` shows. get writes one value, set "
      "and unset change the file, path says which it is.");
  app.add_option("action", flags.action, "list, get, set, unset or path; default list")
      ->type_name("ACTION")
      ->check(CLI::IsMember(std::vector<std::string>{"list", "get", "set", "unset", "path"}));
  app.add_option("name", flags.name,
                 "SECTION.NAME, or NAME alone where one section has it; max-running is "
                 "daemon.max-running")
      ->type_name("SETTING");
  app.add_option("value", flags.values,
                 "as the flag takes it; true or false for a switch; several for one that may be "
                 "given several times")
      ->type_name("VALUE");
  app.add_flag("--changed", flags.changed, "with list: only what is not the default");
  app.add_flag("--json", flags.json, "with list and get: write JSON");
}

int run_config(const ConfigFlags& flags, const CommonFlags& common) {
  const bool has_name = flags.action == "get" || flags.action == "set" || flags.action == "unset";
  require_words(flags, has_name, flags.action == "set");
  if (flags.action == "set") return set(flags, common);
  if (flags.action == "unset") return unset(flags, common);
  Session session(common);
  if (flags.action == "get") return get(flags, common, session.out());
  if (flags.action == "list") return list(flags, common, session.out());
  session.out().write(config_path() + "\n");
  return 0;
}

}  // namespace tgi
