// tgi create: keeps a preset, a named model with what belongs to it, from a Modelfile.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cmd/session.h"

namespace tgi {

struct CreateFlags {
  std::string name;
  std::string file = "Modelfile";
  bool offline = false;
};

void add_create_flags(CLI::App& app, CreateFlags& flags);
int run_create(const CreateFlags& flags, const CommonFlags& common);

}  // namespace tgi
