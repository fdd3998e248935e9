// The command line and environment of `tgi serve`: the rows of launcher_flags.h, MODEL and --http.
// A flag goes before its variable (--foo-bar, FOO_BAR), that before the file of settings, that
// before the default.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cmd/launcher_flags.h"
#include "cmd/serve_options.h"
#include "cmd/terminal_settings.h"
#include "ipc/config_file.h"

namespace tgi {

// The values stay with CLI11, so the app has to outlive it.
struct ServeFlags {
  std::vector<const CLI::Option*> rows;  // of all groups in order; null: a variable without a flag
  const CLI::Option* model = nullptr;
  const CLI::Option* beside = nullptr;
  const CLI::Option* on_demand = nullptr;
  const CLI::Option* load_installed = nullptr;
  const CLI::Option* max_models = nullptr;
  const CLI::Option* keep_alive = nullptr;
  const CLI::Option* http = nullptr;
};

void add_serve_flags(CLI::App& app, ServeFlags& flags);

// Without a host: the loopback address, or all addresses when there is an API key, as TGI. Throws
// UsageError for a wrong value of a flag and for flags that exclude each other, kInvalidArgument
// for a wrong value of a variable or of the section [serve] of the file, kUnsupported for what is
// refused, kNotFound for a model that is no folder. No message holds the API key.
ServeOptions resolve_serve_flags(const ServeFlags& flags,
                                 const Environment& environment = process_environment,
                                 const ipc::ConfigFile& file = {});

// What a value of a row does, also of one that is refused. Throws without saying where it stands.
void apply_launcher_row(const LauncherRow& row, const std::string& value, ServeOptions& options);

}  // namespace tgi
