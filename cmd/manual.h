// What the flags of a command do not say about it: which of them matter most, examples, the
// variables and files it knows. `tgi docs` and --help are written from it; one row per command.
#pragma once

#include <string_view>

#include "base/manual/program_doc.h"

namespace tgi {

// The document of the whole program: the flags as CLI11 has them, and the rows of this table.
ProgramDoc describe_tgi(const CLI::App& app);

// Adds the row of a command, if it has one.
void add_manual(CommandDoc& command);

// The long names of the flags that --help shows, parted by spaces, in their order; empty: all.
std::string_view common_flags(std::string_view command);

}  // namespace tgi
