// The settings of tgid in one table: those of a model (ipc/model_settings.h) and the daemon's own
// (ipc/daemon_settings.h). Its flags, its man page, --print-config and the validation all come from
// it. Precedence: flag, then TGI_... variable, then the file of settings, then default.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/runtime/served_model.h"
#include "ipc/config_file.h"
#include "ipc/daemon_settings.h"
#include "ipc/setting.h"

namespace tgi::daemon {

struct Options : ipc::DaemonSettings {
  ModelOptions model;  // the default one, with the settings of all
};

// A setting of a model or of the daemon: what the two have in common here.
struct OptionRow : ipc::SettingFacts {
  std::function<void(Options& options, const std::string& text)> set;  // throws kInvalidArgument
  std::function<std::string(const Options& options)> get;
  // (optional) It may be given more than once: forgets what was given elsewhere.
  std::function<void(Options& options)> reset{};
};

std::span<const OptionRow> option_table();

enum class Origin { kDefault, kFile, kEnvironment, kFlag };

struct ResolvedOptions {
  Options options;
  std::vector<Origin> origins;  // in the order of option_table()
  std::string file;             // that kFile means
};

struct GivenFlag {
  std::string flag;
  std::string value;
};

// A flag has a value that it can't have.
class FlagError : public Error {
 public:
  using Error::Error;
};

// Throws kInvalidArgument naming the flag, the variable or the line of the file, its value and what
// was expected; of a flag a FlagError.
ResolvedOptions resolve_options(const std::vector<GivenFlag>& flags,
                                const ipc::ConfigFile& file = {});

// One line per setting: "max-running = 64  (default)".
std::string print_config(const ResolvedOptions& resolved);

}  // namespace tgi::daemon
