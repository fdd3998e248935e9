// Every setting of tgid in one table: flag, environment variable, default, unit, what it costs. The
// flags, the man page,
// --print-config and the validation all come from it. Precedence: flag, then TGI_… variable, then
// default.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/runtime/served_model.h"

namespace tgi::daemon {

struct Options {
  std::string socket;  // path; default_socket_path() when not set
  // Names; empty: the daemon's own user and root alone. What each may do is in daemon/access.h.
  std::string allow_group;
  std::string manage_group;
  std::string log_level = "info";
  int32_t num_intake_threads = 2;
  std::chrono::milliseconds drain_timeout{30000};
  std::chrono::milliseconds stall_timeout{300000};  // 0: never
  bool no_model = false;                            // start without loading one
  ModelOptions model;
};

struct OptionRow {
  std::string_view
      flag;  // without the dashes; the environment variable is TGI_ + upper case with underscores
  std::string_view value_name;
  std::string_view help;          // what it is, its unit, what it costs
  std::string_view choices = {};  // of the value, parted by spaces, when it is one of a few
  bool is_switch = false;         // a flag without a value; in the environment "1" or "0"
  void (*set)(Options& options, const std::string& text);  // throws kInvalidArgument
  std::string (*get)(const Options& options);
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
