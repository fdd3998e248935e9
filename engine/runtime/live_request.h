// A request while the engine works on it: its sequences, the text they have become, and what its
// reader has been told. Belongs to the engine thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/dialect/answer_reader.h"
#include "engine/runtime/response_sink.h"
#include "engine/sched/request.h"
#include "engine/sched/sequence.h"
#include "engine/tensor/batch.h"
#include "engine/text/text_stream.h"
#include "engine/text/tokenizer.h"
#include "ipc/protocol.h"

namespace tgi {

struct LiveRequest;

struct LiveSequence : Sequence {
  LiveSequence(LiveRequest& owner, const Tokenizer& tokenizer, uint32_t index);

  // What one more sampled token is worth: appends to `result` and ends the sequence when a stop
  // condition holds. Returns the event for the reader. `is_skipped`: it was drafted. REQUIRES: the
  // guide has accepted it.
  ipc::TokenEvent take(const SampledToken& sampled,
                       bool is_skipped,
                       const std::vector<int32_t>& eos_token_ids);

  // What was said of tools and turned out to be none becomes text.
  void settle_calls();

  LiveRequest* live;
  const Tokenizer* tokenizer;
  std::unique_ptr<dialect::AnswerReader> reader;  // (optional)
  TextStream stream;
  ipc::SequenceResult result;
  double logprob_sum = 0;
  bool echoed = false;  // echo_text went out with the first token
  bool ended = false;   // a stop condition holds; the scheduler is told by the engine
};

struct LiveRequest {
  // The sink comes later: whatever is thrown here, there is somebody left to tell.
  LiveRequest(std::unique_ptr<Request> asked, const Tokenizer& tokenizer);

  int num_steps_in_flight() const;

  // The log-probability of prompt token `at`, and what was most likely in its place.
  void take_score(size_t at, float logprob, std::span<const TokenScore> top_tokens);

  // Of a part of the prompt that begins at token `first_token`: what came back for it, in order.
  void take_pooled(int32_t first_token, bool is_last, std::span<const std::vector<float>> parts);

  // All sequences have ended: the answer, the best by mean log-probability first.
  ipc::DoneEvent make_done(Clock::time_point now);

  std::unique_ptr<Request> request;
  std::unique_ptr<ResponseSink> sink;
  std::vector<std::unique_ptr<LiveSequence>> sequences;
  std::vector<ipc::TokenInfo> prompt_tokens;                   // with prompt_logprobs
  std::vector<std::vector<ipc::TokenInfo>> prompt_top_tokens;  // and with top_n_tokens
  std::vector<std::vector<float>> pooled;  // one for each of Request::pooled, of what is computed
  int32_t num_ended = 0;
  int32_t num_unacknowledged = 0;  // token events the reader has not taken
  bool paused = false;
  std::unique_ptr<Error> failure;  // (optional) found in a step that retires: its end
  Clock::time_point paused_at;
  Clock::time_point first_scheduled_at;
  Clock::time_point first_token_at;
  Clock::time_point last_token_at;
};

// One token alone, for lists of tokens.
ipc::TokenInfo describe_token(const Tokenizer& tokenizer,
                              int32_t id,
                              std::optional<double> logprob);

}  // namespace tgi
