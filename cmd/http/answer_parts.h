// An answer as the parts that the model wrote, in their order: reasoning, text, calls of tools. The
// APIs that tell an answer as items or blocks are made of it, whole or while it is written. Belongs
// to the thread of its request.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/protocol.h"

namespace tgi::http {

enum class PartKind { kReasoning, kText, kCall };

struct PartToken {
  ipc::TokenInfo token;
  std::vector<ipc::TokenInfo> top_tokens;
};

struct AnswerPart {
  PartKind kind = PartKind::kText;
  std::string text{};     // of a call its arguments: JSON, an object
  std::string call_id{};  // of a call, as `name`
  std::string name{};
  std::vector<PartToken> tokens{};  // that made up the text; where they are kept
};

// Whom an answer is told to part by part: begin, any number of add, end, then the next part.
class PartReader {
 public:
  virtual ~PartReader() = default;
  virtual void begin(size_t index, const AnswerPart& part) = 0;
  // `tokens`: those of `added`, where they are kept.
  virtual void add(size_t index,
                   const AnswerPart& part,
                   std::string_view added,
                   std::span<const PartToken> tokens) = 0;
  virtual void end(size_t index, const AnswerPart& part) = 0;
};

// Puts the tokens of one sequence together.
class PartBuilder {
 public:
  explicit PartBuilder(bool keeps_tokens) : keeps_tokens_(keeps_tokens) {}

  // `reader` may be null.
  void take(const ipc::TokenEvent& event, PartReader* reader);
  // After the last token. An answer that ended by itself has a text or a call, if an empty text.
  void finish(ipc::FinishReason reason, PartReader* reader);

  const std::vector<AnswerPart>& parts() const { return parts_; }

 private:
  void open(AnswerPart part, PartReader* reader);
  void close(PartReader* reader);
  void add(std::string_view added, std::span<const PartToken> tokens, PartReader* reader);
  std::vector<PartToken> take_tokens(size_t num_bytes);

  const bool keeps_tokens_;
  std::vector<AnswerPart> parts_;
  bool is_open_ = false;            // the last of them
  std::vector<PartToken> pending_;  // since something was told
};

// The same of a sequence that is told as a whole: without tokens.
std::vector<AnswerPart> parts_of(const ipc::SequenceResult& sequence);

}  // namespace tgi::http
