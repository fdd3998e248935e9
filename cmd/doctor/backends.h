// What `tgid --probe` says about the processor and the GPUs.
#pragma once

#include <string>
#include <vector>

#include "cmd/doctor/finding.h"

namespace tgi::doctor {

// Runs the daemon's program, waits for it. Throws kNotFound when there is none, kInternal with the
// end of what it said when it fails.
ipc::OrderedJson run_probe(const std::string& program);

// The lines about its answer. `read_bytes_per_s`: what plain threads read, to compare with; 0:
// not measured.
std::vector<Finding> look_at_probe(const ipc::OrderedJson& probe,
                                   double read_bytes_per_s,
                                   bool has_nvidia);

}  // namespace tgi::doctor
