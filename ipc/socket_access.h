// Who may use a daemon, and which daemon a client may trust. By default a daemon serves its own
// user and root; a group can be let in beside them (--allow-group), and a socket that a service
// manager made has the owner and mode its administrator chose.
#pragma once

#include <sys/types.h>

#include <string>

#include "ipc/line_socket.h"

namespace tgi::ipc {

// Throws kInvalidArgument when there is no such group.
gid_t group_named(const std::string& name);

// Gives the group of a socket that exists the right to connect: it gets the group and mode 0660,
// its folder, when it is ours alone, group and mode 0750. Throws kInvalidArgument when this user
// may not do that.
void share_with_group(const std::string& socket_path, gid_t group);

// Whether the peer of a connection is in the group, by its first or any other group.
bool is_group_member(int fd, gid_t group);

// Whether a client may send a prompt to this peer: its own user, root, or the user of a service of
// this machine: one that owns the folder of the socket, where all folders above belong to root and
// nobody else writes to them, so that only root can have given it that place.
bool may_trust(const Peer& daemon, const std::string& socket_path);

}  // namespace tgi::ipc
