// tgi unload: frees the memory of a model; the daemon stays. Never starts a daemon.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cmd/session.h"

namespace tgi {

struct UnloadFlags {
  bool keep_name = false;
  std::string name;  // empty: the default model
};

void add_unload_flags(CLI::App& app, UnloadFlags& flags);
int run_unload(const UnloadFlags& flags, const CommonFlags& common);

}  // namespace tgi
