// tgi logs: what the daemon that a command has started says.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cmd/session.h"

namespace tgi {

struct LogsFlags {
  bool follow = false;
  int lines = 0;  // 0: all
};

void add_logs_flags(CLI::App& app, LogsFlags& flags);
int run_logs(const LogsFlags& flags, const CommonFlags& common);

}  // namespace tgi
