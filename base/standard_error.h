// What a program says to people, on standard error. Nobody may be left to hear it (a full disk, a
// reader that has gone), and that changes nothing of what the program does: a failure is not told.
#pragma once

#include <cstdio>
#include <string_view>

namespace tgi {

// At once and as it stands; thread-safe. Programs ignore SIGPIPE, else a reader that has gone ends
// them.
inline void write_stderr(std::string_view text) noexcept {
  (void)!std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace tgi
