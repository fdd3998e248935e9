// The end of the model's context in a chat: how much a request takes of it, and letting the oldest
// turns leave. Main thread only.
#pragma once

#include <cstdint>
#include <optional>

#include "cmd/conversation.h"
#include "cmd/session.h"

namespace tgi {

// Tokens of the rendered chat, by the daemon.
int64_t count_chat_tokens(const Session& session, const ipc::GenerateRequest& request);

// Tokens that an answer must have room for: max_new_tokens where it is given, else an eighth of the
// context.
int64_t room_for_answer(const ipc::GenerateRequest& request, int64_t max_total_tokens);

// The error in the user's words where `request` is refused as it does not fit, else nothing.
std::optional<Error> explain_full_context(const Session& session,
                                          const ipc::GenerateRequest& request,
                                          int64_t max_total_tokens);

}  // namespace tgi
