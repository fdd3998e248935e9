#include "cmd/stop.h"

#include <fmt/format.h>
#include <unistd.h>

#include "ipc/line_socket.h"

namespace tgi {
namespace {

constexpr int kPollMs = 20;

}  // namespace

void add_stop_flags(CLI::App& app, StopFlags& /*flags*/) {
  app.footer(
      "New requests are refused at once and the running ones are finished; then the daemon "
      "ends. The command waits for that; Ctrl-C ends the waiting, not the stopping. Never "
      "starts a daemon.");
}

int run_stop(const StopFlags& /*flags*/, const CommonFlags& common) {
  Session session(common);
  const ipc::OrderedJson stopping = session.client().call(ipc::kStop);
  // It refuses new work at once and finishes what runs; Ctrl-C ends the waiting, not the stopping.
  if (stopping.value("socket_stays", false)) {
    // A service manager listens on, and who asks there starts the next daemon.
    const auto process = fmt::format("/proc/{}", stopping.value("pid", int64_t{0}));
    while (::access(process.c_str(), F_OK) == 0) session.client().pause(kPollMs);
    session.out().write(
        "stopped; the next command starts it again, for the service manager keeps its socket\n");
    return 0;
  }
  while (ipc::someone_listens(session.client().socket_path())) session.client().pause(kPollMs);
  session.out().write("stopped\n");
  return 0;
}

}  // namespace tgi
