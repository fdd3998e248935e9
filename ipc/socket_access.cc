#include "ipc/socket_access.h"

#include <fmt/format.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/error.h"

namespace tgi::ipc {
namespace {

std::filesystem::path folder_of(const std::string& socket_path) {
  return std::filesystem::absolute(socket_path).lexically_normal().parent_path();
}

[[noreturn]] void fail_sharing(const std::string& path, gid_t group) {
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: can't be given to group {}: {}; run the daemon as a member of it",
                          path, group, std::strerror(errno)));
}

}  // namespace

gid_t group_named(const std::string& name) {
  std::vector<char> buffer(16 << 10);
  group entry{};
  group* found = nullptr;
  ::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr) {
    throw Error(Code::kInvalidArgument, fmt::format("there is no group {} on this machine", name));
  }
  return found->gr_gid;
}

void share_with_group(const std::string& socket_path, gid_t group) {
  const std::string folder = folder_of(socket_path).string();
  struct stat status {};
  if (::stat(folder.c_str(), &status) == 0 && status.st_uid == ::geteuid() &&
      (status.st_mode & 077) == 0) {
    if (::chown(folder.c_str(), static_cast<uid_t>(-1), group) != 0 ||
        ::chmod(folder.c_str(), 0750) != 0) {
      fail_sharing(folder, group);
    }
  }
  // The mode last: until then nobody of the old group gets in.
  if (::chown(socket_path.c_str(), static_cast<uid_t>(-1), group) != 0 ||
      ::chmod(socket_path.c_str(), 0660) != 0) {
    fail_sharing(socket_path, group);
  }
}

bool Credentials::is_member(gid_t group) const {
  return gid == group || std::find(groups.begin(), groups.end(), group) != groups.end();
}

Credentials credentials_of(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    throw Error(Code::kInternal, fmt::format("asking who the client is: {}", std::strerror(errno)));
  }
  Credentials out{.pid = peer.pid, .uid = peer.uid, .gid = peer.gid};
  out.groups.resize(64);
  size = static_cast<socklen_t>(out.groups.size() * sizeof(gid_t));
  int reason = ::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, out.groups.data(), &size);
  if (reason != 0 && errno == ERANGE) {
    out.groups.resize(size / sizeof(gid_t));  // which it told
    reason = ::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, out.groups.data(), &size);
  }
  out.groups.resize(reason == 0 ? size / sizeof(gid_t) : 0);
  return out;
}

bool may_trust(const Peer& daemon, const std::string& socket_path) {
  if (may_connect(daemon.uid)) return true;
  const std::filesystem::path folder = folder_of(socket_path);
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return false;
  if (status.st_uid != daemon.uid || (status.st_mode & S_IWOTH) != 0) return false;
  for (std::filesystem::path above = folder.parent_path();; above = above.parent_path()) {
    if (::lstat(above.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return false;
    if (status.st_uid != 0 || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) return false;
    if (above == above.root_path()) return true;
  }
}

}  // namespace tgi::ipc
