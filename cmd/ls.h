// tgi ls: the models of this machine. Needs no daemon.
#pragma once

#include <CLI/CLI.hpp>

#include "cmd/session.h"

namespace tgi {

struct LsFlags {
  bool json = false;
  bool quiet = false;
  bool jobs = false;
};

void add_ls_flags(CLI::App& app, LsFlags& flags);
int run_ls(const LsFlags& flags, const CommonFlags& common);

}  // namespace tgi
