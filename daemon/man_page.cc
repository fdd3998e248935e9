#include "daemon/man_page.h"

#include <fmt/format.h>

#include "base/error.h"
#include "daemon/options.h"
#include "ipc/protocol.h"

namespace tgi {
namespace {

// A dash is a hyphen to troff unless told otherwise, and a leading dot or quote is a command.
std::string escape(std::string_view text) {
  std::string out;
  if (text.starts_with('.') || text.starts_with('\'')) out = "\\&";
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string tgid_man_page() {
  std::string out = fmt::format(
      ".TH TGID 1 \"\" \"tgi {}\" \"User Commands\"\n"
      ".SH NAME\n"
      "tgid \\- the daemon behind tgi\n"
      ".SH SYNOPSIS\n"
      ".B tgid\n"
      "[\\fIOPTION\\fR]...\n"
      ".SH DESCRIPTION\n"
      "Owns the model, the paged KV cache and the continuous\\-batching loop, and serves them on a "
      "Unix socket to the\n"
      ".BR tgi (1)\n"
      "commands. Runs in the foreground; a command that finds no daemon starts one by itself.\n"
      ".PP\n"
      "SIGTERM and SIGINT let running requests finish and refuse new ones; a second signal ends it "
      "at once.\n"
      ".SH OPTIONS\n"
      "Each can also be given in the environment; a flag wins.\n",
      ipc::kVersion);
  for (const OptionRow& row : option_table()) {
    out += fmt::format(".TP\n\\fB\\-\\-{}\\fR{}\n{}.\nEnvironment: {}.{}\n", escape(row.flag),
                       row.is_switch ? "" : fmt::format(" \\fI{}\\fR", row.value_name),
                       escape(row.help), environment_name(row),
                       row.flag == "socket" || row.is_switch
                           ? ""
                           : fmt::format(" Default: {}.", escape(row.get(Options()))));
  }
  out +=
      ".TP\n\\fB\\-\\-print\\-config\\fR\nPrint every setting with its value and where it comes "
      "from, and exit.\n"
      ".TP\n\\fB\\-\\-version\\fR\nPrint the version and exit.\n"
      ".SH EXIT STATUS\n"
      "0 after a stop that was asked for. 2: the command line is wrong.\n";
  for (const CodeRow& row : kCodeTable) {
    std::string name(row.name);
    for (char& c : name) c = c == '_' ? ' ' : c;
    if (row.code != Code::kCancelled) out += fmt::format("{}: {}.\n", row.exit_status, name);
  }
  out += ".SH SEE ALSO\n.BR tgi (1)\n";
  return out;
}

}  // namespace tgi
