#include "cmd/version.h"

#include <fmt/format.h>

#include <optional>

#include "base/version.h"
#include "ipc/line_socket.h"

namespace tgi {

void add_version_flags(CLI::App& app, VersionFlags& flags) {
  app.footer(
      "The first line is that of --version, the second is of the daemon that runs. Never starts "
      "one.");
  app.add_flag("--json", flags.json, "write one JSON object; daemon is null where none is running");
}

int run_version(const VersionFlags& flags, const CommonFlags& common) {
  Session session(common);
  std::optional<std::string> daemon;
  try {
    daemon = session.client().status().version;
  } catch (const ipc::NobodyListens&) {
  }
  if (flags.json) {
    ipc::OrderedJson json = {{"version", kVersion}, {"tgi", flags.own}, {"daemon", nullptr}};
    if (daemon) json["daemon"] = *daemon;
    session.out().write(json.dump() + "\n");
    return 0;
  }
  session.out().write(fmt::format("{}\ntgid {}\n", flags.own, daemon.value_or("is not running")));
  return 0;
}

}  // namespace tgi
