// Completions for bash, zsh and fish: command names, options, and for values the choices where
// there are few, or file names where the value is one.
#include <fmt/format.h>

#include <string>

#include "cmd/docs.h"

namespace tgi {
namespace {

bool takes_file(const OptionDoc& option) {
  return option.value == "FILE" || option.value == "MODEL" || option.value == "PATH" ||
         option.value == "DIR";
}

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

std::string join_names(const CommandDoc& command) {
  std::string out;
  for (const OptionDoc& option : command.options) {
    for (const std::string& name : option.names) out += (out.empty() ? "" : " ") + name;
  }
  return out;
}

// The cases of `previous word` in bash: what its value may be.
std::string bash_values(const CommandDoc& command) {
  std::string out;
  for (const OptionDoc& option : command.options) {
    if (option.value.empty()) continue;
    const std::string pattern = fmt::format("{}", fmt::join(option.names, "|"));
    std::string reply = "COMPREPLY=()";
    if (!option.choices.empty()) {
      reply = fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$word\"))",
                          fmt::join(option.choices, " "));
    } else if (takes_file(option)) {
      reply = "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$word\"))";
    }
    out += fmt::format("        {}) {}; return ;;\n", pattern, reply);
  }
  return out;
}

// zsh's _arguments wants brackets and colons of a description escaped.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_value(const OptionDoc& option) {
  if (option.value.empty()) return "";
  std::string action = " ";
  if (!option.choices.empty()) {
    action = fmt::format("({})", fmt::join(option.choices, " "));
  } else if (takes_file(option)) {
    action = option.value == "DIR" ? "_files -/" : "_files";
  }
  return fmt::format(":{}:{}", option.value, action);
}

std::string zsh_arguments(const CommandDoc& command) {
  std::string out;
  for (const OptionDoc& option : command.options) {
    for (const std::string& name : option.names) {
      const std::string spec = fmt::format("{}{}[{}]{}", option.repeatable ? "*" : "", name,
                                           zsh_text(option.help), zsh_value(option));
      out += fmt::format("        {} \\\n", quote(spec));
    }
  }
  for (const OptionDoc& positional : command.positionals) {
    out +=
        fmt::format("        {} \\\n",
                    quote(fmt::format("{}:{}:{}", positional.required ? "" : ":", positional.value,
                                      takes_file(positional) ? "_files" : " ")));
  }
  return out;
}

}  // namespace

std::string bash_completion(const ProgramDoc& doc) {
  std::string names;
  std::string cases;
  for (const CommandDoc& command : doc.commands) {
    names += (names.empty() ? "" : " ") + command.name;
    const std::string values = bash_values(command);
    cases += fmt::format("    {})\n", command.name);
    cases += fmt::format("      case \"$previous\" in\n{}      esac\n", values);
    cases += fmt::format("      options='{}'\n", join_names(command));
    for (const OptionDoc& positional : command.positionals) {
      if (takes_file(positional)) cases += "      files=yes\n";
    }
    cases += "      ;;\n";
  }
  return fmt::format(R"(# Completion of tgi for bash. Written by `tgi docs`; not to be edited.
_tgi() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local options='' files=''
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{} {}' -- "$word"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{}  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *)
      if [ -n "$files" ]; then
        compopt -o filenames
        COMPREPLY=($(compgen -f -- "$word"))
      fi
      ;;
  esac
}}
complete -F _tgi tgi
)",
                     names, join_names(doc.program), cases);
}

std::string zsh_completion(const ProgramDoc& doc) {
  std::string commands;
  std::string cases;
  for (const CommandDoc& command : doc.commands) {
    commands += fmt::format("    {}\n",
                            quote(fmt::format("{}:{}", command.name, zsh_text(command.summary))));
    cases += fmt::format("    {})\n      _arguments \\\n{}        && return 0\n      ;;\n",
                         command.name, zsh_arguments(command));
  }
  return fmt::format(R"(#compdef tgi
# Completion of tgi for zsh. Written by `tgi docs`; not to be edited.
_tgi() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  local command=${{words[2]}}
  shift words
  (( CURRENT-- ))
  case $command in
{}  esac
}}
_tgi "$@"
)",
                     commands, cases);
}

std::string fish_completion(const ProgramDoc& doc) {
  std::string out =
      "# Completion of tgi for fish. Written by `tgi docs`; not to be edited.\ncomplete -c tgi "
      "-f\n";
  for (const CommandDoc& command : doc.commands) {
    out += fmt::format("complete -c tgi -n __fish_use_subcommand -a {} -d {}\n", command.name,
                       quote(command.summary));
  }
  for (const CommandDoc& command : doc.commands) {
    const std::string when = fmt::format("-n '__fish_seen_subcommand_from {}'", command.name);
    for (const OptionDoc& option : command.options) {
      std::string names;
      for (const std::string& name : option.names) {
        names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      std::string value;
      if (!option.value.empty()) value = takes_file(option) ? " -r -F" : " -x";
      if (!option.choices.empty()) {
        value = fmt::format(" -x -a '{}'", fmt::join(option.choices, " "));
      }
      out += fmt::format("complete -c tgi {}{}{} -d {}\n", when, names, value, quote(option.help));
    }
    for (const OptionDoc& positional : command.positionals) {
      if (takes_file(positional)) out += fmt::format("complete -c tgi {} -F\n", when);
    }
  }
  return out;
}

}  // namespace tgi
