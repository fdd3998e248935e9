// tgi version: the versions of the tool and of the daemon that runs. Never starts one.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cmd/session.h"

namespace tgi {

struct VersionFlags {
  std::string own;  // the line of --version
  bool json = false;
};

void add_version_flags(CLI::App& app, VersionFlags& flags);
int run_version(const VersionFlags& flags, const CommonFlags& common);

}  // namespace tgi
