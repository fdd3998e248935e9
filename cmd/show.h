// tgi show: what a model is, and what it would need; what an adapter is.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cmd/session.h"

namespace tgi {

struct ShowFlags {
  std::string model;
  bool json = false;
  bool modelfile = false;
};

void add_show_flags(CLI::App& app, ShowFlags& flags);
int run_show(const ShowFlags& flags, const CommonFlags& common);

}  // namespace tgi
