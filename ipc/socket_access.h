// Who is at the other end of a socket, and which daemon a client may trust. By default a daemon
// serves its own user and root; a group can be let in beside them (--allow-group), and a socket
// that a service manager made has the owner and mode its administrator chose. What a client may ask
// for then is daemon/access.h's.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "ipc/line_socket.h"

namespace tgi::ipc {

// Throws kInvalidArgument when there is no such group.
gid_t group_named(const std::string& name);

// Gives the group of a socket that exists the right to connect: it gets the group and mode 0660,
// its folder, when it is ours alone, group and mode 0750. Throws kInvalidArgument when this user
// may not do that.
void share_with_group(const std::string& socket_path, gid_t group);

// A client as the system knew it when it connected.
struct Credentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups{};  // the others; empty where the system does not tell (Linux < 4.13)

  bool is_member(gid_t group) const;  // by its first or any other group
};

// Throws kInternal when the system does not know.
Credentials credentials_of(int fd);

// Whether a client may send a prompt to this peer: its own user, root, or the user of a service of
// this machine: one that owns the folder of the socket, where all folders above belong to root and
// nobody else writes to them, so that only root can have given it that place.
bool may_trust(const Peer& daemon, const std::string& socket_path);

}  // namespace tgi::ipc
