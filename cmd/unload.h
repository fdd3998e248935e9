// tgi unload: frees the memory of the model; the daemon stays. Never starts a daemon.
#pragma once

#include <CLI/CLI.hpp>

#include "cmd/session.h"

namespace tgi {

struct UnloadFlags {};

void add_unload_flags(CLI::App& app, UnloadFlags& flags);
int run_unload(const UnloadFlags& flags, const CommonFlags& common);

}  // namespace tgi
