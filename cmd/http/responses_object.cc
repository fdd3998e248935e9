#include "cmd/http/responses_object.h"

#include <chrono>
#include <utility>

#include "cmd/http/openai_answer.h"
#include "cmd/http/random_id.h"
#include "cmd/http/responses_items.h"

namespace tgi::http {
namespace {

int64_t unix_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

OrderedJson usage_of(const UsageCounts& usage) {
  return {{"input_tokens", usage.num_prompt_tokens},
          {"input_tokens_details",
           {{"cached_tokens", usage.num_cached_tokens}, {"cache_write_tokens", 0}}},
          {"output_tokens", usage.num_generated_tokens},
          {"output_tokens_details", {{"reasoning_tokens", usage.num_reasoning_tokens}}},
          {"total_tokens", usage.num_prompt_tokens + usage.num_generated_tokens}};
}

}  // namespace

ResponseObject::ResponseObject(const Scope& scope, const ResponsesAsk& ask)
    : id_(random_id("resp")), created_at_(unix_seconds()), told_(ask.told) {
  const std::string& adapter = scope.record().adapter;
  model_ = adapter.empty() ? scope.options().model_id : adapter;
}

OrderedJson ResponseObject::ended(OrderedJson output, const ipc::DoneEvent& done) const {
  const bool is_cut = done.best.finish_reason == ipc::FinishReason::kLength;
  OrderedJson out = with_status(is_cut ? "incomplete" : "completed", std::move(output));
  if (is_cut) {
    out["incomplete_details"] = {{"reason", "max_output_tokens"}};
  } else {
    out["completed_at"] = unix_seconds();
  }
  UsageCounts usage;
  usage.add(done, 1);
  out["usage"] = usage_of(usage);
  return out;
}

OrderedJson ResponseObject::failed(OrderedJson output, const ApiError& error) const {
  OrderedJson out = with_status("failed", std::move(output));
  out["error"] = {{"code", "server_error"}, {"message", error.what()}};
  return out;
}

OrderedJson ResponseObject::with_status(const char* status, OrderedJson output) const {
  OrderedJson out = {{"id", id_},
                     {"object", "response"},
                     {"created_at", created_at_},
                     {"status", status},
                     {"completed_at", nullptr},
                     {"error", nullptr},
                     {"incomplete_details", nullptr},
                     {"model", model_},
                     {"output", std::move(output)},
                     {"usage", nullptr}};
  out.update(told_);
  return out;
}

// The last item of an answer that ran out of tokens is cut off, unless it is a call: those are
// whole.
const char* status_of_part(const std::vector<AnswerPart>& parts,
                           size_t index,
                           ipc::FinishReason reason) {
  const bool is_cut = index + 1 == parts.size() && reason == ipc::FinishReason::kLength;
  return is_cut && parts[index].kind != PartKind::kCall ? "incomplete" : "completed";
}

OrderedJson items_of(const std::vector<AnswerPart>& parts,
                     const std::vector<std::string>& ids,
                     const ResponsesAsk& ask,
                     ipc::FinishReason reason) {
  OrderedJson out = OrderedJson::array();
  for (size_t i = 0; i < parts.size(); ++i) {
    out.push_back(item_of_part(parts[i], ids[i], status_of_part(parts, i, reason),
                               ask.num_top_logprobs, ask.tells_encrypted, ask.tool_names));
  }
  return out;
}

std::vector<StoredItemsPtr> turns_asked(const ResponseStore& store, const ResponsesAsk& ask) {
  std::vector<StoredItemsPtr> turns = ask.turns_before;
  turns.push_back(store.make_items(ask.items));
  return turns;
}

StoredResponse to_be_kept(const ResponseStore& store,
                          std::vector<StoredItemsPtr> asked,
                          const std::string& id,
                          const OrderedJson& answer) {
  StoredResponse stored{.id = id,
                        .answer = store.make_items(OrderedJson::array({answer})),
                        .turns = std::move(asked)};
  stored.turns.push_back(store.make_items(answer["output"]));
  return stored;
}

std::string_view told_reason(const ipc::DoneEvent& done) {
  const bool calls = !done.best.tool_calls.empty();
  return calls && done.best.finish_reason != ipc::FinishReason::kLength
             ? "tool_calls"
             : openai_finish_reason(done.best.finish_reason);
}

OrderedJson whole_answer(Scope& scope,
                         Generation& generation,
                         const ResponsesAsk& ask,
                         const ResponseObject& object) {
  PartBuilder builder(ask.lists_logprobs);
  ipc::DoneEvent done;
  while (!generation.is_done()) {
    Generation::Event event = std::move(*generation.next(-1));
    if (event.reply.token) builder.take(*event.reply.token, nullptr);
    if (event.reply.done) done = std::move(*event.reply.done);
  }
  builder.finish(done.best.finish_reason, nullptr);
  const std::vector<AnswerPart> parts = ask.request.stream ? builder.parts() : parts_of(done.best);
  std::vector<std::string> ids;
  for (const AnswerPart& part : parts) ids.push_back(random_id(id_prefix(part.kind)));
  scope.record().finish_reasons.emplace_back(told_reason(done));
  return object.ended(items_of(parts, ids, ask, done.best.finish_reason), done);
}

}  // namespace tgi::http
