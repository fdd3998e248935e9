// The daemon behind a gateway: the one that runs, when it is as asked, or a new one.
#pragma once

#include "cmd/serve_options.h"
#include "ipc/client.h"
#include "ipc/start_daemon.h"

namespace tgi {

// Its status, with a model that is ready. A daemon without a model is told to load the one asked
// for. Throws kInvalidArgument when the one that runs has another model or other settings than
// asked for, naming what to do; else what prepare_daemon and the load throw.
ipc::Status prepare_served_model(const ipc::Client& client,
                                 const ServeOptions& options,
                                 ipc::StartOptions start);

}  // namespace tgi
