#include "base/manual/completions.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/manual/help.h"

namespace tgi {
namespace {

// What may stand for a model beside a folder: the names of those that are installed and of the
// built-in one.
constexpr std::string_view kListModels = "tgi ls --quiet 2>/dev/null";
// For an adapter likewise, and those that the daemon has loaded.
constexpr std::string_view kListAdapters = "tgi adapters --quiet 2>/dev/null";
constexpr std::string_view kListSettings = "tgi config list 2>/dev/null | cut -d \" \" -f 1";

// For single quotes in all three shells.
std::string quote(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

// fish knows two escapes in single quotes.
std::string fish_quote(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string join_names(const CommandDoc& command) {
  std::string out;
  for (const OptionDoc& option : command.options) {
    for (const std::string& name : option.names) out += (out.empty() ? "" : " ") + name;
  }
  return out;
}

// What all commands have, which may stand before them too; the program has a help of its own.
std::vector<OptionDoc> common_options(const ProgramDoc& doc) {
  std::vector<OptionDoc> out;
  for (const OptionDoc& option : doc.commands.front().options) {
    const bool is_help = option.names.back().starts_with("--help");
    if (option.group == kCommonGroup && !is_help) out.push_back(option);
  }
  return out;
}

// --- bash

// Sets COMPREPLY for a value.
std::string bash_reply(const OptionDoc& option) {
  if (!option.choices.empty()) {
    return fmt::format("_tgi_words '{}'", fmt::join(option.choices, " "));
  }
  switch (value_kind(option)) {
    case ValueKind::kFile:
      return "_tgi_files";
    case ValueKind::kFolder:
      return "_tgi_folders";
    case ValueKind::kModel:
      return "_tgi_models";
    case ValueKind::kAdapter:
      return "_tgi_adapters";
    case ValueKind::kSetting:
      return "_tgi_settings";
    case ValueKind::kNone:
    case ValueKind::kWord:
      break;
  }
  return "COMPREPLY=()";
}

// What may stand where no option does; of several arguments each has its place.
std::string bash_others(const CommandDoc& command, std::string_view indent) {
  std::string with_value;
  for (const OptionDoc& option : command.options) {
    if (option.value.empty()) continue;
    for (const std::string& name : option.names) with_value += " " + name;
  }
  std::string places;
  const bool is_one = command.positionals.size() == 1;
  for (size_t i = 0; i < command.positionals.size(); ++i) {
    const std::string reply = bash_reply(command.positionals[i]);
    if (reply == "COMPREPLY=()") continue;
    if (is_one) return fmt::format("{}others=\"{}\"\n", indent, reply);
    places += fmt::format("{}  {}) others=\"{}\" ;;\n", indent, i, reply);
  }
  if (places.empty()) return "";
  return fmt::format("{0}case \"$(_tgi_place \"$at\" '{1} ')\" in\n{2}{0}esac\n", indent,
                     with_value, places);
}

// What may come after an option, what the options are, and what else may stand there.
std::string bash_command(const CommandDoc& command, std::string_view indent) {
  std::string values;
  for (const OptionDoc& option : command.options) {
    if (option.value.empty()) continue;
    values += fmt::format("{}  {}) {}; return ;;\n", indent, fmt::join(option.names, "|"),
                          bash_reply(option));
  }
  std::string out;
  if (!values.empty()) {
    out += fmt::format("{0}case \"$previous\" in\n{1}{0}esac\n", indent, values);
  }
  out += fmt::format("{}options='{}'\n", indent, join_names(command));
  return out + bash_others(command, indent);
}

// Sets `at` to the place of the command's name, before which options may stand that all commands
// have; where the value of one is to be completed, past it, and `others` to what offers it.
std::string bash_find_command(const std::vector<OptionDoc>& common) {
  std::string cases;
  for (const OptionDoc& option : common) {
    if (option.value.empty()) continue;
    cases += fmt::format(
        "      {}) others=\"{}\"; at=$((at + 2)); [ \"${{COMP_WORDS[at-1]}}\" != = ] || at=$((at + "
        "1)) "
        ";;\n",
        fmt::join(option.names, "|"), bash_reply(option));
  }
  return fmt::format(
      "  local at=1\n  while [ \"$at\" -lt \"$COMP_CWORD\" ]; do\n"
      "    case \"${{COMP_WORDS[at]}}\" in\n{}      -*) at=$((at + 1)) ;;\n      *) break ;;\n"
      "    esac\n  done\n",
      cases);
}

constexpr std::string_view kBashHelpers = R"(
_tgi_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$word"); }
_tgi_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$word")
}
_tgi_folders() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -d -- "$word")
}
# How many arguments stand between the command, the word $1, and the one that is completed; $2:
# options that have a value.
_tgi_place() {
  local i count=0
  for ((i = $1 + 1; i < COMP_CWORD; ++i)); do
    case "${COMP_WORDS[i]}" in
      -*|=) continue ;;
    esac
    [ "${COMP_WORDS[i-1]}" != = ] || continue
    case "$2" in
      *" ${COMP_WORDS[i-1]} "*) ;;
      *) count=$((count + 1)) ;;
    esac
  done
  echo "$count"
}
)";

// A function that offers folders, and what a command lists.
std::string bash_lister(std::string_view name, std::string_view command) {
  return fmt::format(R"bash({}() {{
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -d -- "$word"; compgen -W "$({})" -- "$word")
}}
)bash",
                     name, command);
}

// --- zsh

// _arguments wants brackets and colons of a description escaped.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_action(const OptionDoc& option) {
  if (!option.choices.empty()) return fmt::format("({})", fmt::join(option.choices, " "));
  switch (value_kind(option)) {
    case ValueKind::kFile:
      return "_files";
    case ValueKind::kFolder:
      return "_files -/";
    case ValueKind::kModel:
      return "_tgi_models";
    case ValueKind::kAdapter:
      return "_tgi_adapters";
    case ValueKind::kSetting:
      return "_tgi_settings";
    case ValueKind::kNone:
    case ValueKind::kWord:
      break;
  }
  return " ";
}

std::string zsh_arguments(const CommandDoc& command, std::string_view indent) {
  std::string out;
  for (const OptionDoc& option : command.options) {
    const std::string value =
        option.value.empty() ? "" : fmt::format(":{}:{}", option.value, zsh_action(option));
    for (const std::string& name : option.names) {
      const std::string spec = fmt::format("{}{}[{}]{}", option.repeatable ? "*" : "", name,
                                           zsh_text(option.help), value);
      out += fmt::format("{}{} \\\n", indent, quote(spec));
    }
  }
  for (const OptionDoc& positional : command.positionals) {
    out += fmt::format("{}{} \\\n", indent,
                       quote(fmt::format("{}:{}:{}",
                                         positional.repeatable ? "*"
                                         : positional.required ? ""
                                                               : ":",
                                         positional.value, zsh_action(positional))));
  }
  return out;
}

// Sets `at` to the place of the command's name, as bash_find_command(); past the word that is
// completed, `value` offers what an option before the command takes.
std::string zsh_find_command(const std::vector<OptionDoc>& common) {
  std::string cases;
  for (const OptionDoc& option : common) {
    if (option.value.empty()) continue;
    cases += fmt::format("      {}) value='{}'; (( at += 2 )) ;;\n", fmt::join(option.names, "|"),
                         zsh_action(option));
  }
  return fmt::format(R"(  local -i at=2
  local value
  while (( at < CURRENT )); do
    case ${{words[at]}} in
{}      -*) (( at += 1 )) ;;
      *) break ;;
    esac
  done
  if (( at > CURRENT )); then
    eval $value
    return
  fi
)",
                     cases);
}

std::string zsh_lister(std::string_view name, std::string_view command) {
  return fmt::format(R"zsh(
{}() {{
  local -a names
  names=(${{(f)"$({})"}})
  compadd -a names
  _files -/
}}
)zsh",
                     name, command);
}

// --- fish

std::string fish_value(const OptionDoc& option) {
  if (!option.choices.empty()) return fmt::format(" -x -a '{}'", fmt::join(option.choices, " "));
  switch (value_kind(option)) {
    case ValueKind::kFile:
      return " -r -F";
    case ValueKind::kFolder:
      return " -x -a '(__fish_complete_directories)'";
    case ValueKind::kModel:
      return fmt::format(" -x -a '({}) (__fish_complete_directories)'", kListModels);
    case ValueKind::kAdapter:
      return fmt::format(" -x -a '({}) (__fish_complete_directories)'", kListAdapters);
    case ValueKind::kSetting:
      return fmt::format(" -x -a '({})'", kListSettings);
    case ValueKind::kWord:
      return " -x";
    case ValueKind::kNone:
      break;
  }
  return "";
}

std::string fish_command(const std::string& program,
                         const std::string& when,
                         const CommandDoc& command) {
  const std::string head = fmt::format("complete -c {}{}", program, when);
  std::string out;
  for (const OptionDoc& option : command.options) {
    std::string names;
    for (const std::string& name : option.names) {
      names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    out += fmt::format("{}{}{} -d {}\n", head, names, fish_value(option), fish_quote(option.help));
  }
  for (const OptionDoc& positional : command.positionals) {
    std::string value = fish_value(positional);
    if (value == " -x" || value.empty()) continue;
    // A positional has no option that could require a value.
    value = value == " -r -F" ? " -F" : " -f" + value.substr(3);
    out += head + value + "\n";
  }
  return out;
}

// Conditions of fish: which command stands before the cursor, "" where none does.
std::string fish_find_command(const std::string& program, const std::vector<OptionDoc>& common) {
  std::string valued;
  for (const OptionDoc& option : common) {
    if (option.value.empty()) continue;
    for (const std::string& name : option.names) valued += " " + name;
  }
  return fmt::format(R"(function __{0}_is
    set -l words (commandline -opc)
    set -e words[1]
    while string match -q -- '-*' "$words[1]"
        contains -- $words[1]{1}
        and set -e words[2]
        set -e words[1]
    end
    test "$words[1]" = "$argv[1]"
end
)",
                     program, valued);
}

std::string written_by(const std::string& program) {
  return fmt::format("Written by `scripts/make_docs` from the options of {}; do not edit.",
                     program);
}

}  // namespace

std::string bash_completion(const ProgramDoc& doc) {
  const std::string& program = doc.program.name;
  std::string body;
  if (doc.commands.empty()) {
    body = bash_command(doc.program, "  ");
  } else {
    std::string names;
    std::string cases;
    for (const CommandDoc& command : doc.commands) {
      names += (names.empty() ? "" : " ") + command.name;
      cases += fmt::format("    {})\n{}      ;;\n", command.name, bash_command(command, "      "));
    }
    body = fmt::format(
        "{}  if [ \"$at\" -gt \"$COMP_CWORD\" ]; then\n    eval \"$others\"\n    return\n  fi\n  "
        "others=''\n"
        "  if [ \"$at\" -eq \"$COMP_CWORD\" ]; then\n    _tgi_words '{} {}'\n    return\n  fi\n"
        "  case \"${{COMP_WORDS[at]}}\" in\n{}  esac\n",
        bash_find_command(common_options(doc)), names, join_names(doc.program), cases);
  }
  const std::string helpers =
      std::string(kBashHelpers) + bash_lister("_tgi_models", kListModels) +
      bash_lister("_tgi_adapters", kListAdapters) +
      fmt::format("_tgi_settings() {{ _tgi_words \"$({})\"; }}\n", kListSettings);
  return fmt::format(R"(# Completion of {0} for bash. {1}
{2}
_{0}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local options='' others=''
  COMPREPLY=()
  if [ "$word" = = ]; then  # bash takes --dtype=bf16 for three words
    word=''
  elif [ "$previous" = = ]; then
    previous=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
{3}  case "$word" in
    -*) _tgi_words "$options" ;;
    *) eval "$others" ;;
  esac
}}
complete -F _{0} {0}
)",
                     program, written_by(program), helpers, body);
}

std::string zsh_completion(const ProgramDoc& doc) {
  const std::string& program = doc.program.name;
  const std::string listers =
      zsh_lister("_tgi_models", kListModels) + zsh_lister("_tgi_adapters", kListAdapters) +
      fmt::format(
          "\n_tgi_settings() {{\n  local -a names\n  names=(${{(f)\"$({})\"}})\n"
          "  compadd -a names\n}}\n",
          kListSettings);
  std::string body;
  if (doc.commands.empty()) {
    body = fmt::format("  _arguments \\\n{}    && return 0\n", zsh_arguments(doc.program, "    "));
  } else {
    std::string commands;
    std::string cases;
    for (const CommandDoc& command : doc.commands) {
      commands += fmt::format("    {}\n",
                              quote(fmt::format("{}:{}", command.name, zsh_text(command.summary))));
      cases += fmt::format("    {})\n      _arguments \\\n{}        && return 0\n      ;;\n",
                           command.name, zsh_arguments(command, "        "));
    }
    CommandDoc before = doc.program;
    for (OptionDoc& option : common_options(doc)) before.options.push_back(std::move(option));
    body = fmt::format(R"(  local -a commands
  commands=(
{}  )
{}  if (( at == CURRENT )) && [[ ${{words[CURRENT]}} == -* ]]; then
    _arguments \
{}      && return 0
  fi
  if (( at == CURRENT )); then
    _describe 'command' commands
    return
  fi
  local command=${{words[at]}}
  shift $(( at - 1 )) words
  (( CURRENT -= at - 1 ))
  case $command in
{}  esac
)",
                       commands, zsh_find_command(common_options(doc)),
                       zsh_arguments(before, "      "), cases);
  }
  return fmt::format(
      "#compdef {0}\n# Completion of {0} for zsh. {1}\n{2}\n_{0}() {{\n{3}}}\n_{0} \"$@\"\n",
      program, written_by(program), listers, body);
}

std::string fish_completion(const ProgramDoc& doc) {
  const std::string& program = doc.program.name;
  std::string out = fmt::format("# Completion of {0} for fish. {1}\ncomplete -c {0} -f\n", program,
                                written_by(program));
  if (doc.commands.empty()) return out + fish_command(program, "", doc.program);
  const std::string before = fmt::format(" -n '__{}_is \"\"'", program);
  out += fish_find_command(program, common_options(doc));
  for (const CommandDoc& command : doc.commands) {
    out += fmt::format("complete -c {}{} -a {} -d {}\n", program, before, command.name,
                       fish_quote(command.summary));
  }
  CommandDoc options = doc.program;
  for (OptionDoc& option : common_options(doc)) options.options.push_back(std::move(option));
  out += fish_command(program, before, options);
  for (const CommandDoc& command : doc.commands) {
    out += fish_command(program, fmt::format(" -n '__{}_is {}'", program, command.name), command);
  }
  return out;
}

}  // namespace tgi
