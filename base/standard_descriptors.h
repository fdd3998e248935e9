// Makes sure that the descriptors 0 to 2 are taken before anything else is opened. A process that
// was started with one of them closed (`tgi ps >&-`) would get it for its first file, a socket say,
// and then write its output into that.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace tgi {

// The first thing in main(). What was closed is opened the wrong way round, so that reading or
// writing fails with EBADF instead of looking like an empty input or a success; of stderr nobody
// needs to know.
inline void open_standard_descriptors() {
  constexpr std::array kModes = {O_WRONLY, O_RDONLY, O_RDWR};
  constexpr int kNoNullDevice = 1;
  for (int fd = 0; fd < static_cast<int>(kModes.size()); ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest that is free, so `fd` itself.
    if (::open("/dev/null", kModes[static_cast<size_t>(fd)]) != fd) ::_exit(kNoNullDevice);
  }
}

}  // namespace tgi
