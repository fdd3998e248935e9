// tgi stop: ends the daemon and waits until it is gone. Never starts one.
#pragma once

#include <CLI/CLI.hpp>

#include "cmd/session.h"

namespace tgi {

struct StopFlags {};

void add_stop_flags(CLI::App& app, StopFlags& flags);
int run_stop(const StopFlags& flags, const CommonFlags& common);

}  // namespace tgi
