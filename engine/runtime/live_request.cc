#include "engine/runtime/live_request.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/shortest_double.h"
#include "base/utf8.h"

namespace tgi {
namespace {

double millis_between(Clock::time_point from, Clock::time_point to) {
  return from.time_since_epoch().count() == 0
             ? 0
             : std::chrono::duration<double, std::milli>(to - from).count();
}

// JSON has no infinities: a token that can't be drawn has no log-probability to show.
std::optional<double> finite(float logprob) {
  return std::isfinite(logprob) ? std::optional<double>(shortest_double(logprob)) : std::nullopt;
}

ipc::TokenInfo describe(const Tokenizer& tokenizer, const TokenScore& token) {
  return describe_token(tokenizer, token.id, finite(token.logprob));
}

// A part of a call to the call it belongs to.
void add_to_calls(const ipc::ToolCall& added, std::vector<ipc::ToolCall>& calls) {
  if (static_cast<size_t>(added.index) == calls.size()) {
    calls.push_back(added);
  } else {
    calls[static_cast<size_t>(added.index)].arguments += added.arguments;
  }
}

// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014): seeds that lie apart.
uint64_t seed_of_sequence(uint64_t seed, uint32_t index) {
  uint64_t z = seed + index * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

}  // namespace

ipc::TokenInfo describe_token(const Tokenizer& tokenizer,
                              int32_t id,
                              std::optional<double> logprob) {
  ipc::TokenInfo out{.id = id, .text{}, .logprob = logprob, .special = tokenizer.is_special(id)};
  tokenizer.append_bytes(id, false, out.text);
  if (is_valid_utf8(out.text)) return out;
  out.bytes.assign(out.text.begin(), out.text.end());
  std::string raw = std::exchange(out.text, {});
  drain_utf8(raw, true, out.text);
  return out;
}

LiveSequence::LiveSequence(LiveRequest& owner, const Tokenizer& text_tokenizer, uint32_t index)
    : live(&owner),
      tokenizer(&text_tokenizer),
      reader(owner.request->reading == nullptr
                 ? nullptr
                 : std::make_unique<dialect::AnswerReader>(owner.request->reading)),
      stream(text_tokenizer, owner.request->stop, owner.request->include_stop_text, reader.get()) {
  request = owner.request.get();
  speculation.max_drafts = request->max_drafts;
  sampling = request->sampling;
  // Each draws by a seed of its own, so that it can be repeated alone.
  if (index > 0) sampling.seed = seed_of_sequence(sampling.seed, index);
  if (sampling.do_sample) result.draw_seed = sampling.seed;
  if (request->guidance != nullptr) guide = request->guidance->start();
  result.index = index;
  token_ids.reserve(request->prompt_ids.size() + static_cast<size_t>(request->max_new_tokens));
  token_ids = request->prompt_ids;
  num_prompt_tokens = num_tokens();
}

ipc::TokenEvent LiveSequence::take(const SampledToken& sampled,
                                   bool is_skipped,
                                   const std::vector<int32_t>& eos_token_ids) {
  ipc::TokenEvent event;
  event.index = result.index;
  // Asked for the prompt alone: what was drawn at its end is not of the answer.
  if (request->max_new_tokens == 0) {
    ended = true;
    event.finish_reason = result.finish_reason;
    return event;
  }
  const int32_t id = sampled.token.id;
  event.token = describe(*tokenizer, sampled.token);
  event.token.skipped = is_skipped;
  if (is_skipped) ++result.num_skipped_tokens;
  for (const TokenScore& top : sampled.top_tokens)
    event.top_tokens.push_back(describe(*tokenizer, top));
  ++result.num_generated_tokens;
  if (reader != nullptr && reader->is_reasoning()) ++result.num_reasoning_tokens;
  logprob_sum += sampled.token.logprob;

  // Under guidance an end token is drawn where the answer is complete and nowhere else.
  const bool heeds_eos = !request->ignore_eos || guide != nullptr;
  const bool is_eos =
      heeds_eos && std::find(eos_token_ids.begin(), eos_token_ids.end(), id) != eos_token_ids.end();
  event.token.special = event.token.special || is_eos;  // whatever the tokenizer calls it
  const bool is_over = guide != nullptr && guide->is_over();
  const bool stopped = !is_eos && stream.push(id, event.text);
  if (stopped) {
    ended = true;
    result.finish_reason = ipc::FinishReason::kStopSequence;
    result.stop_sequence = *stream.matched_stop();
  } else if (is_eos || is_over) {
    ended = true;
    result.finish_reason = ipc::FinishReason::kEosToken;
  }
  // As in TGI, a sequence that is as long as it may be ends by length whatever its last token was;
  // but not one of which it is known that it is whole.
  if (result.num_generated_tokens >= request->max_new_tokens && !stopped && !is_over) {
    ended = true;
    result.finish_reason = ipc::FinishReason::kLength;
  }
  if (ended && !stopped) {
    stream.finish(event.text);
    // A stop string that only the held-back tail completed.
    if (stream.matched_stop() != nullptr) {
      result.finish_reason = ipc::FinishReason::kStopSequence;
      result.stop_sequence = *stream.matched_stop();
    }
  }
  if (ended) event.finish_reason = result.finish_reason;
  result.text += event.text;
  if (reader != nullptr) {
    reader->take(event);
    result.reasoning += event.reasoning;
    for (const ipc::ToolCall& added : event.tool_calls) add_to_calls(added, result.tool_calls);
    if (ended) settle_calls();
  }
  if (request->details) result.tokens.push_back(event.token);
  if (sampling.top_n_tokens > 0) result.top_tokens.push_back(event.top_tokens);
  return event;
}

void LiveSequence::settle_calls() {
  const auto& broken = reader->broken_calls();
  for (auto call = broken.rbegin(); call != broken.rend(); ++call) {
    result.text.insert(std::min(call->at, result.text.size()), call->written);
    result.tool_calls.erase(result.tool_calls.begin() + call->index);
  }
  for (size_t i = 0; i < result.tool_calls.size(); ++i) {
    result.tool_calls[i].index = static_cast<int64_t>(i);
  }
}

LiveRequest::LiveRequest(std::unique_ptr<Request> asked, const Tokenizer& tokenizer)
    : request(std::move(asked)), pooled(request->pooled.size()) {
  for (int32_t i = 0; i < request->best_of; ++i) {
    sequences.push_back(std::make_unique<LiveSequence>(*this, tokenizer, static_cast<uint32_t>(i)));
  }
  if (!request->prompt_logprobs) return;
  for (const int32_t id : request->prompt_ids) {
    prompt_tokens.push_back(describe_token(tokenizer, id, std::nullopt));
  }
  if (request->sampling.top_n_tokens > 0) prompt_top_tokens.resize(prompt_tokens.size());
}

void LiveRequest::take_score(size_t at, float logprob, std::span<const TokenScore> top_tokens) {
  if (at >= prompt_tokens.size()) return;
  prompt_tokens[at].logprob = finite(logprob);
  if (at >= prompt_top_tokens.size()) return;
  prompt_top_tokens[at].clear();
  for (const TokenScore& top : top_tokens) {
    prompt_top_tokens[at].push_back(describe(*sequences.front()->tokenizer, top));
  }
}

void LiveRequest::take_pooled(int32_t first_token,
                              bool is_last,
                              std::span<const std::vector<float>> parts) {
  using Rows = PooledInput::Rows;
  // At the beginning, also once more after a preemption.
  if (first_token == 0) pooled.assign(request->pooled.size(), {});
  size_t next = 0;
  for (size_t i = 0; i < pooled.size(); ++i) {
    const PooledInput& input = request->pooled[i];
    if (input.rows == Rows::kFirst && first_token > 0) continue;
    if (input.rows == Rows::kLast && !is_last) continue;
    const std::vector<float>& part = parts[next++];
    std::vector<float>& sum = pooled[i];
    if (sum.empty() || input.pooling == Pooling::kRows) {
      sum.insert(sum.end(), part.begin(), part.end());
      continue;
    }
    for (size_t col = 0; col < sum.size(); ++col) {
      sum[col] =
          input.pooling == Pooling::kMax ? std::max(sum[col], part[col]) : sum[col] + part[col];
    }
  }
}

int LiveRequest::num_steps_in_flight() const {
  int count = 0;
  for (const auto& sequence : sequences) count += sequence->num_steps_in_flight;
  return count;
}

ipc::DoneEvent LiveRequest::make_done(Clock::time_point now) {
  ipc::DoneEvent done;
  done.num_prompt_tokens = static_cast<int64_t>(request->prompt_ids.size());
  done.num_cached_tokens = sequences.front()->num_cached_tokens;
  done.num_truncated_tokens = request->num_truncated_tokens;
  if (request->sampling.do_sample) done.seed = request->sampling.seed;
  done.prompt_tokens = std::move(prompt_tokens);
  done.prompt_top_tokens = std::move(prompt_top_tokens);
  for (const auto& sequence : sequences) {
    ipc::SequenceResult& result = sequence->result;
    result.text.insert(0, request->echo_text);
    result.mean_logprob = sequence->logprob_sum /
                          static_cast<double>(std::max<int64_t>(result.num_generated_tokens, 1));
    done.others.push_back(std::move(result));
  }
  const auto best = std::max_element(
      done.others.begin(), done.others.end(),
      [](const auto& a, const auto& b) { return a.mean_logprob < b.mean_logprob; });
  done.best = std::move(*best);
  done.others.erase(best);
  done.timings = {.queue_ms = millis_between(request->accepted_at, first_scheduled_at),
                  .time_to_first_token_ms = millis_between(request->accepted_at, first_token_at),
                  .decode_ms = millis_between(first_token_at, last_token_at),
                  .total_ms = millis_between(request->accepted_at, now)};
  return done;
}

}  // namespace tgi
