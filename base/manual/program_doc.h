// A program's command line as plain data: what its man pages, its completions and --help are
// written from, so that they can't say three different things. Plain values without threads.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tgi {

struct OptionDoc {
  std::vector<std::string> names;    // "-f", "--file"; of a positional its one name
  std::string value;                 // "FILE"; empty for a switch
  std::vector<std::string> choices;  // of the value, when it is one of a few
  std::string help;
  std::string note{};  // what the man page and --help-all add to the help
  std::string group;
  bool required = false;
  bool repeatable = false;
};

// A row of a list: an environment variable, a file, an exit status, an example and what it does.
struct TermDoc {
  std::string term;
  std::string meaning;
};

struct CommandDoc {
  std::string name;     // "generate"; of a program its own
  std::string summary;  // one line
  std::string details;  // paragraphs parted by empty lines
  std::vector<OptionDoc> positionals{};
  std::vector<OptionDoc> options{};
  std::vector<TermDoc> examples{};
  std::vector<TermDoc> exit_statuses{};
  std::vector<TermDoc> environment{};
  std::vector<TermDoc> files{};
  std::vector<std::string> see_also{};  // "tgid(8)"
};

struct ProgramDoc {
  CommandDoc program;
  std::vector<CommandDoc> commands{};  // hidden ones left out; none: options come at once
};

// How an argument stands in a usage: MODEL, [PROMPT], MODEL..., [ID...]. `value` is its value, as a
// page writes it.
std::string usage_of(const OptionDoc& positional, const std::string& value);

// The CLI11 tree: names, values, choices, help and groups. What CLI11 does not know stays empty.
CommandDoc describe_command(const CLI::App& app);
ProgramDoc describe_program(const CLI::App& app);

// What a value is, for completions.
enum class ValueKind { kNone, kWord, kFile, kFolder, kModel, kAdapter, kSetting };
ValueKind value_kind(const OptionDoc& option);

}  // namespace tgi
