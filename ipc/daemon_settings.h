// The daemon's own settings in one table, beside those of models (model_settings.h): its flags,
// variables, man page, --print-config, the section [daemon] of the file and `tgi config` come from
// it. To add one: a member, a row, and the place that uses it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ipc/model_name.h"
#include "ipc/setting.h"

namespace tgi::ipc {

struct DaemonSettings {
  std::vector<NamedModel> models;     // as they were given, the default one first; none: demo
  bool no_model = false;              // start without loading one
  std::vector<NamedModel> on_demand;  // loaded when requests ask for them
  bool load_installed = false;        // those of the store too
  int32_t max_models = 0;             // loaded at once; 0: as many as fit
  std::chrono::milliseconds keep_alive{-1};  // without a request; below 0: for ever
  std::string socket;                        // path; default_socket_path() when not set
  // Names; empty: the daemon's own user and root alone. What each may do is in daemon/access.h.
  std::string allow_group;
  std::string manage_group;
  int32_t num_intake_threads = 2;
  std::chrono::milliseconds drain_timeout{30000};
  std::chrono::milliseconds stall_timeout{300000};  // 0: never
  std::string log_level = "info";
};

struct DaemonSetting : SettingFacts {
  std::function<void(DaemonSettings& settings, const std::string& text)>
      set;  // throws kInvalidArgument
  std::function<std::string(const DaemonSettings& settings)> get;
  // (optional) It may be given more than once: forgets what was given elsewhere.
  std::function<void(DaemonSettings& settings)> reset{};
};

// Those that say which models there are, then the others.
std::span<const DaemonSetting> daemon_model_settings();
std::span<const DaemonSetting> daemon_own_settings();

// Of a setting of the daemon or of a model: "TGI_MAX_RUNNING".
std::string environment_name(const SettingFacts& row);

}  // namespace tgi::ipc
