// A file that is whole or not there: written beside the place where it shall be, moved there at the
// end. Belongs to one thread; any number of processes may make the same file at once, the first to
// finish wins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/unique_fd.h"

namespace tgi {

class NewFile {
 public:
  // Makes an empty file beside `path`, and the folders above it, and removes what processes that
  // died left there. Throws with the system's reason.
  explicit NewFile(const std::string& path);
  ~NewFile();  // removes it unless it was committed
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  // Where it is until then.
  const std::string& path() const { return partial_; }

  // Throws kOutOfMemory with both numbers when the disk has less room than `bytes`.
  void require_space(int64_t bytes) const;

  // Throws kOutOfMemory when the disk is full.
  void append(std::span<const std::byte> bytes);

  // All of it goes to the disk and the file to its place. False when there is one already, which
  // stays.
  bool commit();

  // The same, in place of one that is there: whoever opens it has the old one or the new one.
  void commit_over();

 private:
  void finish_writing();

  std::string final_;
  std::string partial_;
  UniqueFd file_;
};

}  // namespace tgi
