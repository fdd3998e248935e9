#include "ipc/line_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/files/paths.h"
#include "base/utf8.h"

namespace tgi::ipc {
namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr int kListenBacklog = 512;

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    throw Error(Code::kInvalidArgument,
                fmt::format("socket path {}: it has {} bytes, expected 1 to {}; choose a shorter "
                            "one with --socket or $TGI_SOCKET",
                            path, path.size(), sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

UniqueFd new_socket() {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd) return fd;
  // Others of this process will close theirs: whoever asks later may fare better.
  const bool is_passing = errno == EMFILE || errno == ENFILE;
  throw Error(is_passing ? Code::kOverloaded : Code::kOutOfMemory,
              fmt::format("socket: {}", std::strerror(errno)));
}

int connect_to(int fd, const sockaddr_un& address) {
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  return ::connect(fd, generic, sizeof address) == 0 ? 0 : errno;
}

// The folder must be one where nobody else can put a socket of theirs in place of ours.
void require_private_folder(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  make_private_dir(folder);
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) {
    throw Error(Code::kInvalidArgument, fmt::format("folder {}: {}", folder, std::strerror(errno)));
  }
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    throw Error(Code::kInvalidArgument,
                fmt::format("socket folder {}: it belongs to user {}, expected {}; choose another "
                            "with --socket or $TGI_SOCKET",
                            folder, status.st_uid, ::geteuid()));
  }
  const bool others_write = (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (others_write && (status.st_mode & S_ISVTX) == 0) {
    throw Error(Code::kInvalidArgument,
                fmt::format("socket folder {}: others may write to it (mode {:o}); use a private "
                            "folder (chmod 700)",
                            folder, status.st_mode & 07777));
  }
}

// Who holds the lock, as take_lock() has written it; "": it can't be read.
std::string holder_of(int lock) {
  std::array<char, 32> text{};
  const ssize_t count = ::pread(lock, text.data(), text.size() - 1, 0);
  const std::string pid(text.data(), count > 0 ? static_cast<size_t>(count) : 0);
  const bool is_pid = !pid.empty() && pid.find_first_not_of("0123456789") == std::string::npos;
  return is_pid ? pid : "";
}

// What a command that starts a daemon takes for a lost race (ipc/start_daemon.cc).
Error place_is_taken(const std::string& path, const std::string& holder) {
  struct stat status {};
  const std::string who = holder.empty() ? "" : fmt::format(" (pid {})", holder);
  if (::lstat(path.c_str(), &status) == 0 || errno != ENOENT) {
    return {Code::kOverloaded,
            fmt::format("another daemon{} already listens at {}; stop it with `tgi stop`, or "
                        "choose another place with --socket",
                        who, path)};
  }
  return {Code::kOverloaded,
          fmt::format("another daemon{} has the place {}, but no socket is there: it was removed, "
                      "or is about to be made; if it stays so, end that daemon with `kill {}`, or "
                      "choose another place with --socket",
                      who, path, holder.empty() ? "PID" : holder)};
}

UniqueFd take_lock(const std::string& path) {
  const std::string lock_path = path + ".lock";
  UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: {}", lock_path, std::strerror(errno)));
  }
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    throw place_is_taken(path, holder_of(lock.get()));
  }
  // For those who find it taken; without it they are told less.
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(lock.get(), 0) == 0) (void)!::pwrite(lock.get(), pid.data(), pid.size(), 0);
  return lock;
}

// With the lock held, a socket file is a dead daemon's, unless some other program listens there.
void remove_stale_socket(const std::string& path, const sockaddr_un& address) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return;
  if (!S_ISSOCK(status.st_mode)) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: there is something that is not a socket; move it away or choose "
                            "another place with --socket",
                            path));
  }
  const UniqueFd probe = new_socket();
  const int reason = connect_to(probe.get(), address);
  if (reason == 0 || reason == EAGAIN) {
    throw Error(Code::kOverloaded,
                fmt::format("another program already listens at {}; choose another place with "
                            "--socket",
                            path));
  }
  if (::unlink(path.c_str()) != 0) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: {}", path, std::strerror(errno)));
  }
}

}  // namespace

void LineReader::feed(std::string_view bytes) {
  if (begin_ > 0) {
    buffer_.erase(0, begin_);
    scanned_ -= begin_;
    begin_ = 0;
  }
  buffer_.append(bytes);
}

std::optional<std::string> LineReader::next() {
  const size_t end = buffer_.find('\n', scanned_);
  const size_t line_bytes = (end == std::string::npos ? buffer_.size() : end) - begin_;
  if (line_bytes > max_line_bytes_) {
    throw Error(Code::kInvalidArgument,
                fmt::format("a line has more than {} bytes, which is the limit", max_line_bytes_));
  }
  if (end == std::string::npos) {
    scanned_ = buffer_.size();
    return std::nullopt;
  }
  std::string line = buffer_.substr(begin_, line_bytes);
  begin_ = end + 1;
  scanned_ = begin_;
  if (const size_t valid = valid_utf8_prefix(line); valid != line.size()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("a line is not valid UTF-8 at its byte {}", valid));
  }
  return line;
}

ReadStatus read_into(int fd, LineReader& reader) {
  std::array<char, kReadBytes> bytes;
  for (;;) {
    const ssize_t count = ::recv(fd, bytes.data(), bytes.size(), 0);
    if (count > 0) {
      reader.feed({bytes.data(), static_cast<size_t>(count)});
      return ReadStatus::kData;
    }
    if (count == 0 || errno == ECONNRESET) return ReadStatus::kClosed;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return ReadStatus::kWouldBlock;
    if (errno != EINTR) {
      throw Error(Code::kInternal, fmt::format("reading a socket: {}", std::strerror(errno)));
    }
  }
}

WriteStatus write_from(int fd, std::string_view& bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return WriteStatus::kWouldBlock;
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return WriteStatus::kClosed;
    } else if (errno != EINTR) {
      throw Error(Code::kInternal, fmt::format("writing a socket: {}", std::strerror(errno)));
    }
  }
  return WriteStatus::kDone;
}

UnixListener::UnixListener(std::string path, UniqueFd fd, UniqueFd lock)
    : path_(std::move(path)), fd_(std::move(fd)), lock_(std::move(lock)) {
  struct stat status {};
  if (!lock_ || ::lstat(path_.c_str(), &status) != 0) return;
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

UnixListener::~UnixListener() {
  struct stat status {};
  if (!fd_ || !lock_ || ::lstat(path_.c_str(), &status) != 0) return;
  if (status.st_dev == device_ && status.st_ino == inode_) ::unlink(path_.c_str());
}

std::optional<UniqueFd> UnixListener::accept() {
  for (;;) {
    const int client = ::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client >= 0) return UniqueFd(client);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::nullopt;
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      throw Error(Code::kOutOfMemory,
                  fmt::format("accepting a client at {}: {}", path_, std::strerror(errno)));
    }
    if (errno != EINTR && errno != ECONNABORTED) {
      throw Error(Code::kInternal,
                  fmt::format("accepting a client at {}: {}", path_, std::strerror(errno)));
    }
  }
}

UnixListener listen_unix(const std::string& path) {
  const sockaddr_un address = address_of(path);
  require_private_folder(path);
  UniqueFd lock = take_lock(path);
  remove_stale_socket(path, address);
  UniqueFd fd = new_socket();
  // Linux gives the socket file the mode of the socket itself, so there is no moment with a wider
  // one.
  if (::fchmod(fd.get(), 0600) != 0 ||
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd.get(), kListenBacklog) != 0) {
    throw Error(Code::kInvalidArgument,
                fmt::format("listening at {}: {}", path, std::strerror(errno)));
  }
  return {path, std::move(fd), std::move(lock)};
}

UnixListener adopt_listener(UniqueFd fd) {
  sockaddr_un address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      address.sun_family != AF_UNIX || address.sun_path[0] == '\0') {
    throw Error(Code::kInvalidArgument,
                "the socket that was handed over has no path; expected a Unix socket in a folder");
  }
  const size_t max_bytes = size - offsetof(sockaddr_un, sun_path);
  std::string path(address.sun_path, ::strnlen(address.sun_path, max_bytes));
  return {std::move(path), std::move(fd), UniqueFd()};
}

UniqueFd connect_unix(const std::string& path) {
  const sockaddr_un address = address_of(path);
  UniqueFd fd = new_socket();
  int reason = connect_to(fd.get(), address);
  while (reason == EINTR) reason = connect_to(fd.get(), address);
  if (reason == 0) return fd;
  if (reason == EAGAIN) {
    throw Error(Code::kOverloaded,
                fmt::format("the daemon at {} has too many clients waiting", path));
  }
  if (reason == ENOENT || reason == ECONNREFUSED || reason == ENOTDIR) {
    throw NobodyListens(path);
  }
  throw Error(Code::kUnavailable, fmt::format("socket {}: {}", path, std::strerror(reason)));
}

bool someone_listens(const std::string& path) {
  const sockaddr_un address = address_of(path);
  const UniqueFd probe = new_socket();
  const int reason = connect_to(probe.get(), address);
  return reason != ENOENT && reason != ECONNREFUSED && reason != ENOTDIR;
}

Peer peer_of(int fd) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    throw Error(Code::kInternal, fmt::format("asking who the peer is: {}", std::strerror(errno)));
  }
  return {.pid = credentials.pid, .uid = credentials.uid};
}

bool may_connect(uid_t uid) {
  return uid == ::geteuid() || uid == 0;
}

}  // namespace tgi::ipc
