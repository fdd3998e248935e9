#include "base/manual/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/manual/roff.h"

namespace tgi {
namespace {

std::string option_item(const OptionDoc& option) {
  std::string head;
  for (const std::string& name : option.names) {
    if (!head.empty()) head += ", ";
    head += roff_bold(name);
  }
  if (!option.value.empty()) head += " " + roff_italic(option.value);
  return roff_item(head, option.help + option.note);
}

// Options without a group of their own come first; CLI11 calls them "Options".
std::string options_sections(const CommandDoc& command) {
  std::string out;
  if (!command.positionals.empty()) {
    out += roff_section("arguments");
    for (const OptionDoc& positional : command.positionals) {
      out += roff_item(roff_italic(positional.value), positional.help);
    }
  }
  std::vector<std::string> groups;
  for (const OptionDoc& option : command.options) {
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) {
      groups.push_back(option.group);
    }
  }
  for (const std::string& group : groups) {
    out += roff_section(group);
    for (const OptionDoc& option : command.options) {
      if (option.group == group) out += option_item(option);
    }
  }
  return out;
}

std::string examples_section(const std::vector<TermDoc>& examples) {
  if (examples.empty()) return "";
  std::string out = roff_section("examples");
  for (const TermDoc& example : examples) {
    if (&example != &examples.front()) out += ".PP\n";
    out += fmt::format("{}:\n.PP\n.RS 4\n.nf\n{}\n.fi\n.RE\n", roff_escape(example.meaning),
                       roff_escape(example.term));
  }
  return out;
}

std::string tail_sections(const CommandDoc& command) {
  return examples_section(command.examples) + roff_terms("exit status", command.exit_statuses) +
         roff_terms("environment", command.environment) + roff_terms("files", command.files) +
         roff_see_also(command.see_also);
}

std::string details_section(const CommandDoc& command) {
  if (command.details.empty()) return "";
  return roff_section("description") + roff_paragraphs(command.details);
}

}  // namespace

std::string program_man_page(const ProgramDoc& doc) {
  const std::string& name = doc.program.name;
  std::string out = roff_title(name, 1, "User Commands", doc.program.summary);
  out += roff_section("synopsis");
  out += fmt::format("{} {} [{}]...\n", roff_bold(name), roff_italic("COMMAND"),
                     roff_italic("OPTION"));
  out += details_section(doc.program) + roff_section("commands");
  for (const CommandDoc& command : doc.commands) {
    out += fmt::format(".TP\n{}\n{}; see {}(1)\n", roff_bold(command.name),
                       roff_escape(command.summary),
                       roff_bold(fmt::format("{}-{}", name, command.name)));
  }
  return out + options_sections(doc.program) + tail_sections(doc.program);
}

std::string command_man_page(const ProgramDoc& doc, const CommandDoc& command) {
  const std::string& program = doc.program.name;
  std::string out =
      roff_title(fmt::format("{}-{}", program, command.name), 1, "User Commands", command.summary);
  out += roff_section("synopsis");
  out += fmt::format("{} [{}]...", roff_bold(fmt::format("{} {}", program, command.name)),
                     roff_italic("OPTION"));
  for (const OptionDoc& positional : command.positionals) {
    out += " " + usage_of(positional, roff_italic(positional.value));
  }
  return out + "\n" + details_section(command) + options_sections(command) + tail_sections(command);
}

std::string daemon_man_page(const CommandDoc& program) {
  std::string out = roff_title(program.name, 8, "System Administration", program.summary);
  out += roff_section("synopsis");
  out += fmt::format("{} [{}]...\n", roff_bold(program.name), roff_italic("OPTION"));
  return out + details_section(program) + options_sections(program) + tail_sections(program);
}

}  // namespace tgi
