// tgi run: a chat or one answer of a model, which is downloaded and loaded where it is not yet.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "cmd/session.h"

namespace tgi {

struct RunFlags {
  ModelFlags model;
  std::optional<std::string> prompt;
  std::optional<std::string> system;
  bool raw = false;
  // As of a chat, from the settings of the terminal.
  bool stats = false;
  bool slides = false;
  bool no_save = false;
};

void add_run_flags(CLI::App& app, RunFlags& flags);
int run_run(const RunFlags& flags, const CommonFlags& common);

}  // namespace tgi
