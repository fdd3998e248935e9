// POST /v1/chat/completions
#include "base/json_text.h"
#include "cmd/http/openai_answer.h"
#include "cmd/http/openai_api.h"
#include "cmd/http/token_json.h"

namespace tgi::http {
namespace {

OrderedJson token_logprobs(const ipc::TokenInfo& token,
                           const std::vector<ipc::TokenInfo>& top_tokens,
                           int64_t num_top) {
  OrderedJson top = OrderedJson::array();
  for (const ipc::TokenInfo& each : first_of(top_tokens, num_top)) {
    top.push_back({{"token", each.text}, {"logprob", logprob_json(each.logprob)}});
  }
  return {{"token", token.text},
          {"logprob", logprob_json(token.logprob)},
          {"top_logprobs", std::move(top)}};
}

OrderedJson sequence_logprobs(const ipc::SequenceResult& sequence, int64_t num_top) {
  static const std::vector<ipc::TokenInfo> kNone;
  OrderedJson content = OrderedJson::array();
  for (size_t i = 0; i < sequence.tokens.size(); ++i) {
    const auto& top = i < sequence.top_tokens.size() ? sequence.top_tokens[i] : kNone;
    content.push_back(token_logprobs(sequence.tokens[i], top, num_top));
  }
  return {{"content", std::move(content)}};
}

Response whole_answer(Scope& scope, Generation& generation, const ChatBody& body) {
  const ipc::DoneEvent done = std::move(generation.wait().front());
  OrderedJson choices = OrderedJson::array();
  for (const ipc::SequenceResult* sequence : in_order(done)) {
    const std::string_view reason = openai_finish_reason(sequence->finish_reason);
    scope.record().finish_reasons.emplace_back(reason);
    choices.push_back(
        {{"index", sequence->index},
         {"message", {{"role", "assistant"}, {"content", sequence->text}}},
         {"logprobs", body.logprobs ? sequence_logprobs(*sequence, body.top_logprobs.value_or(0))
                                    : OrderedJson()},
         {"finish_reason", reason}});
  }
  OrderedJson answer = answer_head("chatcmpl", "chat.completion", body.model, scope.options());
  answer["choices"] = std::move(choices);
  UsageCounts usage;
  usage.add(done);
  answer["usage"] = usage.to_json();
  Response response = json_response(200, answer);
  response.headers = timing_headers(scope, generation.num_prompt_characters());
  return response;
}

// What the chunks of one stream share.
class Chunks {
 public:
  Chunks(std::shared_ptr<Scope> scope, const ChatBody& body)
      : scope_(std::move(scope)),
        head_(answer_head("chatcmpl", "chat.completion.chunk", body.model, scope_->options())),
        wants_usage_(wants_usage(body)),
        logprobs_(body.logprobs),
        num_top_(body.top_logprobs.value_or(0)),
        role_sent_(body.n.value_or(1), false) {}

  void on_event(const Generation::Event& event, EventWriter& events) {
    if (event.reply.done) usage_.add(*event.reply.done);
    if (!event.reply.token) return;
    const ipc::TokenEvent& token = *event.reply.token;
    const auto index = static_cast<size_t>(token.index);
    if (!role_sent_.at(index)) {
      role_sent_[index] = true;
      events.send_text(chunk(token.index, "", "null", ""));
    }
    std::string_view finish;
    if (token.finish_reason) {
      finish = openai_finish_reason(*token.finish_reason);
      scope_->record().finish_reasons.emplace_back(finish);
    }
    std::string logprobs = "null";
    if (logprobs_) {
      OrderedJson json;
      json["content"] =
          OrderedJson::array({token_logprobs(token.token, token.top_tokens, num_top_)});
      logprobs = dump_json(json);
    }
    events.send_text(chunk(token.index, token.text, logprobs, finish));
    scope_->token_written(index);
  }

  void on_end(EventWriter& events) const {
    if (!wants_usage_) return;
    OrderedJson last = head_;
    last["choices"] = OrderedJson::array();
    last["usage"] = usage_.to_json();
    events.send(last);
  }

 private:
  // One chunk per token, so it is written straight into the line. An empty `finish` is none.
  std::string chunk(int64_t index,
                    std::string_view content,
                    std::string_view logprobs,
                    std::string_view finish) const {
    std::string line;
    line.reserve(open_head_.size() + 160);
    JsonText out(line);
    out.raw(open_head_).raw(",\"choices\":[{\"index\":").number(index);
    out.raw(",\"delta\":{\"role\":\"assistant\",\"content\":").string(content);
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
  std::vector<bool> role_sent_;  // of each choice
  UsageCounts usage_;
};

}  // namespace

Response chat_completions(std::shared_ptr<Scope> scope, const ChatBody& body) {
  scope->record().n = body.n.value_or(1);
  scope->record().stream = body.stream;
  scope->begin_generation(std::min<int64_t>(body.n.value_or(1), scope->options().max_choices));
  const auto generation = std::make_shared<Generation>(
      scope, std::vector<ipc::GenerateRequest>{to_daemon(body, scope->options())});
  if (!body.stream) return whole_answer(*scope, *generation, body);
  generation->wait_until_accepted();
  const auto chunks = std::make_shared<Chunks>(scope, body);
  return stream_answer(
      scope, generation,
      [chunks](Generation::Event& event, EventWriter& events) { chunks->on_event(event, events); },
      [chunks](EventWriter& events) { chunks->on_end(events); });
}

}  // namespace tgi::http
