// Names for what is being written beside the place where it shall be: ".NAME.partial-PID-XXXXXX",
// which tells whether its writer is still there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace tgi {

// Such a name for `path`, absolute, as mkstemp and mkdtemp take it. Makes the folders above it, and
// removes what processes that died left there under such names. Throws with the system's reason,
// naming the folder.
std::string partial_pattern(const std::filesystem::path& path);

// Throws kOutOfMemory naming `what`, with both numbers, when the disk that `place` lies on has less
// room than `bytes`.
void require_disk_space(const std::string& place, const std::string& what, int64_t bytes);

}  // namespace tgi
