#include "base/manual/help.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>
#include <vector>

#include "base/color.h"

namespace tgi {
namespace {

constexpr size_t kTextColumn = 26;  // of what is said about a flag

std::string head_of(const OptionDoc& option, bool is_positional) {
  if (is_positional) return option.value;
  std::string out;
  for (const std::string& name : option.names) out += (out.empty() ? "" : ", ") + name;
  // Long names line up whether there is a short one or not.
  if (out.starts_with("--")) out.insert(0, "    ");
  return option.value.empty() ? out : out + " " + option.value;
}

std::string row(const std::string& head, std::string_view text) {
  std::string out = "  " + head;
  if (out.size() + 2 > kTextColumn) {
    out += "\n" + std::string(kTextColumn, ' ');
  } else {
    out.resize(kTextColumn, ' ');
  }
  return out + wrap(text, kTextColumn, kTextColumn, kHelpColumns) + "\n";
}

class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(HelpSource source) : source_(std::move(source)) {}

  std::string make_help(const CLI::App* app,
                        std::string /*name*/,
                        CLI::AppFormatMode mode) const override {
    const CommandDoc doc = source_.describe(*app);
    const ProgramDoc tree = describe_program(*app);
    const CLI::App* parent = app->get_parent();
    const std::string name =
        parent == nullptr ? doc.name : fmt::format("{} {}", parent->get_name(), doc.name);
    std::string out = fmt::format("{}: {}\n\n", bold(name), doc.summary);
    out += heading("Usage") +
           fmt::format("  {}{} [OPTION]...", name, tree.commands.empty() ? "" : " COMMAND");
    for (const OptionDoc& positional : doc.positionals) {
      out += " " + usage_of(positional, positional.value);
    }
    out += "\n";
    if (!tree.commands.empty()) {
      out += "\n" + heading("Commands");
      for (const CommandDoc& command : tree.commands) out += row(command.name, command.summary);
    }
    const bool all = mode == CLI::AppFormatMode::All;
    const std::string page =
        parent == nullptr ? doc.name : fmt::format("{}-{}", parent->get_name(), doc.name);
    out += all ? all_options(doc) : some_options(doc);
    out += shared_options(tree);
    out += examples(doc);
    if (all) return out + details(doc);
    const bool is_short = !source_.common_flags(doc.name).empty();
    out += "\n";
    if (!tree.commands.empty()) {
      return out + fmt::format("More: `{} COMMAND --help`, `man {}`.\n", name, page);
    }
    return out + (is_short ? fmt::format("All {} options: `{} --help-all`, `man {}`.\n",
                                         doc.options.size(), name, page)
                           : fmt::format("More: `man {}`.\n", page));
  }

 private:
  // Help goes to standard output.
  static std::string bold(std::string_view text) {
    return styled(text, Style::kBold, may_color(STDOUT_FILENO));
  }
  static std::string heading(std::string_view text) { return bold(text) + ":\n"; }

  static std::string positionals(const CommandDoc& doc) {
    std::string out;
    for (const OptionDoc& option : doc.positionals) out += row(head_of(option, true), option.help);
    return out;
  }

  // What a flag is; defaults and fine print are left to --help-all.
  static std::string in_short(const OptionDoc& option) {
    return row(head_of(option, false), option.help.substr(0, option.help.find("; ")));
  }

  std::string some_options(const CommandDoc& doc) const {
    std::string rows = positionals(doc);
    const std::string_view wanted = source_.common_flags(doc.name);
    std::istringstream names{std::string(wanted)};
    for (std::string name; names >> name;) {
      for (const OptionDoc& option : doc.options) {
        const auto& all = option.names;
        if (std::find(all.begin(), all.end(), "--" + name) == all.end()) continue;
        rows += in_short(option);
      }
    }
    for (const OptionDoc& option : doc.options) {
      if (wanted.empty() && option.group != kCommonGroup) rows += in_short(option);
    }
    return rows.empty() ? "" : "\n" + heading("Options") + rows;
  }

  // What every command has, of a program that has commands.
  static std::string shared_options(const ProgramDoc& tree) {
    if (tree.commands.empty()) return "";
    std::string rows;
    for (const OptionDoc& option : tree.commands.front().options) {
      if (option.group == kCommonGroup) rows += in_short(option);
    }
    return rows.empty() ? "" : "\n" + heading("Options of every command") + rows;
  }

  static std::string all_options(const CommandDoc& doc) {
    std::string out = doc.positionals.empty() ? "" : "\n" + heading("Arguments") + positionals(doc);
    std::vector<std::string> groups;
    for (const OptionDoc& option : doc.options) {
      if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) {
        groups.push_back(option.group);
      }
    }
    for (const std::string& group : groups) {
      out += "\n" + heading(group);
      for (const OptionDoc& option : doc.options) {
        if (option.group == group) out += row(head_of(option, false), option.help + option.note);
      }
    }
    return out;
  }

  static std::string examples(const CommandDoc& doc) {
    if (doc.examples.empty()) return "";
    std::string out = "\n" + heading("Examples");
    for (const TermDoc& example : doc.examples) out += "  " + example.term + "\n";
    return out;
  }

  static std::string details(const CommandDoc& doc) {
    std::string out;
    std::istringstream lines(doc.details);
    for (std::string line; std::getline(lines, line);) out += "\n" + wrap(line, 0, 0, kHelpColumns);
    return out.empty() ? "" : out + "\n";
  }

  HelpSource source_;
};

}  // namespace

std::string wrap(std::string_view text, size_t first_column, size_t indent, size_t columns) {
  std::string out;
  size_t column = first_column;
  bool at_start = true;
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(std::min(space + 1, text.size()));
    if (word.empty()) continue;
    if (!at_start && column + 1 + word.size() > columns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
      at_start = true;
    }
    if (!at_start) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    at_start = false;
  }
  return out;
}

std::shared_ptr<CLI::FormatterBase> make_help_formatter(HelpSource source) {
  return std::make_shared<HelpFormatter>(std::move(source));
}

void add_help_flags(CLI::App& app, bool has_help_all) {
  const std::string group(kCommonGroup);
  app.set_help_flag("-h,--help", "show the options that matter most, and examples")->group(group);
  if (has_help_all) {
    app.set_help_all_flag("--help-all", "show every option, by what it is about")->group(group);
  }
}

}  // namespace tgi
