// The flags that say what an answer has to be: a JSON schema, a pattern, a grammar, or one of
// several texts.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ipc/protocol.h"

namespace tgi {

struct GuideFlags {
  std::optional<std::string> schema;  // a file; "-": standard input
  std::optional<std::string> regex;
  std::optional<std::string> grammar;  // a file; "-": standard input
  std::vector<std::string> choices;    // as they were given: with commas between them
  bool flexible_whitespace = false;

  bool reads_standard_input() const { return schema == "-" || grammar == "-"; }
};

void add_guide_flags(CLI::App& app, GuideFlags& flags);

// Throws a UsageError when more than one is given, kNotFound and the like for a file,
// kInvalidArgument for one that is not JSON.
std::optional<ipc::GuideParams> to_guide(const GuideFlags& flags);

}  // namespace tgi
