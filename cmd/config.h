// tgi config: shows the settings with where each comes from, and changes the file that holds them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cmd/session.h"

namespace tgi {

struct ConfigFlags {
  std::string action = "list";
  std::string name;
  std::vector<std::string> values;
  bool changed = false;
  bool json = false;
};

void add_config_flags(CLI::App& app, ConfigFlags& flags);
int run_config(const ConfigFlags& flags, const CommonFlags& common);

}  // namespace tgi
