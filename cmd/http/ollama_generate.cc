// POST /api/chat and /api/generate
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bounded_json.h"
#include "cmd/http/generation.h"
#include "cmd/http/model_choice.h"
#include "cmd/http/ollama_api.h"
#include "cmd/http/openai_answer.h"
#include "cmd/http/stream_pump.h"

namespace tgi::http {
namespace {

int64_t nanoseconds(double milliseconds) {
  return static_cast<int64_t>(std::max(milliseconds, 0.0) * 1e6);
}

// A call with its arguments as an object, or nothing of one that is not whole.
std::optional<OrderedJson> ollama_call(const ipc::ToolCall& call) {
  OrderedJson arguments = json_or_discarded(call.arguments);
  if (call.name.empty() || !arguments.is_object()) return std::nullopt;
  return OrderedJson{
      {"id", call.id},
      {"function",
       {{"index", call.index}, {"name", call.name}, {"arguments", std::move(arguments)}}}};
}

// What the answers and the lines of one request share: the place of the text, which is all that
// chats and generations differ in.
class OllamaAnswer {
 public:
  OllamaAnswer(std::shared_ptr<Scope> scope, const OllamaAsk& body, bool is_chat)
      : scope_(std::move(scope)),
        model_(ollama_name(body)),
        is_chat_(is_chat),
        tells_reasoning_(!body.think || *body.think != OrderedJson(false)),
        num_top_(body.top_logprobs.value_or(0)),
        logprobs_(body.logprobs || num_top_ > 0) {}

  // {model, created_at, response or message, done}; with calls only in a chat.
  OrderedJson line(const std::string& text,
                   const std::string& reasoning,
                   OrderedJson calls,
                   bool done) const {
    OrderedJson out = {{"model", model_},
                       {"created_at", ollama_time(std::chrono::system_clock::now())}};
    const bool has_reasoning = tells_reasoning_ && !reasoning.empty();
    if (is_chat_) {
      OrderedJson message = {{"role", "assistant"}, {"content", text}};
      if (has_reasoning) message["thinking"] = reasoning;
      if (!calls.empty()) message["tool_calls"] = std::move(calls);
      out["message"] = std::move(message);
    } else {
      out["response"] = text;
      if (has_reasoning) out["thinking"] = reasoning;
    }
    out["done"] = done;
    return out;
  }

  OrderedJson load_line(bool is_unload) const {
    OrderedJson out = line("", "", OrderedJson::array(), true);
    out["done_reason"] = is_unload ? "unload" : "load";
    return out;
  }

  void add_end(const ipc::DoneEvent& done, OrderedJson& out) const {
    const std::string_view reason = openai_finish_reason(done.best.finish_reason);
    scope_->record().finish_reasons.emplace_back(reason);
    const ipc::Timings& times = done.timings;
    const double inference_ms = times.total_ms - times.queue_ms;
    const int64_t total = nanoseconds(scope_->elapsed_s() * 1000);
    out["done_reason"] = reason;
    out["total_duration"] = total;
    // Until the model began with it, which is when ollama has loaded the model.
    out["load_duration"] = std::max<int64_t>(total - nanoseconds(inference_ms), 0);
    out["prompt_eval_count"] = done.num_prompt_tokens;
    out["prompt_eval_duration"] = nanoseconds(times.time_to_first_token_ms - times.queue_ms);
    out["eval_count"] = done.best.num_generated_tokens;
    out["eval_duration"] = nanoseconds(times.decode_ms);
  }

  OrderedJson whole(const ipc::DoneEvent& done) const {
    const ipc::SequenceResult& best = done.best;
    OrderedJson calls = OrderedJson::array();
    for (const ipc::ToolCall& call : best.tool_calls) {
      if (std::optional<OrderedJson> json = ollama_call(call)) calls.push_back(std::move(*json));
    }
    OrderedJson out = line(best.text, best.reasoning, std::move(calls), true);
    add_end(done, out);
    if (logprobs_) out["logprobs"] = listed_logprobs(best, num_top_);
    return out;
  }

  void on_event(Generation::Event& event, EventWriter& events) {
    if (event.reply.token) on_token(*event.reply.token, events);
    if (!event.reply.done) return;
    if (OrderedJson calls = ended_calls(event.reply.done->best.tool_calls); !calls.empty()) {
      events.send(line("", "", std::move(calls), false));
    }
    OrderedJson last = line("", "", OrderedJson::array(), true);
    add_logprobs(last);
    add_end(*event.reply.done, last);
    events.send(last);
  }

 private:
  void on_token(const ipc::TokenEvent& token, EventWriter& events) {
    if (logprobs_ && is_listed(token.token)) {
      waiting_logprobs_.push_back(token_logprobs(token.token, token.top_tokens, num_top_));
    }
    const bool is_silent = token.text.empty() && (token.reasoning.empty() || !tells_reasoning_);
    if (is_silent) return;
    OrderedJson out = line(token.text, token.reasoning, OrderedJson::array(), false);
    add_logprobs(out);
    events.send(out);
    scope_->token_written(0);
  }

  // Those of the tokens that make up what is told now.
  void add_logprobs(OrderedJson& out) {
    if (waiting_logprobs_.empty()) return;
    out["logprobs"] = std::exchange(waiting_logprobs_, OrderedJson::array());
  }

  // Calls are told whole: clients of ollama put no pieces together.
  static OrderedJson ended_calls(const std::vector<ipc::ToolCall>& calls) {
    OrderedJson out = OrderedJson::array();
    for (const ipc::ToolCall& call : calls) {
      if (std::optional<OrderedJson> json = ollama_call(call)) out.push_back(std::move(*json));
    }
    return out;
  }

  const std::shared_ptr<Scope> scope_;
  const std::string model_;
  const bool is_chat_;
  const bool tells_reasoning_;
  const int64_t num_top_;
  const bool logprobs_;
  OrderedJson waiting_logprobs_ = OrderedJson::array();
};

Response answer(const std::shared_ptr<Scope>& scope,
                const OllamaAsk& body,
                bool is_chat,
                ipc::GenerateRequest asked) {
  choose_ollama_model(*scope, ollama_name(body), asked);
  asked.keep_alive_seconds = keep_alive_of(body.keep_alive);
  const bool is_streamed = asked.stream;
  const auto generation = std::make_shared<Generation>(scope, std::vector{std::move(asked)});
  const auto lines = std::make_shared<OllamaAnswer>(scope, body, is_chat);
  if (!is_streamed) {
    const ipc::DoneEvent done = std::move(generation->wait().front());
    return generated_response(*scope, *generation, lines->whole(done));
  }
  generation->wait_until_accepted();
  return stream_response(
      {.scope = scope,
       .start = [generation] { return generation; },
       .on_event = [lines](Generation::Event& event,
                           EventWriter& events) { lines->on_event(event, events); },
       .on_end = [](EventWriter&) {},
       .on_error = [](const ApiError& error,
                      EventWriter& events) { events.send(ollama_error_json(error)); },
       .framing = &kJsonLines},
      generation->num_prompt_characters());
}

// Of a body without a prompt: the model is loaded, or let go.
Response load_answer(const std::shared_ptr<Scope>& scope, const OllamaAsk& body, bool is_chat) {
  ipc::GenerateRequest request;
  choose_ollama_model(*scope, ollama_name(body), request);
  const std::optional<double> keep_alive = keep_alive_of(body.keep_alive);
  keep_model(*scope, keep_alive);
  const bool is_unload = keep_alive && *keep_alive == 0;
  OrderedJson out = OllamaAnswer(scope, body, is_chat).load_line(is_unload);
  Response response = json_response(200, out);
  if (!body.stream.value_or(true)) return response;
  response.content_type = std::string(kJsonLines.content_type);
  response.body += kJsonLines.after;
  return response;
}

void begin(Scope& scope, const OllamaAsk& body) {
  scope.record().stream = body.stream.value_or(true);
  scope.begin_generation(1);
}

}  // namespace

Response ollama_chat(std::shared_ptr<Scope> scope, const OllamaChatBody& body) {
  scope->set_terms(ollama_chat_terms());
  (void)ollama_name(body);
  if (!body.messages || (body.messages->is_array() && body.messages->empty())) {
    return load_answer(scope, body, true);
  }
  if (!body.messages->is_array()) fail_body_type("messages", "an array", *body.messages);
  begin(*scope, body);
  return answer(scope, body, true, to_daemon(to_chat(body, scope->options()), scope->options()));
}

Response ollama_generate(std::shared_ptr<Scope> scope, const OllamaGenerateBody& body) {
  scope->set_terms(ollama_generate_terms());
  (void)ollama_name(body);
  if (body.prompt.value_or("").empty()) return load_answer(scope, body, false);
  begin(*scope, body);
  const ApiOptions& options = scope->options();
  if (is_raw(body, options)) {
    return answer(scope, body, false,
                  std::move(to_daemon(to_completion(body, options), options).front()));
  }
  return answer(scope, body, false, to_daemon(to_chat(body, options), options));
}

}  // namespace tgi::http
