// POST /v1/completions
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_text.h"
#include "base/utf8.h"
#include "cmd/http/openai_answer.h"
#include "cmd/http/openai_api.h"
#include "cmd/http/token_json.h"

namespace tgi::http {
namespace {

// As OpenAI's older API spells it: bytes that are no character alone are told as such.
std::string token_name(const ipc::TokenInfo& token) {
  if (token.bytes.empty()) return token.text;
  std::string out = "bytes:";
  for (const uint8_t byte : token.bytes) out += fmt::format("\\x{:02x}", byte);
  return out;
}

// OpenAI's parallel lists, one entry per token.
class TokenLists {
 public:
  // `num_top` alternatives; `offset` is where the first token begins, in characters. `text`: what
  // the tokens make up, to find special tokens in it (optional: they are taken as not in it).
  TokenLists(int64_t num_top, int64_t offset, std::string_view text)
      : num_top_(num_top), offset_(offset), has_text_(!text.empty()), rest_(text) {}

  void add(const ipc::TokenInfo& token, const std::vector<ipc::TokenInfo>* top) {
    tokens_.push_back(token_name(token));
    logprobs_.push_back(logprob_json(token.logprob));
    offsets_.push_back(offset_);
    pass(token);
    OrderedJson alternatives;  // null: there is nothing that the first token of a prompt is from
    if (top != nullptr && num_top_ > 0 && token.logprob) {
      alternatives = OrderedJson::object();
      // The first and likeliest of several with one name counts. The token itself is always there.
      for (const ipc::TokenInfo& each : first_of(*top, num_top_)) {
        alternatives.emplace(token_name(each), logprob_json(each.logprob));
      }
      alternatives.emplace(token_name(token), logprob_json(token.logprob));
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
  void pass(const ipc::TokenInfo& token) {
    const std::string raw =
        token.bytes.empty() ? token.text : std::string(token.bytes.begin(), token.bytes.end());
    std::string_view piece = raw;
    if (!has_text_ || !rest_.starts_with(piece)) {
      if (token.special) return;
      // The first token of a text may have a space that is not written there.
      const bool drops_space = has_text_ && piece.starts_with(' ') && offset_ == 0;
      if (drops_space && rest_.starts_with(piece.substr(1))) piece.remove_prefix(1);
    }
    rest_.remove_prefix(std::min(piece.size(), rest_.size()));
    offset_ += count_utf8_characters(piece);
  }

  const int64_t num_top_;
  int64_t offset_;
  const bool has_text_;
  std::string_view rest_;
  OrderedJson tokens_ = OrderedJson::array();
  OrderedJson logprobs_ = OrderedJson::array();
  OrderedJson tops_ = OrderedJson::array();
  OrderedJson offsets_ = OrderedJson::array();
};

OrderedJson sequence_logprobs(const ipc::DoneEvent& done,
                              const ipc::SequenceResult& sequence,
                              int64_t num_top) {
  TokenLists lists(num_top, 0, sequence.text);
  const auto add_all = [&](const std::vector<ipc::TokenInfo>& tokens,
                           const std::vector<std::vector<ipc::TokenInfo>>& tops) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      lists.add(tokens[i], i < tops.size() ? &tops[i] : nullptr);
    }
  };
  add_all(done.prompt_tokens, done.prompt_top_tokens);
  add_all(sequence.tokens, sequence.top_tokens);
  return std::move(lists).to_json();
}

OrderedJson choice_json(int64_t index,
                        const ipc::DoneEvent& done,
                        const ipc::SequenceResult& sequence,
                        const std::optional<uint32_t>& num_top,
                        Scope& scope) {
  const std::string_view reason = openai_finish_reason(sequence.finish_reason);
  scope.record().finish_reasons.emplace_back(reason);
  return {{"index", index},
          {"text", sequence.text},
          {"logprobs", num_top ? sequence_logprobs(done, sequence, *num_top) : OrderedJson()},
          {"finish_reason", reason}};
}

Response whole_answer(Scope& scope, Generation& generation, const CompletionBody& body) {
  const std::vector<ipc::DoneEvent> dones = generation.wait();
  const size_t n = body.n.value_or(1);
  OrderedJson choices = OrderedJson::array();
  UsageCounts usage;
  for (const ipc::DoneEvent& done : dones) {
    usage.add(done, n);
    for (const ipc::SequenceResult* sequence : choices_of(done, n)) {
      choices.push_back(
          choice_json(static_cast<int64_t>(choices.size()), done, *sequence, body.logprobs, scope));
    }
  }
  OrderedJson answer = answer_head("cmpl", "text_completion", scope);
  answer["choices"] = std::move(choices);
  answer["usage"] = usage.to_json();
  return generated_response(scope, generation, answer);
}

// What the chunks of one stream share.
class Chunks {
 public:
  Chunks(std::shared_ptr<Scope> scope, const CompletionBody& body, size_t num_prompts)
      : scope_(std::move(scope)),
        head_(answer_head("cmpl", "text_completion", *scope_)),
        wants_usage_(wants_usage(body)),
        // TGI puts the usage of a prompt into its last chunk.
        usage_in_last_(!body.stream_options && body.n.value_or(1) == 1),
        num_top_(body.logprobs),
        has_generated_(body.max_tokens.value_or(1) > 0),
        n_(body.n.value_or(1)),
        copies_(choices_of_sequence(is_greedy(body) ? 1 : n_, n_)),
        offsets_(num_prompts * body.n.value_or(1), 0),
        last_(num_prompts),
        has_tokens_(num_prompts, false) {}

  void on_event(Generation::Event& event, EventWriter& events) {
    if (event.reply.done) {
      usage_.add(*event.reply.done, n_);
      UsageCounts usage;
      usage.add(*event.reply.done, n_);
      const OrderedJson counts = usage_in_last_ ? usage.to_json() : OrderedJson();
      if (!has_tokens_[event.prompt]) {
        send_whole(event.prompt, *event.reply.done, counts, events);
      } else if (last_[event.prompt]) {
        send(event.prompt, 0, *last_[event.prompt], &counts, events);
      }
    }
    if (!event.reply.token) return;
    has_tokens_[event.prompt] = true;
    if (event.reply.token->finish_reason && usage_in_last_) {
      last_[event.prompt] = std::move(event.reply.token);
      return;
    }
    for (size_t i = 0; i < copies_; ++i) {
      send(event.prompt, i, *event.reply.token, nullptr, events);
    }
  }

  void on_end(EventWriter& events) const {
    if (wants_usage_) events.send(usage_chunk(head_, usage_));
  }

 private:
  // What the daemon did not stream, since the prompt's tokens come before all others.
  void send_whole(size_t prompt,
                  const ipc::DoneEvent& done,
                  const OrderedJson& usage,
                  EventWriter& events) {
    size_t index = prompt * n_;
    for (const ipc::SequenceResult* sequence : choices_of(done, n_)) {
      OrderedJson chunk = head_;
      chunk["choices"] = OrderedJson::array(
          {choice_json(static_cast<int64_t>(index), done, *sequence, num_top_, *scope_)});
      if (!usage.is_null()) chunk["usage"] = usage;
      events.send(chunk);
      scope_->token_written(index++);
    }
  }

  // `copy`: of the sequence, one for each choice that it makes.
  void send(size_t prompt,
            size_t copy,
            const ipc::TokenEvent& token,
            const OrderedJson* usage,
            EventWriter& events) {
    const size_t index = prompt * n_ + static_cast<size_t>(token.index) + copy;
    std::string_view reason;
    if (token.finish_reason) {
      reason = openai_finish_reason(*token.finish_reason);
      scope_->record().finish_reasons.emplace_back(reason);
    }
    std::string logprobs = "null";
    if (num_top_ && has_generated_) {
      TokenLists lists(*num_top_, offsets_[index], "");
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
    out.raw(",\"finish_reason\":");
    reason.empty() ? out.raw("null") : out.string(reason);
    out.raw("}]");
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
  const bool has_generated_;  // tokens; else the events are of the prompt alone
  const size_t n_;
  const size_t copies_;                               // of each sequence
  std::vector<int64_t> offsets_;                      // of the next token of each choice
  std::vector<std::optional<ipc::TokenEvent>> last_;  // of each prompt, waiting for its usage
  std::vector<bool> has_tokens_;                      // of each prompt: events of tokens came
  UsageCounts usage_;
};

}  // namespace

Response completions(std::shared_ptr<Scope> scope, const CompletionBody& body) {
  const int64_t num_sequences =
      is_greedy(body) ? 1 : std::max(body.best_of.value_or(1), body.n.value_or(1));
  scope->set_terms(completion_terms());
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
  choose_by_model(*scope, body, asked);
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
