// tgi docs (hidden): writes man pages and shell completions from the command table, so that they
// can't say anything else than --help. The files are committed; a test compares.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cmd/session.h"

namespace tgi {

struct DocsFlags {
  std::optional<std::string> man_dir;
  std::optional<std::string> completions_dir;
  std::optional<std::string> pages_dir;
  const CLI::App* app = nullptr;  // of the whole program
};

void add_docs_flags(CLI::App& app, DocsFlags& flags);
int run_docs(const DocsFlags& flags, const CommonFlags& common);

// --- what the writers work from: the CLI11 tree as plain data

struct OptionDoc {
  std::vector<std::string> names;    // "-f", "--file"; of a positional its one name
  std::string value;                 // "FILE"; empty for a switch
  std::vector<std::string> choices;  // of the value, when it is one of a few
  std::string help;
  std::string group;
  bool required = false;
  bool repeatable = false;
};

struct CommandDoc {
  std::string name;
  std::string summary;
  std::string details;  // paragraphs parted by empty lines
  std::vector<OptionDoc> positionals;
  std::vector<OptionDoc> options;
};

struct ProgramDoc {
  CommandDoc program;
  std::vector<CommandDoc> commands;  // hidden ones left out
};

ProgramDoc describe_program(const CLI::App& app);

// tgi.1, and tgi-NAME.1 of one command.
std::string program_man_page(const ProgramDoc& doc);
std::string command_man_page(const CommandDoc& command);

std::string bash_completion(const ProgramDoc& doc);
std::string zsh_completion(const ProgramDoc& doc);
std::string fish_completion(const ProgramDoc& doc);

}  // namespace tgi
