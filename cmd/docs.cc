#include "cmd/docs.h"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "cmd/launcher_flags.h"
#include "cmd/output.h"

namespace tgi {
namespace {

// CLI11 gives "FORMAT:{auto,dummy}" or "N:INT in [1 - 8]": the name, then what is checked.
void split_type(const std::string& type, OptionDoc& doc) {
  const size_t colon = std::min(type.find(':'), type.size());
  doc.value = type.substr(0, colon);
  std::string check = colon < type.size() ? type.substr(colon + 1) : "";
  if (!check.starts_with('{') || !check.ends_with('}')) return;
  std::istringstream choices(check.substr(1, check.size() - 2));
  for (std::string choice; std::getline(choices, choice, ',');) doc.choices.push_back(choice);
}

OptionDoc describe_option(const CLI::Option& option) {
  OptionDoc doc;
  for (const std::string& name : option.get_snames()) doc.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) doc.names.push_back("--" + name);
  if (option.get_items_expected_max() > 0) split_type(option.get_type_name(), doc);
  if (option.get_positional()) doc.names = {doc.value};
  doc.help = option.get_description();
  doc.group = option.get_group();
  doc.required = option.get_required();
  doc.repeatable = !option.get_positional() && option.get_items_expected_max() > 1;
  return doc;
}

CommandDoc describe_command(const CLI::App& app) {
  CommandDoc doc{.name = app.get_name(),
                 .summary = app.get_description(),
                 .details = app.get_footer(),
                 .positionals = {},
                 .options = {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    (option->get_positional() ? doc.positionals : doc.options).push_back(describe_option(*option));
  }
  return doc;
}

void write_into(const std::string& folder, const std::string& name, const std::string& text) {
  std::filesystem::create_directories(folder);
  const std::string path = folder + "/" + name;
  write_file(path, text);
  std::filesystem::permissions(path, std::filesystem::perms(0644));
}

}  // namespace

ProgramDoc describe_program(const CLI::App& app) {
  ProgramDoc doc{.program = describe_command(app), .commands = {}};
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!sub->get_group().empty()) doc.commands.push_back(describe_command(*sub));
  }
  return doc;
}

void add_docs_flags(CLI::App& app, DocsFlags& flags) {
  flags.app = app.get_parent();
  app.add_option("--man", flags.man_dir, "write the man pages into this folder")->type_name("DIR");
  app.add_option("--completions", flags.completions_dir, "write the completions into this folder")
      ->type_name("DIR");
  app.add_option("--pages", flags.pages_dir, "write the generated pages of docs/ into this folder")
      ->type_name("DIR");
}

int run_docs(const DocsFlags& flags, const CommonFlags& /*common*/) {
  TGI_CHECK(flags.app != nullptr);
  if (!flags.man_dir && !flags.completions_dir && !flags.pages_dir) {
    throw UsageError("nothing to write; give --man DIR, --completions DIR or --pages DIR");
  }
  const ProgramDoc doc = describe_program(*flags.app);
  if (flags.man_dir) {
    write_into(*flags.man_dir, "tgi.1", program_man_page(doc));
    for (const CommandDoc& command : doc.commands) {
      write_into(*flags.man_dir, fmt::format("tgi-{}.1", command.name), command_man_page(command));
    }
  }
  if (flags.pages_dir) {
    write_into(*flags.pages_dir, "flags_from_tgi.md", launcher_flags_page());
  }
  if (flags.completions_dir) {
    write_into(*flags.completions_dir, "tgi.bash", bash_completion(doc));
    write_into(*flags.completions_dir, "tgi.zsh", zsh_completion(doc));
    write_into(*flags.completions_dir, "tgi.fish", fish_completion(doc));
  }
  return 0;
}

}  // namespace tgi
