// --help as one screen: usage, the arguments and flags that matter most, examples, and where the
// rest is. --help-all lists every flag by group, with the description.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/manual/program_doc.h"

namespace CLI {
class FormatterBase;
}

namespace tgi {

struct HelpSource {
  // The document of the command as the man page has it, with examples.
  std::function<CommandDoc(const CLI::App&)> describe;
  // The long names of the flags of the short help, parted by spaces; empty: all.
  std::function<std::string_view(const std::string& command)> common_flags;
};

// Give it to CLI::App::formatter before subcommands are added: they inherit it.
std::shared_ptr<CLI::FormatterBase> make_help_formatter(HelpSource source);

// Adds -h,--help and, for a command, --help-all.
void add_help_flags(CLI::App& app, bool has_help_all);

inline constexpr size_t kHelpColumns = 80;

// The group of the flags that all commands have; the short help leaves it out.
inline constexpr std::string_view kCommonGroup = "Common options";

// Breaks at spaces; lines after the first begin with `indent` spaces. A longer word has its line
// alone.
std::string wrap(std::string_view text, size_t first_column, size_t indent, size_t columns);

}  // namespace tgi
