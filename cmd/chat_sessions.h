// Chats on a terminal are kept by themselves, for `tgi chat --resume`: a file each in the folder
// chats of the state folder, the newest fifty. Main thread only.
#pragma once

#include <optional>
#include <string>

namespace tgi {

std::string chat_sessions_dir();

// Of a chat that begins now: its time, and what makes it the only one of that name.
std::string new_chat_session();

// The one that was written last; nothing where there is none.
std::optional<std::string> newest_chat_session();

// Deletes what is more than the newest `num_kept`.
void prune_chat_sessions(size_t num_kept = 50);

}  // namespace tgi
