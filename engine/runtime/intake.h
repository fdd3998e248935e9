// From what a client sent to an immutable Request: limits, chat template, tokens. Every refusal
// happens here, typed and with numbers. Const after construction: prepare may run on several
// threads at once.
#pragma once

#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engine/dialect/dialect.h"
#include "engine/runtime/chat_model.h"
#include "engine/sched/request.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"
#include "ipc/protocol.h"

namespace tgi {

class GuideCompiler;

// Throws kInvalidArgument for a token behind the vocabulary: a checkpoint that sees has some for
// images, which its tokenizer knows. `text`: "the prompt", as the error calls it.
void refuse_image_tokens(const Tokenizer& tokenizer,
                         const std::vector<int32_t>& ids,
                         int32_t vocab_size,
                         const std::string& text);

struct Limits {
  int32_t max_total_tokens = 0;  // prompt and output together
  int32_t max_best_of = 16;
  int32_t max_stop_sequences = 16;
  int32_t max_top_n_tokens = 20;
  std::optional<uint64_t> seed{};  // of requests that name none; empty: another one each time
  int32_t max_drafts = 0;          // of a sequence in a step
  int32_t max_logit_bias = std::numeric_limits<int32_t>::max();  // entries: what the device holds
  std::vector<int32_t> suppressed_ids{};  // that no request may draw; sorted, of the vocabulary
};

class Intake {
 public:
  // All must outlive it; the template may be null, and the compiler, without which no answer is
  // guided.
  Intake(const Limits& limits,
         const Tokenizer& tokenizer,
         const ChatTemplate* chat_template,
         int32_t vocab_size,
         GuideCompiler* guides = nullptr,
         const dialect::Dialects& dialects = {});

  // Throws kInvalidArgument. The id is unique within this process.
  std::unique_ptr<Request> prepare(const ipc::GenerateRequest& asked) const;

  ipc::TokenizeResult tokenize(const ipc::TokenizeParams& asked) const;
  // Special tokens as they are written.
  std::string detokenize(const std::vector<int32_t>& ids) const;

  const Limits& limits() const { return limits_; }

 private:
  const ChatModel& chat() const;  // throws kTemplate when there is no template
  std::vector<int32_t> encode(std::string_view text, bool add_special) const;
  std::string text_of(const std::vector<int32_t>& ids) const;
  std::vector<int32_t> prompt_ids(const ipc::GenerateRequest& asked,
                                  ChatModel::Prompt& prompt) const;
  void truncate(const ipc::GenerateParams& params, Request& request) const;
  void check_length(const ipc::GenerateParams& params, Request& request) const;
  void require_length(const ipc::GenerateParams& params, Request& request) const;

  const Limits limits_;
  const Tokenizer& tokenizer_;
  std::optional<ChatModel> chat_;
  const int32_t vocab_size_;
  GuideCompiler* const guides_;
};

// Unique within this process.
uint64_t next_request_id();

// The part of intake that needs no model. Throws kInvalidArgument for the first rule that is
// broken.
SamplingParams resolve_sampling(const ipc::GenerateParams& params, const Limits& limits);

}  // namespace tgi
