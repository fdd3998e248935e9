// Where things live by default: one place for the socket, the log and the state, so that tgi and
// tgid agree.
#pragma once

#include <optional>
#include <string>

namespace tgi {

// What goes below the home goes to $TMPDIR/tgi-<uid> (/tmp/tgi-<uid>) where it can't be written
// there: HOME is not set, not there, read-only or somebody else's. This says so in one line, for
// whoever starts; nothing: it is not so. A folder that a variable chooses ($XDG_STATE_HOME) is
// never replaced.
std::optional<std::string> temporary_home_notice();

// Where a daemon listens: $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock where that can be
// written, else /tmp/tgi-<uid>/tgid.sock.
std::string own_socket_path();

// Where a command looks for one: the same, but when nothing is there and this user may write to the
// socket of the machine's own daemon, that. $TGI_SOCKET is always followed.
std::string default_socket_path();

// Where the system's service listens (assets/systemd).
inline constexpr const char* kSystemSocketPath = "/run/tgi/tgid.sock";

// $XDG_STATE_HOME/tgi, else ~/.local/state/tgi. Holds the log of a daemon started by a tgi command
// and chat history.
std::string state_dir();

// Creates it. Throws as make_private_dir() does, and says which variable chooses another place.
void make_state_dir();
inline constexpr const char* kStateAdvice = "set XDG_STATE_HOME to a folder that can be written";

// $TGI_CONFIG, else $XDG_CONFIG_HOME/tgi/config.toml, else ~/.config/tgi/config.toml: the file of
// settings (ipc/config_file.h). It may not be there. None of a home that is closed to this user.
std::string config_path();

// $XDG_CACHE_HOME/tgi, else ~/.cache/tgi.
std::string cache_dir();

// The folder of the running executable.
std::string executable_dir();

// libtgi-NAME.so in $TGI_PLUGIN_DIR; without that variable beside the executable, or where a
// package puts it: ../lib/tgi. It may not be there.
std::string plugin_path(const std::string& name);

// The folder, or the nearest above it that is there; empty for a relative one of which nothing is.
std::string nearest_folder(const std::string& folder);

// Creates `path` and its parents, the last one with mode 0700. Throws with the system's reason and
// the folder that can't be made, and where it is below the temporary home and that is another
// user's.
void make_private_dir(const std::string& path);

}  // namespace tgi
