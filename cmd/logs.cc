#include "cmd/logs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/unique_fd.h"
#include "cmd/output.h"
#include "ipc/start_daemon.h"

namespace tgi {
namespace {

constexpr int kFollowMs = 200;

// Where the last so many lines begin.
size_t begin_of_last_lines(const std::string& text, int num_lines) {
  size_t at = text.size();
  if (at > 0 && text[at - 1] == '\n') --at;
  for (int i = 0; i < num_lines; ++i) {
    const size_t newline = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
    if (newline == std::string::npos) return 0;
    at = newline;
  }
  return at + 1;
}

// What came behind `seen` bytes; from the beginning where the file was cut or replaced.
void write_new(const std::string& path, off_t& seen, Output& out) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return;  // between two daemons
  struct stat status {};
  if (::fstat(file.get(), &status) == 0 && status.st_size < seen) seen = 0;
  std::array<char, 16 << 10> bytes;
  for (;;) {
    const ssize_t count = ::pread(file.get(), bytes.data(), bytes.size(), seen);
    if (count < 0) {
      throw Error(Code::kInvalidArgument, fmt::format("{}: {}", path, std::strerror(errno)));
    }
    if (count == 0) return;
    out.write(std::string_view(bytes.data(), static_cast<size_t>(count)));
    seen += count;
  }
}

}  // namespace

void add_logs_flags(CLI::App& app, LogsFlags& flags) {
  app.footer(
      "Reads the file tgid.log in the state folder, to which a daemon writes that a command has "
      "started. Of more than 64 MiB the older part is put aside as tgid.log.1, in place of the "
      "one before. One that was started in another way, by systemd for example, writes where that "
      "leads: `journalctl -u tgid`.");
  app.add_flag("-f,--follow", flags.follow, "go on with what comes, until Ctrl-C");
  app.add_option("-n,--lines", flags.lines, "only so many lines at the end; default all")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000000));
}

int run_logs(const LogsFlags& flags, const CommonFlags& common) {
  Session session(common);
  const std::string path = ipc::daemon_log_path();
  std::string text = read_input(path);
  auto seen = static_cast<off_t>(text.size());
  if (flags.lines > 0) text.erase(0, begin_of_last_lines(text, flags.lines));
  session.out().write(text);
  while (flags.follow) {
    session.client().pause(kFollowMs);
    write_new(path, seen, session.out());
  }
  return 0;
}

}  // namespace tgi
