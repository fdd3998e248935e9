// A folder that appears whole or not at all: it is filled under another name beside its own
// (NAME.partial-PID) and renamed at the end. What a process that was killed left behind is removed
// by the next one that writes to the same name.
#pragma once

#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace tgi {

class OutputFolder {
 public:
  // Throws kInvalidArgument when `path` is there and is not an empty folder or its parent can't be
  // written to, kNotFound when there is no parent.
  explicit OutputFolder(const std::string& path);
  ~OutputFolder();  // removes what was not committed
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  // Throws kOutOfMemory with both numbers when the disk has less than this free.
  void require_space(int64_t size_bytes) const;

  std::string file(std::string_view name) const;
  // The data are on the disk when it returns. Throws kOutOfMemory when the disk is full.
  void write(std::string_view name, std::string_view text) const;

  void commit();

 private:
  void remove_leftovers() const;

  std::string path_;
  std::string partial_;
  UniqueFd lock_;  // of the partial folder: it is not a leftover
};

}  // namespace tgi
