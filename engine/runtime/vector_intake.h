// From texts that a client sent to requests for hidden states, and from these to its answer. Const
// after construction: any thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/runtime/response_sink.h"
#include "engine/sched/request.h"
#include "engine/text/chat_template.h"
#include "engine/text/token_pairs.h"
#include "engine/text/tokenizer.h"
#include "engine/vectors/vector_head.h"
#include "ipc/vectors.h"

namespace tgi {

// What came of one text.
struct PooledText {
  std::vector<std::vector<float>> pooled;
  int64_t num_tokens = 0;
};

class VectorIntake {
 public:
  // They outlive it. `chat_template` (optional) is needed where the head's texts are messages; else
  // kInvalidArgument is thrown. `max_tokens`: of a text, those that mark its ends included.
  VectorIntake(const VectorHead& head,
               const Tokenizer& tokenizer,
               const ChatTemplate* chat_template,
               int32_t vocab_size,
               int32_t num_token_types,
               int64_t max_tokens,
               bool is_causal);

  // One request for each text, without its adapter. Throws kInvalidArgument naming the text and the
  // limit.
  std::vector<std::unique_ptr<Request>> prepare(const ipc::VectorParams& asked) const;

  // REQUIRES: one of each text, in order.
  ipc::EmbedResult embed(const ipc::VectorParams& asked, std::span<const PooledText> texts) const;
  ipc::ClassifyResult classify(const ipc::VectorParams& asked,
                               std::span<const PooledText> texts) const;

  const VectorHead& head() const { return head_; }
  int64_t max_tokens() const { return max_tokens_; }

 private:
  std::string prompt_of(const ipc::VectorParams& asked) const;
  CutSide side_of(const ipc::VectorParams& asked) const;
  std::vector<size_t> kept_of(const TypedIds& whole, const ipc::VectorParams& asked) const;
  TypedIds encode(const ipc::TextInput& input,
                  const std::string& prompt,
                  const ipc::VectorParams& asked,
                  const std::string& name) const;
  TypedIds encode_messages(const ipc::TextInput& input,
                           const std::string& prompt,
                           const ipc::VectorParams& asked) const;
  bool writes_texts(bool is_pair) const;
  std::string write_messages(const std::string& prompt,
                             const std::string& text,
                             const std::optional<std::string>& pair) const;
  ipc::TextScores scores_of(const ipc::VectorParams& asked,
                            const ipc::TextInput& input,
                            const PooledText& text) const;
  std::vector<ipc::EntityInfo> entities_of(const std::string& text,
                                           const std::vector<std::vector<float>>& rows,
                                           const ipc::VectorParams& asked) const;

  const VectorHead& head_;
  const Tokenizer& tokenizer_;
  const ChatTemplate* const chat_template_;  // (optional)
  const int32_t vocab_size_;
  const int32_t num_token_types_;
  const int64_t max_tokens_;
  const bool is_causal_;
  bool takes_single_ = true;  // else only pairs are written by the chat template
};

// Gathers what comes of the texts of one request. `done` is called once, by the engine's thread,
// when the last has come or one has failed.
class PooledTexts : public std::enable_shared_from_this<PooledTexts> {
 public:
  using Done = std::function<void(std::vector<PooledText>&& texts, const Error* error)>;

  PooledTexts(size_t count, Done done);

  // For text `index`.
  std::unique_ptr<ResponseSink> sink(size_t index);

 private:
  class Sink;
  void take(size_t index, std::vector<std::vector<float>>&& pooled, int64_t num_tokens);
  void fail(const Error& error);

  std::mutex mutex_;
  std::vector<PooledText> texts_;
  size_t num_left_;
  Done done_;  // empty once it was called
};

}  // namespace tgi
