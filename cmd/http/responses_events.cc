#include "cmd/http/responses_events.h"

#include <fmt/format.h>

#include <utility>

#include "cmd/http/openai_answer.h"
#include "cmd/http/random_id.h"
#include "cmd/http/responses_items.h"

namespace tgi::http {
namespace {

std::string_view text_name(PartKind kind) {
  if (kind == PartKind::kReasoning) return "reasoning_text";
  return kind == PartKind::kCall ? "function_call_arguments" : "output_text";
}

}  // namespace

ResponseEvents::ResponseEvents(std::shared_ptr<Scope> scope, ResponsesAsk ask, Keep keep)
    : scope_(std::move(scope)),
      ask_(std::move(ask)),
      keep_(std::move(keep)),
      object_(*scope_, ask_),
      builder_(ask_.lists_logprobs) {}

OrderedJson ResponseEvents::failed(const ApiError& error) const {
  return object_.failed(told_items(), error);
}

void ResponseEvents::start() {
  const auto tell = [&](const char* event, const char* status) {
    send(event, {{"response", object_.without_output(status)}});
  };
  tell("response.created", ask_.is_background ? "queued" : "in_progress");
  if (ask_.is_background) tell("response.queued", "queued");
  tell("response.in_progress", "in_progress");
}

void ResponseEvents::on_event(Generation::Event& event, EventWriter& events) {
  events_ = &events;
  if (event.reply.accepted) start();
  if (event.reply.token) {
    builder_.take(*event.reply.token, this);
    scope_->token_written(0);
  }
  if (event.reply.done) finish(*event.reply.done);
}

void ResponseEvents::on_error(const ApiError& error, EventWriter& events) {
  events_ = &events;
  send("response.failed", {{"response", failed(error)}});
}

void ResponseEvents::finish(const ipc::DoneEvent& done) {
  reason_ = done.best.finish_reason;
  is_ending_ = true;
  builder_.finish(reason_, this);
  const OrderedJson answer = object_.ended(told_items(), done);
  keep_(answer);
  scope_->record().finish_reasons.emplace_back(told_reason(done));
  send(reason_ == ipc::FinishReason::kLength ? "response.incomplete" : "response.completed",
       {{"response", answer}});
}

OrderedJson ResponseEvents::told_items() const {
  return items_of(builder_.parts(), ids_, ask_, reason_);
}

void ResponseEvents::begin(size_t index, const AnswerPart& part) {
  ids_.push_back(random_id(id_prefix(part.kind)));
  send("response.output_item.added",
       {{"output_index", index}, {"item", item(index, part, "in_progress")}});
  if (part.kind == PartKind::kCall) return;
  AnswerPart empty;
  empty.kind = part.kind;
  OrderedJson fields = place(index, part);
  fields["part"] = content_of_part(empty, 0);
  send("response.content_part.added", std::move(fields));
}

void ResponseEvents::add(size_t index,
                         const AnswerPart& part,
                         std::string_view added,
                         std::span<const PartToken> tokens) {
  OrderedJson fields = place(index, part);
  fields["delta"] = added;
  if (part.kind == PartKind::kText) fields["logprobs"] = logprobs_of(tokens);
  send(fmt::format("response.{}.delta", text_name(part.kind)), std::move(fields));
}

void ResponseEvents::end(size_t index, const AnswerPart& part) {
  OrderedJson fields = place(index, part);
  fields[part.kind == PartKind::kCall ? "arguments" : "text"] = part.text;
  if (part.kind == PartKind::kText) fields["logprobs"] = logprobs_of(part.tokens);
  if (part.kind == PartKind::kCall) fields["name"] = told_tool(ask_.tool_names, part.name).name;
  send(fmt::format("response.{}.done", text_name(part.kind)), std::move(fields));
  if (part.kind != PartKind::kCall) {
    fields = place(index, part);
    fields["part"] = content_of_part(part, ask_.num_top_logprobs);
    send("response.content_part.done", std::move(fields));
  }
  const char* const status =
      is_ending_ ? status_of_part(builder_.parts(), index, reason_) : "completed";
  send("response.output_item.done", {{"output_index", index}, {"item", item(index, part, status)}});
}

OrderedJson ResponseEvents::item(size_t index, const AnswerPart& part, const char* status) const {
  return item_of_part(part, ids_[index], status, ask_.num_top_logprobs, ask_.tells_encrypted,
                      ask_.tool_names);
}

OrderedJson ResponseEvents::place(size_t index, const AnswerPart& part) const {
  OrderedJson out = {{"item_id", ids_[index]}, {"output_index", index}};
  if (part.kind != PartKind::kCall) out["content_index"] = 0;
  return out;
}

OrderedJson ResponseEvents::logprobs_of(std::span<const PartToken> tokens) const {
  OrderedJson out = OrderedJson::array();
  for (const PartToken& each : tokens) {
    out.push_back(token_logprobs(each.token, each.top_tokens, ask_.num_top_logprobs));
  }
  return out;
}

void ResponseEvents::send(const std::string& type, OrderedJson fields) {
  OrderedJson event = {{"type", type}, {"sequence_number", num_sent_++}};
  event.update(fields);
  events_->send_named(type, event);
}

}  // namespace tgi::http
