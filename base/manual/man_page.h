// Man pages from a program's command line: NAME, SYNOPSIS, DESCRIPTION, options by group, EXAMPLES,
// EXIT STATUS, ENVIRONMENT, FILES, SEE ALSO; and one made from a page of docs/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/manual/program_doc.h"

namespace tgi {

// tgi.1 of a program with commands.
std::string program_man_page(const ProgramDoc& doc);

// tgi-NAME.1 of one of them.
std::string command_man_page(const ProgramDoc& doc, const CommandDoc& command);

// tgid.8 of a program without commands.
std::string daemon_man_page(const CommandDoc& program);

// A page out of the Markdown that docs/ uses: headings, paragraphs, lists, indented and fenced
// code, tables (a row becomes an item under its first cell), and in a line `code`, **bold**,
// *italics* and [links](to). The first heading, "# ...", is left out: `summary` says that.
std::string markdown_man_page(std::string_view name,
                              int section,
                              std::string_view manual,
                              std::string_view summary,
                              std::string_view markdown,
                              const std::vector<std::string>& see_also);

}  // namespace tgi
