// POST /v1/completions
#include "base/json_text.h"
#include "base/utf8.h"
#include "cmd/http/openai_answer.h"
#include "cmd/http/openai_api.h"

namespace tgi::http {
namespace {

// OpenAI's parallel lists, one entry per token.
class TokenLists {
 public:
  // `num_top` alternatives; `offset` is where the first token begins, in characters.
  TokenLists(int64_t num_top, int64_t offset) : num_top_(num_top), offset_(offset) {}

  void add(const ipc::TokenInfo& token, const std::vector<ipc::TokenInfo>* top) {
    tokens_.push_back(token.text);
    logprobs_.push_back(token.logprob ? OrderedJson(*token.logprob) : OrderedJson());
    offsets_.push_back(offset_);
    // Special tokens are not in the text.
    if (!token.special) offset_ += count_utf8_characters(token.text);
    OrderedJson alternatives;  // null: the daemon lists none for prompt tokens
    if (top != nullptr && num_top_ > 0) {
      alternatives = OrderedJson::object();
      for (const ipc::TokenInfo& each : first_of(*top, num_top_)) {
        alternatives[each.text] = each.logprob ? OrderedJson(*each.logprob) : OrderedJson();
      }
    }
    tops_.push_back(std::move(alternatives));
  }

  int64_t offset() const { return offset_; }

  OrderedJson to_json() && {
    return {{"tokens", std::move(tokens_)},
            {"token_logprobs", std::move(logprobs_)},
            {"top_logprobs", std::move(tops_)},
            {"text_offset", std::move(offsets_)}};
  }

 private:
  const int64_t num_top_;
  int64_t offset_;
  OrderedJson tokens_ = OrderedJson::array();
  OrderedJson logprobs_ = OrderedJson::array();
  OrderedJson tops_ = OrderedJson::array();
  OrderedJson offsets_ = OrderedJson::array();
};

OrderedJson sequence_logprobs(const ipc::DoneEvent& done,
                              const ipc::SequenceResult& sequence,
                              int64_t num_top) {
  TokenLists lists(num_top, 0);
  for (const ipc::TokenInfo& token : done.prompt_tokens) lists.add(token, nullptr);
  for (size_t i = 0; i < sequence.tokens.size(); ++i) {
    lists.add(sequence.tokens[i],
              i < sequence.top_tokens.size() ? &sequence.top_tokens[i] : nullptr);
  }
  return std::move(lists).to_json();
}

OrderedJson choice_json(int64_t index,
                        std::string_view text,
                        OrderedJson logprobs,
                        std::string_view finish_reason) {
  return {{"index", index},
          {"text", text},
          {"logprobs", std::move(logprobs)},
          {"finish_reason", finish_reason}};
}

// The n best of a prompt's sequences, in the order of their draws.
std::vector<const ipc::SequenceResult*> best_sequences(const ipc::DoneEvent& done, size_t n) {
  std::vector<const ipc::SequenceResult*> all = in_order(done);
  std::stable_sort(all.begin(), all.end(),
                   [](const auto* a, const auto* b) { return a->mean_logprob > b->mean_logprob; });
  all.resize(std::min(all.size(), n));
  std::sort(all.begin(), all.end(),
            [](const auto* a, const auto* b) { return a->index < b->index; });
  return all;
}

Response whole_answer(Scope& scope, Generation& generation, const CompletionBody& body) {
  const std::vector<ipc::DoneEvent> dones = generation.wait();
  const size_t n = body.n.value_or(1);
  OrderedJson choices = OrderedJson::array();
  UsageCounts usage;
  for (const ipc::DoneEvent& done : dones) {
    usage.add(done);
    for (const ipc::SequenceResult* sequence : best_sequences(done, n)) {
      const std::string_view reason = openai_finish_reason(sequence->finish_reason);
      scope.record().finish_reasons.emplace_back(reason);
      OrderedJson logprobs;
      if (body.logprobs) logprobs = sequence_logprobs(done, *sequence, *body.logprobs);
      choices.push_back(choice_json(static_cast<int64_t>(choices.size()), sequence->text,
                                    std::move(logprobs), reason));
    }
  }
  OrderedJson answer = answer_head("cmpl", "text_completion", body.model, scope.options());
  answer["choices"] = std::move(choices);
  answer["usage"] = usage.to_json();
  Response response = json_response(200, answer);
  response.headers = timing_headers(scope, generation.num_prompt_characters());
  return response;
}

// What the chunks of one stream share.
class Chunks {
 public:
  Chunks(std::shared_ptr<Scope> scope, const CompletionBody& body, size_t num_prompts)
      : scope_(std::move(scope)),
        head_(answer_head("cmpl", "text_completion", body.model, scope_->options())),
        wants_usage_(wants_usage(body)),
        // TGI puts the usage of a prompt into its last chunk.
        usage_in_last_(!body.stream_options && body.n.value_or(1) == 1),
        num_top_(body.logprobs),
        n_(body.n.value_or(1)),
        offsets_(num_prompts * body.n.value_or(1), 0),
        last_(num_prompts) {}

  void on_event(Generation::Event& event, EventWriter& events) {
    if (event.reply.done) {
      usage_.add(*event.reply.done);
      if (last_[event.prompt]) {
        UsageCounts usage;
        usage.add(*event.reply.done);
        const OrderedJson counts = usage.to_json();
        send(event.prompt, *last_[event.prompt], &counts, events);
      }
    }
    if (!event.reply.token) return;
    if (event.reply.token->finish_reason && usage_in_last_) {
      last_[event.prompt] = std::move(event.reply.token);
    } else {
      send(event.prompt, *event.reply.token, nullptr, events);
    }
  }

  void on_end(EventWriter& events) const {
    if (!wants_usage_) return;
    OrderedJson last = head_;
    last["choices"] = OrderedJson::array();
    last["usage"] = usage_.to_json();
    events.send(last);
  }

 private:
  void send(size_t prompt,
            const ipc::TokenEvent& token,
            const OrderedJson* usage,
            EventWriter& events) {
    const size_t index = prompt * n_ + static_cast<size_t>(token.index);
    // As in TGI a choice that goes on has an empty reason, not null.
    std::string_view reason;
    if (token.finish_reason) {
      reason = openai_finish_reason(*token.finish_reason);
      scope_->record().finish_reasons.emplace_back(reason);
    }
    std::string logprobs = "null";
    if (num_top_) {
      TokenLists lists(*num_top_, offsets_[index]);
      lists.add(token.token, &token.top_tokens);
      offsets_[index] = lists.offset();
      logprobs = dump_json(std::move(lists).to_json());
    }
    // One chunk per token, so it is written straight into the line.
    std::string line;
    line.reserve(open_head_.size() + 160);
    JsonText out(line);
    out.raw(open_head_).raw(",\"choices\":[{\"index\":").number(index);
    out.raw(",\"text\":").string(token.text).raw(",\"logprobs\":").raw(logprobs);
    out.raw(",\"finish_reason\":").string(reason).raw("}]");
    if (usage != nullptr) out.raw(",\"usage\":").raw(dump_json(*usage));
    out.raw("}");
    events.send_text(line);
    scope_->token_written(index);
  }

  const std::shared_ptr<Scope> scope_;
  const OrderedJson head_;
  const std::string open_head_ = open_object(head_);
  const bool wants_usage_;
  const bool usage_in_last_;
  const std::optional<uint32_t> num_top_;
  const size_t n_;
  std::vector<int64_t> offsets_;                      // of the next token of each choice
  std::vector<std::optional<ipc::TokenEvent>> last_;  // of each prompt, waiting for its usage
  UsageCounts usage_;
};

}  // namespace

Response completions(std::shared_ptr<Scope> scope, const CompletionBody& body) {
  const int64_t num_sequences = std::max(body.best_of.value_or(1), body.n.value_or(1));
  scope->record().n = body.n.value_or(1);
  scope->record().best_of = num_sequences;
  scope->record().stream = body.stream;
  const int64_t num_asked =
      body.prompt.is_array() && !body.prompt.empty() && !body.prompt.front().is_number()
          ? static_cast<int64_t>(body.prompt.size())
          : 1;
  const ApiOptions& options = scope->options();
  scope->begin_generation(std::min(num_asked, options.max_client_batch_size) *
                          std::min(num_sequences, options.max_choices));
  std::vector<ipc::GenerateRequest> asked = to_daemon(body, options);
  const size_t num_prompts = asked.size();
  const auto generation = std::make_shared<Generation>(scope, std::move(asked));
  if (!body.stream) return whole_answer(*scope, *generation, body);
  generation->wait_until_accepted();
  const auto chunks = std::make_shared<Chunks>(scope, body, num_prompts);
  return stream_answer(
      scope, generation,
      [chunks](Generation::Event& event, EventWriter& events) { chunks->on_event(event, events); },
      [chunks](EventWriter& events) { chunks->on_end(events); });
}

}  // namespace tgi::http
