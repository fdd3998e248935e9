// A file mapped into memory for reading, whose reader survives what happens to the file meanwhile:
// where it was cut short, or its disk fails, zeros are read and check_intact throws. Safe to read
// from several threads.
//
// Without this, touching such a page is a SIGBUS, the end of the process and of everybody it
// serves.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstddef>
#include <span>
#include <string>

#include "base/files/regular_file.h"

namespace tgi {

class MappedFile {
 public:
  // Throws what open_regular_file throws.
  explicit MappedFile(const std::string& path);
  MappedFile(const RegularFile& file, const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  MappedFile(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

  // Whoever has read from it asks before it trusts what it made of that. Throws kInvalidArgument
  // naming the file when some of it could not be read.
  void check_intact() const;

  // These bytes of it won't be read again soon: their memory need not stay resident.
  void release(std::span<const std::byte> bytes) const;

 private:
  struct Guard;
  static std::atomic<Guard*> guards_;  // the first; each knows the next
  static Guard& guard_of(const std::byte* data, size_t size);
  static void install_handler();
  static void on_bus_error(int number, siginfo_t* info, void* context);

  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  Guard* guard_ = nullptr;  // null: nothing is mapped
};

}  // namespace tgi
