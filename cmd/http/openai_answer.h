// The parts that answers of both OpenAI routes are made of.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cmd/http/generation.h"
#include "cmd/http/service.h"
#include "cmd/http/sse.h"

namespace tgi::http {

using ipc::OrderedJson;

// The members before `choices`: id, object, created, model (or the adapter that was named in its
// place), system_fingerprint.
OrderedJson answer_head(std::string_view id_prefix, std::string_view object, const Scope& scope);

// The text of an object without its closing bracket, for more members to follow.
std::string open_object(const OrderedJson& object);

std::string_view openai_finish_reason(ipc::FinishReason reason);

// The bytes of the token, also where its text can't tell them.
OrderedJson bytes_of(const ipc::TokenInfo& token);

// OpenAI lists the tokens whose bytes make up the content: not the end token, nor other special
// ones.
bool is_listed(const ipc::TokenInfo& token);

// {token, logprob, bytes, top_logprobs}, with `num_top` of the alternatives.
OrderedJson token_logprobs(const ipc::TokenInfo& token,
                           const std::vector<ipc::TokenInfo>& top_tokens,
                           int64_t num_top);
// The same of all that are listed.
OrderedJson listed_logprobs(const ipc::SequenceResult& sequence, int64_t num_top);

struct UsageCounts {
  int64_t num_prompt_tokens = 0;
  int64_t num_cached_tokens = 0;
  int64_t num_generated_tokens = 0;
  int64_t num_reasoning_tokens = 0;  // of the generated

  // `n` choices were asked for.
  void add(const ipc::DoneEvent& done, size_t n);
  OrderedJson to_json() const;
};

// How many choices one sequence makes: all `n` when it is greedy, since they are the same.
size_t choices_of_sequence(size_t num_sequences, size_t n);

// The sequences in the order of their draws.
std::vector<const ipc::SequenceResult*> in_order(const ipc::DoneEvent& done);

// One for each of `n` choices, in the order of the draws; of more than n the best.
std::vector<const ipc::SequenceResult*> choices_of(const ipc::DoneEvent& done, size_t n);

// The last chunk of a stream that was asked for its usage: `head` without choices.
OrderedJson usage_chunk(OrderedJson head, const UsageCounts& usage);

// A 200 whose events `on_event` makes of the daemon's; ends with [DONE], also after an error.
// REQUIRES: generation->wait_until_accepted().
Response stream_answer(std::shared_ptr<Scope> scope,
                       std::shared_ptr<Generation> generation,
                       std::function<void(Generation::Event& event, EventWriter& events)> on_event,
                       std::function<void(EventWriter& events)> on_end);

}  // namespace tgi::http
