// `truncation: auto` of /v1/responses.
#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "cmd/http/responses_body.h"

namespace tgi::http {
namespace {

// Without what stands between the system's message and the user's message at `first`.
OrderedJson without_oldest(const OrderedJson& messages, size_t first) {
  OrderedJson out = OrderedJson::array();
  for (size_t i = 0; i < messages.size(); ++i) {
    const bool is_system = i == 0 && messages[i]["role"] == "system";
    if (is_system || i >= first) out.push_back(messages[i]);
  }
  return out;
}

}  // namespace

std::optional<ipc::GenerateRequest> shortened(
    const ResponsesAsk& ask,
    const ApiOptions& options,
    const std::function<int64_t(const ipc::GenerateRequest&)>& count_tokens) {
  const int64_t room =
      std::min(options.max_input_tokens,
               options.max_total_tokens - ask.request.params.max_new_tokens.value_or(1));
  ipc::GenerateRequest out = ask.request;
  if (count_tokens(out) <= room) return std::nullopt;
  // A turn begins with what the user says.
  const OrderedJson& messages = *ask.request.messages;
  std::vector<size_t> starts;
  for (size_t i = 1; i < messages.size(); ++i) {
    if (messages[i]["role"] == "user") starts.push_back(i);
  }
  const auto fits = [&](size_t first) {
    out.messages = without_oldest(messages, first);
    return count_tokens(out) <= room;
  };
  const auto found = std::partition_point(starts.begin(), starts.end(),
                                          [&](size_t first) { return !fits(first); });
  if (found == starts.end()) return std::nullopt;
  out.messages = without_oldest(messages, *found);
  return out;
}

}  // namespace tgi::http
