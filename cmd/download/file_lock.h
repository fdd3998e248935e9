// A lock between processes: flock(2) on a file that stays in place, as Python's filelock takes it,
// so that huggingface_hub and tgi wait for each other. Held until destruction. A file system
// without flock gives an error rather than no lock.
#pragma once

#include <optional>
#include <string>

#include "base/unique_fd.h"

namespace tgi::download {

class FileLock {
 public:
  // Nothing when another process has it. Creates the file and the folders above it. Throws with the
  // system's reason when the file can't be made.
  static std::optional<FileLock> try_lock(const std::string& path);

 private:
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace tgi::download
