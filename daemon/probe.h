// tgid --probe: what the backends of this machine are and how fast they multiply, as JSON for
// `tgi doctor`, which has no engine of its own. Needs no daemon and no model; takes about 2
// seconds.
#pragma once

#include <string_view>

#include "ipc/protocol.h"

namespace tgi::daemon {

// {"version", "commit", "backend_abi", "backends": [{"name", "plugin", "found", "reason", "device",
// "isa", "num_devices", "num_threads", "memory_bytes", "dtype", "prompt_flops_per_s",
// "decode_bytes_per_s"}]}; of a backend that is not there only the first four. Throws nothing that
// a backend does: that is its `reason`.
ipc::OrderedJson probe_machine(std::string_view commit);

}  // namespace tgi::daemon
