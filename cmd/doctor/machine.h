// What the kernel says about this machine and this user's limits. `root` is where /proc, /sys and
// /dev are looked for: "/" but in tests.
#pragma once

#include <string>

#include "cmd/doctor/finding.h"

namespace tgi::doctor {

Finding look_at_memory(const std::string& root = "/");
Finding look_at_huge_pages(const std::string& root = "/");
Finding look_at_limits();

// Whether there is hardware of NVIDIA, whatever its driver says.
bool has_nvidia_hardware(const std::string& root = "/");

// Whether a file can be written to the folder of the log, the chat history and the store. Makes the
// folder, as the first command that needs it would.
Finding look_at_state(const std::string& folder);

// The folder of converted checkpoints: whether it can be written, or made.
Finding look_at_conversions(const std::string& folder);

// Bytes and free space of a folder of downloads, or that it is not there yet, and whether it can be
// written.
Finding look_at_cache(const std::string& folder);

}  // namespace tgi::doctor
