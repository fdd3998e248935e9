#include "cmd/chat_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "ipc/line_socket.h"

namespace tgi {

int64_t count_chat_tokens(const Session& session, const ipc::GenerateRequest& request) {
  ipc::TokenizeParams params;
  params.messages = request.messages;
  params.tools = request.tools;
  params.reasoning_effort = request.reasoning_effort;
  return static_cast<int64_t>(ask_tokens(session, params).tokens.size());
}

int64_t room_for_answer(const ipc::GenerateRequest& request, int64_t max_total_tokens) {
  return request.params.max_new_tokens.value_or(std::max<int64_t>(max_total_tokens / 8, 1));
}

std::optional<Error> explain_full_context(const Session& session,
                                          const ipc::GenerateRequest& request,
                                          int64_t max_total_tokens) {
  int64_t num_tokens = 0;
  try {
    num_tokens = count_chat_tokens(session, request);
  } catch (const ipc::Stopped&) {
    throw;
  } catch (const Error&) {
    return std::nullopt;  // what the chat was refused for, counting is refused for: that is told
  }
  const int64_t num_new = request.params.max_new_tokens.value_or(1);
  if (num_tokens + num_new <= max_total_tokens) return std::nullopt;
  const std::string asked = request.params.max_new_tokens
                                ? fmt::format(", max-new-tokens asks for {} more", num_new)
                                : "";
  return Error(Code::kInvalidArgument,
               fmt::format("the context is full: the conversation takes {} tokens{}, and the model "
                           "has room for {}; /clear begins anew, and after /set context slide the "
                           "oldest turns leave by themselves",
                           num_tokens, asked, max_total_tokens));
}

}  // namespace tgi
