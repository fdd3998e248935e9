// POST /v1/chat/completions
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_text.h"
#include "cmd/http/openai_answer.h"
#include "cmd/http/openai_api.h"

namespace tgi::http {
namespace {

OrderedJson sequence_logprobs(const ipc::SequenceResult& sequence, int64_t num_top) {
  return {{"content", listed_logprobs(sequence, num_top)}, {"refusal", nullptr}};
}

// "tool_calls" is how clients know that they are to call.
std::string_view chat_finish_reason(ipc::FinishReason reason, bool has_calls) {
  const std::string_view out = openai_finish_reason(reason);
  return has_calls && reason != ipc::FinishReason::kLength ? "tool_calls" : out;
}

OrderedJson message_of(const ipc::SequenceResult& sequence, bool tells_reasoning) {
  OrderedJson out = {{"role", "assistant"}, {"content", sequence.text}};
  if (tells_reasoning && !sequence.reasoning.empty()) out["reasoning_content"] = sequence.reasoning;
  if (sequence.tool_calls.empty()) return out;
  if (sequence.text.empty()) out["content"] = nullptr;
  OrderedJson calls = OrderedJson::array();
  for (const ipc::ToolCall& call : sequence.tool_calls) {
    calls.push_back({{"id", call.id},
                     {"type", "function"},
                     {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  out["tool_calls"] = std::move(calls);
  return out;
}

Response whole_answer(Scope& scope, Generation& generation, const ChatBody& body) {
  const ipc::DoneEvent done = std::move(generation.wait().front());
  OrderedJson choices = OrderedJson::array();
  const size_t n = body.n.value_or(1);
  const bool tells_reasoning = reasoning_of(body).is_told;
  for (const ipc::SequenceResult* sequence : choices_of(done, n)) {
    const std::string_view reason =
        chat_finish_reason(sequence->finish_reason, !sequence->tool_calls.empty());
    scope.record().finish_reasons.emplace_back(reason);
    choices.push_back(
        {{"index", choices.size()},
         {"message", message_of(*sequence, tells_reasoning)},
         {"logprobs", body.logprobs ? sequence_logprobs(*sequence, body.top_logprobs.value_or(0))
                                    : OrderedJson()},
         {"finish_reason", reason}});
  }
  OrderedJson answer = answer_head("chatcmpl", "chat.completion", scope);
  answer["choices"] = std::move(choices);
  UsageCounts usage;
  usage.add(done, n);
  answer["usage"] = usage.to_json();
  return generated_response(scope, generation, answer);
}

// What the chunks of one stream share.
class Chunks {
 public:
  Chunks(std::shared_ptr<Scope> scope, const ChatBody& body)
      : scope_(std::move(scope)),
        head_(answer_head("chatcmpl", "chat.completion.chunk", *scope_)),
        wants_usage_(wants_usage(body)),
        logprobs_(body.logprobs),
        num_top_(body.top_logprobs.value_or(0)),
        copies_(choices_of_sequence(is_greedy(body) ? 1 : body.n.value_or(1), body.n.value_or(1))),
        tells_reasoning_(reasoning_of(body).is_told),
        may_be_silent_(body.tools.has_value() || !tells_reasoning_),
        role_sent_(body.n.value_or(1), false),
        has_calls_(body.n.value_or(1), false) {}

  void on_event(const Generation::Event& event, EventWriter& events) {
    if (event.reply.done) usage_.add(*event.reply.done, role_sent_.size());
    if (!event.reply.token) return;
    const auto first = static_cast<size_t>(event.reply.token->index);
    for (size_t i = 0; i < copies_; ++i) send(first + i, *event.reply.token, events);
  }
  void on_end(EventWriter& events) const {
    if (wants_usage_) events.send(usage_chunk(head_, usage_));
  }

 private:
  void send(size_t index, const ipc::TokenEvent& token, EventWriter& events) {
    if (!role_sent_.at(index)) {
      role_sent_[index] = true;
      events.send_text(chunk(index, ipc::TokenEvent(), "null", ""));
    }
    if (!token.tool_calls.empty()) has_calls_[index] = true;
    std::string_view finish;
    if (token.finish_reason) {
      finish = chat_finish_reason(*token.finish_reason, has_calls_[index]);
      scope_->record().finish_reasons.emplace_back(finish);
    }
    std::string logprobs = "null";
    if (logprobs_ && is_listed(token.token)) {
      OrderedJson json;
      json["content"] =
          OrderedJson::array({token_logprobs(token.token, token.top_tokens, num_top_)});
      json["refusal"] = nullptr;
      logprobs = dump_json(json);
    }
    const bool says_nothing = token.text.empty() && token.tool_calls.empty() && finish.empty() &&
                              logprobs == "null" && (token.reasoning.empty() || !tells_reasoning_);
    if (!says_nothing || !may_be_silent_) events.send_text(chunk(index, token, logprobs, finish));
    scope_->token_written(index);
  }

  // What the token added: to the content, unless it was something else.
  void write_delta(const ipc::TokenEvent& token, JsonText& out) const {
    out.raw("\"role\":\"assistant\"");
    const bool has_reasoning = tells_reasoning_ && !token.reasoning.empty();
    if (has_reasoning) out.raw(",\"reasoning_content\":").string(token.reasoning);
    if (!token.text.empty() || (!has_reasoning && token.tool_calls.empty())) {
      out.raw(",\"content\":").string(token.text);
    }
    if (token.tool_calls.empty()) return;
    std::string_view open = ",\"tool_calls\":[{\"index\":";
    for (const ipc::ToolCall& call : token.tool_calls) {
      out.raw(open).number(call.index);
      if (!call.id.empty()) out.raw(",\"id\":").string(call.id).raw(",\"type\":\"function\"");
      out.raw(",\"function\":{");
      if (!call.name.empty()) out.raw("\"name\":").string(call.name).raw(",");
      out.raw("\"arguments\":").string(call.arguments).raw("}}");
      open = ",{\"index\":";
    }
    out.raw("]");
  }

  // One chunk per token, so it is written straight into the line. An empty `finish` is none.
  std::string chunk(size_t index,
                    const ipc::TokenEvent& token,
                    std::string_view logprobs,
                    std::string_view finish) const {
    std::string line;
    line.reserve(open_head_.size() + 160);
    JsonText out(line);
    out.raw(open_head_).raw(",\"choices\":[{\"index\":").number(index);
    out.raw(",\"delta\":{");
    write_delta(token, out);
    out.raw("},\"logprobs\":").raw(logprobs).raw(",\"finish_reason\":");
    finish.empty() ? out.raw("null") : out.string(finish);
    out.raw("}],\"usage\":null}");
    return line;
  }

  const std::shared_ptr<Scope> scope_;
  const OrderedJson head_;
  const std::string open_head_ = open_object(head_);
  const bool wants_usage_;
  const bool logprobs_;
  const int64_t num_top_;
  const size_t copies_;  // of each sequence
  const bool tells_reasoning_;
  const bool may_be_silent_;     // where a token says nothing: calls are held back
  std::vector<bool> role_sent_;  // of each choice
  std::vector<bool> has_calls_;
  UsageCounts usage_;
};

}  // namespace

Response chat_completions(std::shared_ptr<Scope> scope, const ChatBody& body) {
  scope->set_terms(chat_terms(body));
  scope->record().n = body.n.value_or(1);
  scope->record().stream = body.stream;
  const int64_t num_sequences = is_greedy(body) ? 1 : body.n.value_or(1);
  scope->begin_generation(std::min(num_sequences, scope->options().max_choices));
  std::vector<ipc::GenerateRequest> asked = {to_daemon(body, scope->options())};
  choose_by_model(*scope, body, asked);
  const auto generation = std::make_shared<Generation>(scope, std::move(asked));
  if (!body.stream) return whole_answer(*scope, *generation, body);
  generation->wait_until_accepted();
  const auto chunks = std::make_shared<Chunks>(scope, body);
  return stream_answer(
      scope, generation,
      [chunks](Generation::Event& event, EventWriter& events) { chunks->on_event(event, events); },
      [chunks](EventWriter& events) { chunks->on_end(events); });
}

}  // namespace tgi::http
