// Man pages in the classic man macros (man(7)): plain enough for every reader of them.
#include <fmt/format.h>

#include <array>
#include <sstream>

#include "base/error.h"
#include "cmd/docs.h"
#include "ipc/protocol.h"

namespace tgi {
namespace {

struct ExitRow {
  int status;
  std::string_view meaning;
};

constexpr int exit_of(Code code) {
  return code_row(code).exit_status;
}

// docs/exit_codes.md says the same at more length.
constexpr std::array kExitRows = {
    ExitRow{0, "done; also when the reader of the output went away before the end"},
    ExitRow{exit_of(Code::kInternal), "a bug of tgi or tgid"},
    ExitRow{2, "the command line is wrong"},
    ExitRow{exit_of(Code::kInvalidArgument), "the request or a setting is wrong"},
    ExitRow{exit_of(Code::kNotFound), "a file is not there, or no model is loaded"},
    ExitRow{exit_of(Code::kUnsupported), "understood, but this build or device can't do it"},
    ExitRow{exit_of(Code::kOutOfMemory), "not enough memory or disk"},
    ExitRow{exit_of(Code::kOverloaded), "the daemon is busy or is stopping: try again later"},
    ExitRow{exit_of(Code::kUnavailable), "the daemon can't be reached or went away"},
    ExitRow{exit_of(Code::kDeviceLost), "the accelerator failed"},
    ExitRow{exit_of(Code::kCancelled), "stopped by Ctrl-C or cancelled"},
};

struct EnvironmentRow {
  std::string_view name;
  std::string_view meaning;
};

constexpr std::array kEnvironment = {
    EnvironmentRow{"TGI_SOCKET", "the daemon's socket, where --socket is not given"},
    EnvironmentRow{"TGI_DAEMON",
                   "the program to start when no daemon is running; default: tgid beside tgi, else "
                   "on PATH"},
    EnvironmentRow{"XDG_RUNTIME_DIR", "the socket lies in tgi/tgid.sock below it"},
    EnvironmentRow{"XDG_STATE_HOME",
                   "the chat's history and the log of a daemon started by a command lie in tgi/ "
                   "below it; default ~/.local/state"},
};

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  // A dot or quote in front would be taken for a macro.
  if (out.starts_with('.') || out.starts_with('\'')) out.insert(0, "\\&");
  return out;
}

std::string title(std::string_view name, std::string_view summary) {
  return fmt::format(".TH {} 1 \"\" \"tgi {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n",
                     escape(name), ipc::kVersion, escape(name), escape(summary));
}

// Lines of a paragraph are joined by the reader; an empty line parts paragraphs.
std::string paragraphs(std::string_view text) {
  std::string out;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    out += line.empty() ? std::string(".PP\n") : escape(line) + "\n";
  }
  return out;
}

std::string option_head(const OptionDoc& option) {
  std::string out;
  for (const std::string& name : option.names) {
    if (!out.empty()) out += ", ";
    out += fmt::format("\\fB{}\\fR", escape(name));
  }
  if (!option.value.empty()) out += fmt::format(" \\fI{}\\fR", escape(option.value));
  return out;
}

std::string option_entry(const OptionDoc& option) {
  return fmt::format(".TP\n{}\n{}\n", option_head(option), escape(option.help));
}

std::string options_sections(const CommandDoc& command) {
  std::string out;
  if (!command.positionals.empty()) {
    out += ".SH ARGUMENTS\n";
    for (const OptionDoc& positional : command.positionals) {
      out += fmt::format(".TP\n\\fI{}\\fR\n{}\n", positional.value, escape(positional.help));
    }
  }
  std::string group;
  for (const OptionDoc& option : command.options) {
    if (option.group != group) {
      std::string heading = option.group;
      for (char& c : heading) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      out += fmt::format(".SH {}\n", heading);
      group = option.group;
    }
    out += option_entry(option);
  }
  return out;
}

std::string exit_section() {
  std::string out = ".SH EXIT STATUS\n";
  for (const ExitRow& row : kExitRows) {
    out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", row.status, escape(row.meaning));
  }
  return out;
}

std::string environment_section() {
  std::string out = ".SH ENVIRONMENT\n";
  for (const EnvironmentRow& row : kEnvironment) {
    out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", escape(row.name), escape(row.meaning));
  }
  return out;
}

}  // namespace

std::string program_man_page(const ProgramDoc& doc) {
  std::string out = title("tgi", "run language models on this machine");
  out += ".SH SYNOPSIS\n\\fBtgi\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]...\n.SH DESCRIPTION\n";
  out += paragraphs(doc.program.details);
  out += ".SH COMMANDS\n";
  for (const CommandDoc& command : doc.commands) {
    out += fmt::format(".TP\n\\fB{}\\fR\n{}; see \\fBtgi\\-{}\\fR(1)\n", command.name,
                       escape(command.summary), command.name);
  }
  return out + options_sections(doc.program) + exit_section() + environment_section();
}

std::string command_man_page(const CommandDoc& command) {
  std::string out = title("tgi-" + command.name, command.summary);
  out += fmt::format(".SH SYNOPSIS\n\\fBtgi {}\\fR [\\fIOPTION\\fR]...", command.name);
  for (const OptionDoc& positional : command.positionals) {
    out += positional.required ? fmt::format(" \\fI{}\\fR", positional.value)
                               : fmt::format(" [\\fI{}\\fR]", positional.value);
  }
  out += "\n";
  if (!command.details.empty()) out += ".SH DESCRIPTION\n" + paragraphs(command.details);
  return out + options_sections(command) +
         ".SH EXIT STATUS\nThe table is in \\fBtgi\\fR(1).\n.SH SEE ALSO\n\\fBtgi\\fR(1)\n";
}

}  // namespace tgi
