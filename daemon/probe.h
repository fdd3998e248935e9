// tgid --probe: what the backends of this machine are and how fast they multiply, as JSON for
// `tgi doctor`, which has no engine of its own. Needs no daemon and no model; takes about 2
// seconds.
#pragma once

#include <string_view>

#include "engine/runtime/served_model.h"
#include "ipc/protocol.h"

namespace tgi::daemon {

// {"version", "commit", "backend_abi", "backends": [{"name", "plugin", "found", "reason", "device",
// "isa", "left_out", "num_devices", "num_threads", "memory_bytes", "dtype", "prompt_flops_per_s",
// "decode_bytes_per_s"}]}; of a backend that is not there only the first four. Throws nothing that
// a backend does: that is its `reason`. `left_out` are the instruction sets better than `isa` that
// failed their trial: [{"isa", "kernel", "reason"}]. Only the options of
// devices count: threads, --cpu-isa and so on.
ipc::OrderedJson probe_machine(std::string_view commit, const ModelOptions& options);

}  // namespace tgi::daemon
