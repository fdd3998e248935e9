// The settings of tgid in one table: those of a model (ipc/model_settings.h) and the daemon's own.
// Its flags, its man page, --print-config and the validation all come from it. Precedence: flag,
// then TGI_... variable, then default.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/runtime/served_model.h"
#include "ipc/model_name.h"
#include "ipc/setting.h"

namespace tgi::daemon {

struct Options {
  ModelOptions model;                      // the default one, with the settings of all
  std::vector<ipc::NamedModel> models;     // as they were given, the default one first; none: demo
  bool no_model = false;                   // start without loading one
  std::vector<ipc::NamedModel> on_demand;  // loaded when requests ask for them
  bool load_installed = false;             // those of the store too
  int32_t max_models = 0;                  // loaded at once; 0: as many as fit
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

// A setting of a model or of the daemon: what the two have in common here.
struct OptionRow : ipc::SettingFacts {
  std::function<void(Options& options, const std::string& text)> set;  // throws kInvalidArgument
  std::function<std::string(const Options& options)> get;
  // (optional) It may be given more than once: forgets what was given elsewhere.
  std::function<void(Options& options)> reset{};
};

std::span<const OptionRow> option_table();

std::string environment_name(const OptionRow& row);

enum class Origin { kDefault, kEnvironment, kFlag };

struct ResolvedOptions {
  Options options;
  std::vector<Origin> origins;  // in the order of option_table()
};

struct GivenFlag {
  std::string flag;
  std::string value;
};

// Throws kInvalidArgument naming the flag or variable, its value and what was expected.
ResolvedOptions resolve_options(const std::vector<GivenFlag>& flags);

// One line per setting: "max-running = 64  (default)".
std::string print_config(const ResolvedOptions& resolved);

}  // namespace tgi::daemon
