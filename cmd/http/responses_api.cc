#include "cmd/http/responses_api.h"

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cmd/http/background_runs.h"
#include "cmd/http/generation.h"
#include "cmd/http/info_api.h"
#include "cmd/http/openai_answer.h"
#include "cmd/http/random_id.h"
#include "cmd/http/responses_items.h"
#include "cmd/http/stream_pump.h"

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

// The response object from its beginning to its end.
class ResponseObject {
 public:
  ResponseObject(const Scope& scope, const ResponsesAsk& ask)
      : id_(random_id("resp")), created_at_(unix_seconds()), told_(ask.told) {
    const std::string& adapter = scope.record().adapter;
    model_ = adapter.empty() ? scope.options().model_id : adapter;
  }

  const std::string& id() const { return id_; }

  // "queued", "in_progress" or "cancelled".
  OrderedJson without_output(const char* status) const {
    return with_status(status, OrderedJson::array());
  }

  OrderedJson ended(OrderedJson output, const ipc::DoneEvent& done) const {
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

  OrderedJson failed(OrderedJson output, const ApiError& error) const {
    OrderedJson out = with_status("failed", std::move(output));
    out["error"] = {{"code", "server_error"}, {"message", error.what()}};
    return out;
  }

 private:
  OrderedJson with_status(const char* status, OrderedJson output) const {
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

  const std::string id_;
  const int64_t created_at_;
  const OrderedJson told_;
  std::string model_;
};

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
                               ask.num_top_logprobs, ask.tells_encrypted));
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

void keep(Scope& scope, const ResponsesAsk& ask, const std::string& id, const OrderedJson& answer) {
  if (!ask.is_stored) return;
  ResponseStore& store = *scope.service().responses;
  store.put(to_be_kept(store, turns_asked(store, ask), id, answer));
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

Response whole_response(Scope& scope, Generation& generation, const ResponsesAsk& ask) {
  const ResponseObject object(scope, ask);
  const OrderedJson answer = whole_answer(scope, generation, ask, object);
  keep(scope, ask, object.id(), answer);
  return generated_response(scope, generation, answer);
}

std::shared_ptr<Generation> ask_for_response(const std::shared_ptr<Scope>& scope,
                                             const ResponsesBody& body,
                                             const ResponsesAsk& ask) {
  const auto generation_of = [&](ipc::GenerateRequest request) {
    std::vector<ipc::GenerateRequest> asked = {std::move(request)};
    choose_by_model(*scope, body, asked);
    auto generation = std::make_shared<Generation>(scope, std::move(asked));
    generation->wait_until_accepted();
    return generation;
  };
  try {
    return generation_of(ask.request);
  } catch (const ApiError& error) {
    if (!ask.may_be_shortened || error.type() != "validation") throw;
    std::optional<ipc::GenerateRequest> shorter = shortened(
        ask, scope->options(),
        [&](const ipc::GenerateRequest& request) { return count_tokens(*scope, request); });
    if (!shorter) throw;
    return generation_of(std::move(*shorter));
  }
}

// Makes the answer that the client does not wait for. It counts and is logged as a request of its
// own, when it ends.
OrderedJson answer_alone(Scope& scope,
                         Generation& generation,
                         const ResponsesAsk& ask,
                         const ResponseObject& object) {
  const auto failed = [&](const ApiError& error) {
    scope.failed(error);
    return object.failed(OrderedJson::array(), in_terms(error, scope.terms()));
  };
  try {
    return whole_answer(scope, generation, ask, object);
  } catch (const ClientGone&) {
    scope.client_left();
    return object.without_output("cancelled");
  } catch (const ApiError& error) {
    return failed(error);
  } catch (const std::exception& error) {
    return failed(ApiError(500, "internal", std::string("internal error: ") + error.what()));
  }
}

// Not found later under the id that is told now, it must not be begun.
void check_is_kept(ResponseStore::Put put) {
  if (put == ResponseStore::Put::kTooLarge) {
    throw ApiError(422, "validation",
                   "Input validation error: `background`: needs an answer that is kept, and this "
                   "conversation is larger than all that are kept may be: raise "
                   "--max-stored-bytes, or leave `background` out");
  }
  if (put == ResponseStore::Put::kNoRoom) {
    throw ApiError(429, "overloaded",
                   "the answers that are made in the background now take all of "
                   "--max-stored-responses or --max-stored-bytes: try again when one has ended, or "
                   "leave `background` out");
  }
}

Response begin_in_background(Scope& scope, const ResponsesBody& body, ResponsesAsk ask) {
  BackgroundRuns* const runs = scope.service().background;
  if (runs == nullptr) throw ApiError(501, "unsupported", "nothing runs in the background here");
  BackgroundRuns::Line line = BackgroundRuns::open_line();
  const auto apart = std::make_shared<Scope>(scope, line.watched.get());
  const std::shared_ptr<Generation> generation = ask_for_response(apart, body, ask);
  const auto object = std::make_shared<const ResponseObject>(*apart, ask);
  ResponseStore& store = *scope.service().responses;
  const std::vector<StoredItemsPtr> asked = turns_asked(store, ask);
  StoredResponse begun =
      to_be_kept(store, asked, object->id(), object->without_output("in_progress"));
  begun.is_running = true;
  check_is_kept(store.put(std::move(begun)));
  auto run = [=, &store, ask = std::move(ask)] {
    try {
      const OrderedJson answer = answer_alone(*apart, *generation, ask, *object);
      store.settle(to_be_kept(store, asked, object->id(), answer));
    } catch (const std::exception&) {
      store.erase(object->id());  // it would be running for ever
      throw;
    }
    apart->give_back_permits();
    apart->end(200, true);
  };
  apart->take_generation_of(scope);
  try {
    runs->start(object->id(), std::move(line), std::move(run));
  } catch (const std::exception&) {
    scope.take_generation_of(*apart);
    store.erase(object->id());
    throw;
  }
  return json_response(200, object->without_output("queued"));
}

// Tells an answer as OpenAI's events while it is written.
class ResponseEvents final : PartReader {
 public:
  ResponseEvents(std::shared_ptr<Scope> scope, ResponsesAsk ask)
      : scope_(std::move(scope)),
        ask_(std::move(ask)),
        object_(*scope_, ask_),
        builder_(ask_.lists_logprobs) {}

  void on_event(Generation::Event& event, EventWriter& events) {
    events_ = &events;
    if (event.reply.accepted) {
      send("response.created", {{"response", object_.without_output("in_progress")}});
      send("response.in_progress", {{"response", object_.without_output("in_progress")}});
    }
    if (event.reply.token) {
      builder_.take(*event.reply.token, this);
      scope_->token_written(0);
    }
    if (event.reply.done) finish(*event.reply.done);
  }

  void on_error(const ApiError& error, EventWriter& events) {
    events_ = &events;
    send("response.failed", {{"response", object_.failed(told_items(), error)}});
  }

 private:
  void finish(const ipc::DoneEvent& done) {
    reason_ = done.best.finish_reason;
    is_ending_ = true;
    builder_.finish(reason_, this);
    const OrderedJson answer = object_.ended(told_items(), done);
    keep(*scope_, ask_, object_.id(), answer);
    scope_->record().finish_reasons.emplace_back(told_reason(done));
    send(reason_ == ipc::FinishReason::kLength ? "response.incomplete" : "response.completed",
         {{"response", answer}});
  }

  OrderedJson told_items() const { return items_of(builder_.parts(), ids_, ask_, reason_); }

  void begin(size_t index, const AnswerPart& part) override {
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

  void add(size_t index,
           const AnswerPart& part,
           std::string_view added,
           std::span<const PartToken> tokens) override {
    OrderedJson fields = place(index, part);
    fields["delta"] = added;
    if (part.kind == PartKind::kText) fields["logprobs"] = logprobs_of(tokens);
    send(fmt::format("response.{}.delta", text_name(part.kind)), std::move(fields));
  }

  void end(size_t index, const AnswerPart& part) override {
    OrderedJson fields = place(index, part);
    fields[part.kind == PartKind::kCall ? "arguments" : "text"] = part.text;
    if (part.kind == PartKind::kText) fields["logprobs"] = logprobs_of(part.tokens);
    if (part.kind == PartKind::kCall) fields["name"] = part.name;
    send(fmt::format("response.{}.done", text_name(part.kind)), std::move(fields));
    if (part.kind != PartKind::kCall) {
      fields = place(index, part);
      fields["part"] = content_of_part(part, ask_.num_top_logprobs);
      send("response.content_part.done", std::move(fields));
    }
    const char* const status =
        is_ending_ ? status_of_part(builder_.parts(), index, reason_) : "completed";
    send("response.output_item.done",
         {{"output_index", index}, {"item", item(index, part, status)}});
  }

  static std::string_view text_name(PartKind kind) {
    if (kind == PartKind::kReasoning) return "reasoning_text";
    return kind == PartKind::kCall ? "function_call_arguments" : "output_text";
  }

  OrderedJson item(size_t index, const AnswerPart& part, const char* status) const {
    return item_of_part(part, ids_[index], status, ask_.num_top_logprobs, ask_.tells_encrypted);
  }

  OrderedJson place(size_t index, const AnswerPart& part) const {
    OrderedJson out = {{"item_id", ids_[index]}, {"output_index", index}};
    if (part.kind != PartKind::kCall) out["content_index"] = 0;
    return out;
  }

  OrderedJson logprobs_of(std::span<const PartToken> tokens) const {
    OrderedJson out = OrderedJson::array();
    for (const PartToken& each : tokens) {
      out.push_back(token_logprobs(each.token, each.top_tokens, ask_.num_top_logprobs));
    }
    return out;
  }

  void send(const std::string& type, OrderedJson fields) {
    OrderedJson event = {{"type", type}, {"sequence_number", num_sent_++}};
    event.update(fields);
    events_->send_named(type, event);
  }

  const std::shared_ptr<Scope> scope_;
  const ResponsesAsk ask_;
  const ResponseObject object_;
  PartBuilder builder_;
  std::vector<std::string> ids_;  // of the items
  EventWriter* events_ = nullptr;
  int64_t num_sent_ = 0;
  ipc::FinishReason reason_ = ipc::FinishReason::kEosToken;
  bool is_ending_ = false;
};

}  // namespace

Response create_response(std::shared_ptr<Scope> scope, const ResponsesBody& body) {
  scope->set_terms(responses_terms());
  scope->record().stream = body.stream;
  scope->begin_generation(1);
  ResponsesAsk ask = read_responses_ask(body, scope->options(), scope->service().responses);
  if (body.background.value_or(false)) return begin_in_background(*scope, body, std::move(ask));
  const std::shared_ptr<Generation> generation = ask_for_response(scope, body, ask);
  if (!body.stream) return whole_response(*scope, *generation, ask);
  const auto told = std::make_shared<ResponseEvents>(scope, std::move(ask));
  return stream_response(
      {.scope = scope,
       .start = [generation] { return generation; },
       .on_event = [told](Generation::Event& event,
                          EventWriter& events) { told->on_event(event, events); },
       .on_end = [](EventWriter&) {},
       .on_error = [told](const ApiError& error,
                          EventWriter& events) { told->on_error(error, events); }},
      generation->num_prompt_characters());
}

Response count_response_tokens(Scope& scope, const ResponsesBody& body) {
  scope.set_terms(responses_terms());
  std::vector<ipc::GenerateRequest> asked(1);
  choose_by_model(scope, body, asked);  // a model that is not here is refused here too
  const ResponsesAsk ask = read_responses_ask(body, scope.options(), scope.service().responses);
  return json_response(200, {{"object", "response.input_tokens"},
                             {"input_tokens", count_tokens(scope, ask.request)}});
}

}  // namespace tgi::http
