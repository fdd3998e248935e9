// Where things live by default: one place for the socket, the log and the state, so that tgi and
// tgid agree.
#pragma once

#include <string>

namespace tgi {

// $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, else /tmp/tgi-<uid>/tgid.sock.
std::string default_socket_path();

// $XDG_STATE_HOME/tgi, else ~/.local/state/tgi. Holds the log of a daemon started by a tgi command
// and chat history.
std::string state_dir();

// $XDG_CACHE_HOME/tgi, else ~/.cache/tgi.
std::string cache_dir();

// The folder of the running executable.
std::string executable_dir();

// libtgi-NAME.so in $TGI_PLUGIN_DIR; without that variable beside the executable, or where a
// package puts it: ../lib/tgi. It may not be there.
std::string plugin_path(const std::string& name);

// Creates `path` and its parents, the last one with mode 0700. Throws with the system's reason.
void make_private_dir(const std::string& path);

}  // namespace tgi
