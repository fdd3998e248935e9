#include "base/manual/program_doc.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "base/error.h"

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
  doc.repeatable = option.get_items_expected_max() > 1;
  return doc;
}

// From CLI11 2.4 on a positional is found by its name as an option is by its long one, and two of
// one name end the program; before that nobody notices.
void check_names(const CLI::App& app) {
  for (const CLI::Option* positional : app.get_options()) {
    if (!positional->get_positional()) continue;
    for (const CLI::Option* option : app.get_options()) {
      TGI_CHECK(option == positional || !option->check_lname(positional->get_single_name()));
    }
  }
}

}  // namespace

std::string usage_of(const OptionDoc& positional, const std::string& value) {
  const std::string words = value + (positional.repeatable ? "..." : "");
  return positional.required ? words : "[" + words + "]";
}

CommandDoc describe_command(const CLI::App& app) {
  CommandDoc doc{
      .name = app.get_name(), .summary = app.get_description(), .details = app.get_footer()};
  check_names(app);
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    (option->get_positional() ? doc.positionals : doc.options).push_back(describe_option(*option));
  }
  return doc;
}

ProgramDoc describe_program(const CLI::App& app) {
  ProgramDoc doc{.program = describe_command(app)};
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!sub->get_group().empty()) doc.commands.push_back(describe_command(*sub));
  }
  return doc;
}

ValueKind value_kind(const OptionDoc& option) {
  if (option.value.empty()) return ValueKind::kNone;
  if (option.value == "FILE" || option.value == "PATH") return ValueKind::kFile;
  if (option.value == "DIR" || option.value == "OUTDIR") return ValueKind::kFolder;
  if (option.value == "MODEL") return ValueKind::kModel;
  if (option.value == "ADAPTER") return ValueKind::kAdapter;
  if (option.value == "SETTING") return ValueKind::kSetting;
  return ValueKind::kWord;
}

}  // namespace tgi
