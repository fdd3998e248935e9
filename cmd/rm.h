// tgi rm: removes a model's files from this machine.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cmd/session.h"

namespace tgi {

struct RmFlags {
  std::vector<std::string> models;
  bool yes = false;
};

void add_rm_flags(CLI::App& app, RmFlags& flags);
int run_rm(const RmFlags& flags, const CommonFlags& common);

}  // namespace tgi
