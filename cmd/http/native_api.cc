#include "cmd/http/native_api.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "base/utf8.h"
#include "cmd/http/adapters.h"
#include "cmd/http/generation.h"
#include "cmd/http/sse.h"
#include "cmd/http/stream_pump.h"
#include "cmd/http/token_json.h"

namespace tgi::http {
namespace {

OrderedJson prefill_json(const std::vector<ipc::TokenInfo>& tokens) {
  OrderedJson out = OrderedJson::array();
  for (const ipc::TokenInfo& token : tokens) {
    out.push_back(
        {{"id", token.id}, {"text", token.text}, {"logprob", logprob_json(token.logprob)}});
  }
  return out;
}

OrderedJson token_json(const ipc::TokenInfo& token) {
  OrderedJson out = {{"id", token.id},
                     {"text", token.text},
                     {"logprob", logprob_json(token.logprob)},
                     {"special", token.special}};
  if (token.skipped) out["skipped"] = true;  // LoRAX's
  return out;
}

OrderedJson tokens_json(const std::vector<ipc::TokenInfo>& tokens) {
  OrderedJson out = OrderedJson::array();
  for (const ipc::TokenInfo& token : tokens) out.push_back(token_json(token));
  return out;
}

// How many of the most likely tokens are listed of each, in TGI's place and in LoRAX's.
struct NumTop {
  int64_t top = 0;
  int64_t alternatives = 0;

  explicit NumTop(const GenerateParameters& parameters)
      : top(parameters.top_n_tokens.value_or(0)),
        alternatives(parameters.return_k_alternatives.value_or(0)) {}
};

// As many as TGI lists, which may be more than were asked for where some are equally likely.
OrderedJson top_tokens_json(const std::vector<ipc::TokenInfo>& top, NumTop asked) {
  if (asked.alternatives <= asked.top) return tokens_json(top);
  const auto first = first_of(top, asked.top);
  return tokens_json({first.begin(), first.end()});
}

OrderedJson alternatives_json(const std::vector<ipc::TokenInfo>& top, NumTop asked) {
  OrderedJson out = OrderedJson::array();
  for (const ipc::TokenInfo& token : first_of(top, asked.alternatives)) {
    out.push_back(
        {{"id", token.id}, {"text", token.text}, {"logprob", logprob_json(token.logprob)}});
  }
  return out;
}

// The members that the answer and its best_of_sequences share.
void add_sequence(const ipc::SequenceResult& sequence,
                  const ipc::DoneEvent& done,
                  NumTop asked,
                  OrderedJson& out) {
  out["finish_reason"] = ipc::finish_reason_name(sequence.finish_reason);
  out["generated_tokens"] = sequence.num_generated_tokens;
  // LoRAX's.
  if (sequence.num_skipped_tokens > 0) out["skipped_tokens"] = sequence.num_skipped_tokens;
  out["seed"] = sequence.draw_seed ? OrderedJson(*sequence.draw_seed) : OrderedJson();
  out["prefill"] = prefill_json(done.prompt_tokens);
  out["tokens"] = tokens_json(sequence.tokens);
  const auto& top = sequence.top_tokens;
  if (asked.alternatives > 0) {
    for (size_t i = 0; i < std::min(top.size(), sequence.tokens.size()); ++i) {
      out["tokens"][i]["alternative_tokens"] = alternatives_json(top[i], asked);
    }
  }
  if (asked.top == 0 || top.empty()) return;
  OrderedJson lists = OrderedJson::array();
  for (const auto& list : top) lists.push_back(top_tokens_json(list, asked));
  out["top_tokens"] = std::move(lists);
}

OrderedJson details_json(const ipc::DoneEvent& done, NumTop asked) {
  OrderedJson out = OrderedJson::object();
  add_sequence(done.best, done, asked, out);
  out["prompt_tokens"] = done.num_prompt_tokens;  // LoRAX's clients want it
  if (done.others.empty()) return out;
  OrderedJson others = OrderedJson::array();
  for (const ipc::SequenceResult& other : done.others) {
    OrderedJson sequence = {{"generated_text", other.text}};
    add_sequence(other, done, asked, sequence);
    others.push_back(std::move(sequence));
  }
  out["best_of_sequences"] = std::move(others);
  return out;
}

void note_finish(Scope& scope, const ipc::DoneEvent& done) {
  scope.record().finish_reasons.emplace_back(ipc::finish_reason_name(done.best.finish_reason));
}

void write_token(const ipc::TokenEvent& event, NumTop asked, JsonText& out) {
  const ipc::TokenInfo& token = event.token;
  out.raw("{\"id\":").number(token.id).raw(",\"text\":").string(token.text);
  out.raw(",\"logprob\":").number(token.logprob);
  out.raw(",\"special\":").boolean(token.special);
  if (token.skipped) out.raw(",\"skipped\":true");
  if (asked.alternatives > 0) {
    out.raw(",\"alternative_tokens\":").raw(dump_json(alternatives_json(event.top_tokens, asked)));
  }
  out.raw("}");
}

// One event per token, so it is written straight into the line.
std::string token_event_text(int64_t index,
                             ipc::TokenEvent& event,
                             const ipc::DoneEvent* done,
                             NumTop asked) {
  // What the token made readable; a special token is spelled out.
  if (!event.text.empty() || !event.token.special) event.token.text = event.text;
  std::string line;
  line.reserve(192);
  JsonText out(line);
  out.raw("{\"index\":").number(index).raw(",\"token\":");
  write_token(event, asked, out);
  if (asked.top > 0 && !event.top_tokens.empty()) {
    out.raw(",\"top_tokens\":").raw(dump_json(top_tokens_json(event.top_tokens, asked)));
  }
  if (done == nullptr) {
    out.raw(",\"generated_text\":null,\"details\":null}");
    return line;
  }
  OrderedJson details = {{"finish_reason", ipc::finish_reason_name(done->best.finish_reason)},
                         {"generated_tokens", done->best.num_generated_tokens},
                         {"seed", done->seed ? OrderedJson(*done->seed) : OrderedJson()},
                         {"input_length", done->num_prompt_tokens},
                         {"prompt_tokens", done->num_prompt_tokens}};
  const int64_t num_skipped = done->best.num_skipped_tokens;
  if (num_skipped > 0) details["skipped_tokens"] = num_skipped;  // LoRAX's
  out.raw(",\"generated_text\":").string(done->best.text);
  out.raw(",\"details\":").raw(dump_json(details)).raw("}");
  return line;
}

AdapterAsk adapter_of(const GenerateParameters& parameters) {
  return {.id = parameters.adapter_id,
          .source = parameters.adapter_source,
          .token = parameters.api_token,
          .merged = merged_adapters_of(parameters)};
}

// What the events of one stream share.
class NativeStream {
 public:
  NativeStream(std::shared_ptr<Scope> scope, const GenerateBody& body)
      : scope_(std::move(scope)),
        inputs_(body.inputs),
        parameters_(body.parameters.value_or(default_parameters())) {}

  std::shared_ptr<Generation> start() const {
    scope_->begin_generation(1);
    check_parameters(parameters_, inputs_, true, scope_->options());
    ipc::GenerateRequest asked = to_daemon(parameters_, inputs_, true, scope_->options());
    choose_adapter(*scope_, adapter_of(parameters_), asked);
    return std::make_shared<Generation>(scope_, std::vector{std::move(asked)});
  }

  void on_event(Generation::Event& event, EventWriter& events) {
    ipc::DoneEvent* done = event.reply.done ? &*event.reply.done : nullptr;
    const bool is_token = event.reply.token.has_value();
    if (is_token) last_ = std::move(event.reply.token);
    // The last token waits for the end: TGI sends both in one event.
    if (done == nullptr && (!is_token || last_->finish_reason)) return;
    if (!last_) throw ApiError(500, "incomplete_generation_stream", "Incomplete generation stream");
    if (done != nullptr) {
      note_finish(*scope_, *done);
      if (parameters_.return_full_text.value_or(false)) done->best.text.insert(0, inputs_);
    }
    events.send_text(token_event_text(++index_, *last_, done, NumTop(parameters_)));
    scope_->token_written(0);
  }

 private:
  const std::shared_ptr<Scope> scope_;
  const std::string inputs_;
  const GenerateParameters parameters_;
  std::optional<ipc::TokenEvent> last_;
  int64_t index_ = 0;
};

}  // namespace

Response generate(std::shared_ptr<Scope> scope, const GenerateBody& body, bool in_array) {
  const GenerateParameters parameters = body.parameters.value_or(default_parameters());
  const uint64_t best_of = std::max<uint64_t>(parameters.best_of.value_or(1), 1);
  RequestRecord& record = scope->record();
  record.best_of = static_cast<int64_t>(std::min<uint64_t>(best_of, 1 << 20));
  scope->begin_generation(
      std::min(record.best_of, std::max<int64_t>(scope->options().max_best_of, 1)));
  check_parameters(parameters, body.inputs, false, scope->options());
  ipc::GenerateRequest asked = to_daemon(parameters, body.inputs, false, scope->options());
  choose_adapter(*scope, adapter_of(parameters), asked);
  Generation generation(scope, {std::move(asked)});
  const ipc::DoneEvent done = std::move(generation.wait().front());
  note_finish(*scope, done);

  OrderedJson answer = {{"generated_text", done.best.text}};
  if (parameters.details || parameters.decoder_input_details)
    answer["details"] = details_json(done, NumTop(parameters));
  Response response =
      json_response(200, in_array ? OrderedJson::array({std::move(answer)}) : std::move(answer));
  response.headers = timing_headers(*scope, count_utf8_characters(body.inputs));
  return response;
}

Response generate_stream(std::shared_ptr<Scope> scope, const GenerateBody& body) {
  scope->record().stream = true;
  const auto stream = std::make_shared<NativeStream>(scope, body);
  return stream_response(
      {.scope = scope,
       .start = [stream] { return stream->start(); },
       .on_event = [stream](Generation::Event& event,
                            EventWriter& events) { stream->on_event(event, events); },
       .on_end = [](EventWriter&) {},
       .on_error = [](const ApiError& error,
                      EventWriter& events) { events.send(native_error_json(error)); }},
      count_utf8_characters(body.inputs));
}

}  // namespace tgi::http
