// tgi serve: the gateway. Finds or starts the daemon, waits until its model is ready, and answers
// HTTP in the foreground until SIGTERM or Ctrl-C.
#pragma once

#include <CLI/CLI.hpp>

#include "cmd/serve_flags.h"
#include "cmd/session.h"

namespace tgi {

int run_serve(const ServeFlags& flags, const CommonFlags& common);

}  // namespace tgi
