#include "cmd/session.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/error.h"
#include "base/paths.h"

namespace tgi {

void add_common_flags(CLI::App& app, CommonFlags& flags) {
  const std::string group = "Common options";
  app.add_option("--socket", flags.socket,
                 "the daemon's socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, "
                 "else /tmp/tgi-UID/tgid.sock")
      ->type_name("PATH")
      ->group(group);
  app.add_flag("--no-start", flags.no_start, "do not start a daemon when none is running")
      ->group(group);
  app.add_flag("-v,--verbose", flags.verbose, "say more on stderr: what is done, tokens per second")
      ->group(group);
}

Session::Session(const CommonFlags& flags)
    : flags_(flags),
      out_(STDOUT_FILENO, interrupt_.fd()),
      client_({.socket_path = flags.socket.empty() ? default_socket_path() : flags.socket,
               .cancel_fd = interrupt_.fd(),
               .output_fd = STDOUT_FILENO}) {}

ipc::Status Session::prepare(ipc::StartOptions options) const {
  options.may_start = options.may_start && !flags_.no_start;
  const bool tell = flags_.verbose || ::isatty(STDERR_FILENO) == 1;
  if (tell) options.on_notice = [](const std::string& line) { say(line); };
  return ipc::prepare_daemon(client_, options);
}

void Session::say(std::string_view line) {
  fmt::print(stderr, "{}\n", line);
}

void Session::say_verbose(std::string_view line) const {
  if (flags_.verbose) say(line);
}

int report_error(const Error& error) {
  Session::say(fmt::format("error: {}", error.what()));
  return code_row(error.code()).exit_status;
}

}  // namespace tgi
