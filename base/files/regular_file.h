// The one way in which files of models are opened for reading: whatever lies in their place,
// opening never waits and never does anything to a device. Links are followed, as the hub's cache
// consists of them.
#pragma once

#include <string>

#include "base/unique_fd.h"

namespace tgi {

struct RegularFile {
  UniqueFd fd;
  size_t size = 0;
};

// Throws kNotFound or kInvalidArgument with the system's reason, and kInvalidArgument naming what
// is there when it is a folder, a named pipe, a socket, a device or a pointer of git-lfs.
RegularFile open_regular_file(const std::string& path);

// All of it. Throws what open_regular_file throws, and kInvalidArgument when the file is cut short
// meanwhile or the disk fails.
std::string read_regular_file(const std::string& path);

// The same of a file that is open.
std::string read_to_end(const RegularFile& file, const std::string& path);

}  // namespace tgi
