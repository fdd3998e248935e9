// tgi load: puts a model into the daemon, in place of the default one or, with a name, beside it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cmd/session.h"

namespace tgi {

struct LoadFlags {
  std::string model;
  std::string name;  // empty: in place of the default one
  std::string revision;
  bool offline = false;
  bool on_demand = false;
  bool pin = false;
  std::string keep_alive;  // empty: as the daemon was started
  // By the names of their flags: all of ipc/model_settings.h that come with a load.
  std::vector<std::pair<std::string, std::string>> settings;
};

void add_load_flags(CLI::App& app, LoadFlags& flags);

// Throws kInvalidArgument naming the flag, its value and what was expected.
ipc::GivenSettings settings_of(const LoadFlags& flags);

int run_load(const LoadFlags& flags, const CommonFlags& common);

}  // namespace tgi
