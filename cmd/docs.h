// tgi docs (hidden): writes man pages and shell completions from the command table, so that they
// can't say anything else than --help. The files are committed; a test compares.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "cmd/session.h"

namespace tgi {

struct DocsFlags {
  std::optional<std::string> man_dir;
  std::optional<std::string> protocol;  // docs/protocol.md, which tgi-ipc.5 is made from
  std::optional<std::string> completions_dir;
  std::optional<std::string> pages_dir;
  const CLI::App* app = nullptr;  // of the whole program
};

void add_docs_flags(CLI::App& app, DocsFlags& flags);
int run_docs(const DocsFlags& flags, const CommonFlags& common);

}  // namespace tgi
