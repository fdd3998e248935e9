// tgi adapters: lists the LoRA adapters of the daemon's model, loads, pins and unloads them.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "cmd/session.h"

namespace tgi {

struct AdaptersFlags {
  bool json = false;
  bool quiet = false;
  std::optional<std::string> load;
  std::optional<std::string> name;
  std::optional<std::string> unload;
  std::optional<std::string> pin;
  std::optional<std::string> unpin;
  bool offline = false;
  std::string model;  // empty: the default one
};

void add_adapters_flags(CLI::App& app, AdaptersFlags& flags);
int run_adapters(const AdaptersFlags& flags, const CommonFlags& common);

}  // namespace tgi
