// Finds a daemon for a command: the one that runs, or a new one. A new one belongs to nobody: it
// has its own session and goes on when the command ends.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ipc/client.h"
#include "ipc/protocol.h"

namespace tgi::ipc {

struct StartOptions {
  bool may_start = true;
  bool wait_for_model = true;  // false: return as soon as it answers
  bool accept_failed = false;  // true: a model that can't be loaded is no error
  int start_timeout_ms = 10'000;
  std::vector<std::string> daemon_flags = {};  // of a daemon that is started for this
  // Gets one line each for "a daemon is being started" and "a model is being loaded" (optional).
  std::function<void(const std::string&)> on_notice = {};
};

// The status of a daemon that answers; with wait_for_model its phase is not "loading". Throws
// kUnavailable when there is none and none may be started, when the started one ends early (with
// the last lines of its log) or stays silent, and when the model can't be loaded.
Status prepare_daemon(const Client& client, const StartOptions& options);

// $TGI_DAEMON, else tgid beside the running executable, else tgid on $PATH. Throws kNotFound naming
// the places.
std::string find_daemon();

// Where a daemon started here writes its log.
std::string daemon_log_path();

}  // namespace tgi::ipc
