#include "cmd/http/anthropic_api.h"

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bounded_json.h"
#include "cmd/http/answer_parts.h"
#include "cmd/http/generation.h"
#include "cmd/http/info_api.h"
#include "cmd/http/random_id.h"
#include "cmd/http/stream_pump.h"

namespace tgi::http {
namespace {

// Clients pass it back and never look into it; nothing here asks for it.
constexpr std::string_view kSignature = "unsigned";

struct Asked {
  std::shared_ptr<Generation> generation;
  bool fits = true;  // max_tokens does
};

// Anthropic's max_tokens may be more than there is room for. Whether that was what the daemon
// refused shows when it is asked for no more than fits: then there is room for less.
Asked ask_for_message(const std::shared_ptr<Scope>& scope,
                      const MessagesBody& body,
                      ipc::GenerateRequest request) {
  const auto ask = [&] {
    std::vector<ipc::GenerateRequest> asked = {request};
    choose_by_model(*scope, body, asked);
    auto generation = std::make_shared<Generation>(scope, std::move(asked));
    generation->wait_until_accepted();
    return generation;
  };
  try {
    return {.generation = ask(), .fits = true};
  } catch (const ApiError& error) {
    if (error.type() != "validation" || !request.params.max_new_tokens) throw;
    const int64_t wanted = *std::exchange(request.params.max_new_tokens, std::nullopt);
    if (!request.params.sampling_defaults) request.params.sampling_defaults.emplace();
    request.params.sampling_defaults->max_new_tokens = wanted;
    Asked out{.generation = ask(), .fits = false};
    // More than was asked for may still be a preset's.
    if (scope->record().max_new_tokens >= wanted) throw;
    return out;
  }
}

struct Stop {
  std::string reason;
  OrderedJson sequence;  // null, or the text
};

Stop stop_of(const ipc::SequenceResult& sequence, bool fits) {
  if (sequence.finish_reason == ipc::FinishReason::kLength) {
    return {.reason = fits ? "max_tokens" : "model_context_window_exceeded", .sequence = nullptr};
  }
  if (!sequence.tool_calls.empty()) return {.reason = "tool_use", .sequence = nullptr};
  if (sequence.finish_reason == ipc::FinishReason::kStopSequence) {
    return {.reason = "stop_sequence", .sequence = sequence.stop_sequence};
  }
  return {.reason = "end_turn", .sequence = nullptr};
}

// Those of the prompt that came from the cache are counted apart.
OrderedJson usage_of_message(const ipc::DoneEvent& done) {
  return {{"input_tokens", done.num_prompt_tokens - done.num_cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", done.num_cached_tokens},
          {"output_tokens", done.best.num_generated_tokens},
          {"output_tokens_details", {{"thinking_tokens", done.best.num_reasoning_tokens}}}};
}

OrderedJson message_head(const Scope& scope) {
  const std::string& adapter = scope.record().adapter;
  return {{"id", random_id("msg")},
          {"type", "message"},
          {"role", "assistant"},
          {"model", adapter.empty() ? scope.options().model_id : adapter}};
}

// `is_whole`: with what was written; else as it begins.
OrderedJson block_of(const AnswerPart& part, bool is_whole, bool tells_thinking) {
  switch (part.kind) {
    case PartKind::kReasoning:
      return {{"type", "thinking"},
              {"thinking", is_whole && tells_thinking ? part.text : ""},
              {"signature", is_whole ? kSignature : ""}};
    case PartKind::kCall: {
      OrderedJson input = OrderedJson::object();
      if (is_whole && !part.text.empty()) input = json_or_discarded(part.text);
      return {{"type", "tool_use"},
              {"id", part.call_id},
              {"name", part.name},
              {"input", input.is_object() ? std::move(input) : OrderedJson::object()}};
    }
    case PartKind::kText:
      break;
  }
  return {{"type", "text"}, {"text", is_whole ? part.text : ""}};
}

void add_request_id(const Scope& scope, Response& response) {
  response.headers.push_back({"request-id", scope.record().request_id});
}

Response whole_message(Scope& scope, const Asked& asked, bool tells_thinking) {
  const ipc::DoneEvent done = std::move(asked.generation->wait().front());
  OrderedJson content = OrderedJson::array();
  for (const AnswerPart& part : parts_of(done.best)) {
    content.push_back(block_of(part, true, tells_thinking));
  }
  const Stop stop = stop_of(done.best, asked.fits);
  scope.record().finish_reasons.push_back(stop.reason);
  OrderedJson answer = message_head(scope);
  answer["content"] = std::move(content);
  answer["stop_reason"] = stop.reason;
  answer["stop_sequence"] = stop.sequence;
  answer["usage"] = usage_of_message(done);
  answer["usage"]["service_tier"] = "standard";
  return generated_response(scope, *asked.generation, answer);
}

// Tells an answer as Anthropic's events while it is written.
class MessageEvents final : PartReader {
 public:
  MessageEvents(std::shared_ptr<Scope> scope, bool tells_thinking, bool fits)
      : scope_(std::move(scope)), tells_thinking_(tells_thinking), fits_(fits) {}

  void on_event(Generation::Event& event, EventWriter& events) {
    events_ = &events;
    if (event.reply.accepted) start(event.reply.accepted->num_prompt_tokens);
    if (event.reply.token) {
      builder_.take(*event.reply.token, this);
      scope_->token_written(0);
    }
    if (event.reply.done) finish(*event.reply.done);
  }

  static void on_error(const ApiError& error, EventWriter& events) {
    events.send_named("error", anthropic_error_json(error));
  }

 private:
  void start(int64_t num_prompt_tokens) {
    OrderedJson message = message_head(*scope_);
    message["content"] = OrderedJson::array();
    message["stop_reason"] = nullptr;
    message["stop_sequence"] = nullptr;
    message["usage"] = {{"input_tokens", num_prompt_tokens},
                        {"cache_creation_input_tokens", 0},
                        {"cache_read_input_tokens", 0},
                        {"output_tokens", 0},
                        {"service_tier", "standard"}};
    send("message_start", {{"message", std::move(message)}});
    send("ping", OrderedJson::object());
  }

  void finish(const ipc::DoneEvent& done) {
    builder_.finish(done.best.finish_reason, this);
    const Stop stop = stop_of(done.best, fits_);
    scope_->record().finish_reasons.push_back(stop.reason);
    send("message_delta",
         {{"delta", {{"stop_reason", stop.reason}, {"stop_sequence", stop.sequence}}},
          {"usage", usage_of_message(done)}});
    send("message_stop", OrderedJson::object());
  }

  void begin(size_t index, const AnswerPart& part) override {
    send("content_block_start",
         {{"index", index}, {"content_block", block_of(part, false, tells_thinking_)}});
  }

  void add(size_t index,
           const AnswerPart& part,
           std::string_view added,
           std::span<const PartToken> /*tokens*/) override {
    switch (part.kind) {
      case PartKind::kReasoning:
        if (tells_thinking_) delta(index, {{"type", "thinking_delta"}, {"thinking", added}});
        return;
      case PartKind::kCall:
        return delta(index, {{"type", "input_json_delta"}, {"partial_json", added}});
      case PartKind::kText:
        return delta(index, {{"type", "text_delta"}, {"text", added}});
    }
  }

  void end(size_t index, const AnswerPart& part) override {
    if (part.kind == PartKind::kReasoning) {
      delta(index, {{"type", "signature_delta"}, {"signature", kSignature}});
    }
    send("content_block_stop", {{"index", index}});
  }

  void delta(size_t index, OrderedJson what) {
    send("content_block_delta", {{"index", index}, {"delta", std::move(what)}});
  }

  void send(const char* type, OrderedJson fields) {
    OrderedJson event = {{"type", type}};
    event.update(fields);
    events_->send_named(type, event);
  }

  const std::shared_ptr<Scope> scope_;
  const bool tells_thinking_;
  const bool fits_;
  PartBuilder builder_{/*keeps_tokens=*/false};
  EventWriter* events_ = nullptr;
};

Response streamed_message(const std::shared_ptr<Scope>& scope,
                          const Asked& asked,
                          bool tells_thinking) {
  const auto told = std::make_shared<MessageEvents>(scope, tells_thinking, asked.fits);
  return stream_response(
      {.scope = scope,
       .start = [generation = asked.generation] { return generation; },
       .on_event = [told](Generation::Event& event,
                          EventWriter& events) { told->on_event(event, events); },
       .on_end = [](EventWriter&) {},
       .on_error = [](const ApiError& error,
                      EventWriter& events) { MessageEvents::on_error(error, events); }},
      asked.generation->num_prompt_characters());
}

}  // namespace

Response create_message(std::shared_ptr<Scope> scope, const MessagesBody& body) {
  scope->set_terms(anthropic_terms());
  scope->record().stream = body.stream;
  scope->begin_generation(1);
  const MessagesAsk ask = read_messages_ask(body, scope->options());
  const Asked asked = ask_for_message(scope, body, ask.request);
  Response response = body.stream ? streamed_message(scope, asked, ask.tells_thinking)
                                  : whole_message(*scope, asked, ask.tells_thinking);
  add_request_id(*scope, response);
  return response;
}

Response count_message_tokens(Scope& scope, const CountTokensBody& body) {
  scope.set_terms(anthropic_terms());
  std::vector<ipc::GenerateRequest> asked(1);
  choose_by_model(scope, body, asked);  // a model that is not here is refused here too
  Response response = json_response(
      200, {{"input_tokens", count_tokens(scope, read_count_ask(body, scope.options()))}});
  add_request_id(scope, response);
  return response;
}

}  // namespace tgi::http
