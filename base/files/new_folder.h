// A folder that is whole or not there: filled beside the place where it shall be, renamed at the
// end. Belongs to one thread; any number of processes may make the same folder at once, the first
// to finish wins.
#pragma once

#include <cstdint>
#include <string>

namespace tgi {

class NewFolder {
 public:
  // Makes an empty folder beside `path`, and the folders above it, and removes what processes that
  // died left there. Throws with the system's reason.
  explicit NewFolder(const std::string& path);
  ~NewFolder();  // removes it unless it was committed
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  // Where to write.
  const std::string& path() const { return partial_; }
  std::string file(const std::string& name) const { return partial_ + "/" + name; }

  // Throws kOutOfMemory with both numbers when the disk has less room than `bytes`.
  void require_space(int64_t bytes) const;

  // Everything in it goes to the disk and the folder to its place. False when there is a folder
  // already, which stays.
  bool commit();

 private:
  std::string final_;
  std::string partial_;
};

}  // namespace tgi
