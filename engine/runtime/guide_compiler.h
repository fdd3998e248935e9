// From what a client says of an answer's form to the guidance of its sequences: reads schemas,
// patterns and grammars, compiles them against the model's vocabulary, and keeps those that were
// used last. Thread-safe; a compilation holds up the thread that asks and nobody else's, except of
// those who ask for the same, and a long one gives way to the engine's threads.
#pragma once

#include <cstdint>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/dialect/answer_grammar.h"
#include "engine/guide/token_guide.h"
#include "engine/guide/vocabulary.h"
#include "engine/text/tokenizer.h"
#include "ipc/protocol.h"

namespace tgi {

// What the answers of a request have to be.
struct GuidedForm {
  std::optional<ipc::GuideParams> text;
  dialect::ToolUse tools;
  dialect::AnswerForm::Reasoning reasoning = dialect::AnswerForm::Reasoning::kNone;
  bool marks_text = false;  // AnswerForm's
  std::optional<int64_t> max_reasoning_tokens;
};

// Throws what GuideCompiler::compile would for this form, whatever the model's vocabulary.
void check_guide(const ipc::GuideParams& asked);

class GuideCompiler {
 public:
  static constexpr size_t kMaxKept = 256;
  static constexpr size_t kMaxBytes = size_t{4} << 20;  // of what a client sends

  // `tokenizer` must outlive it. The vocabulary is made when the first guide is asked for.
  GuideCompiler(const Tokenizer& tokenizer,
                int32_t vocab_size,
                std::vector<int32_t> end_token_ids,
                const dialect::Dialects& dialects = {});

  // Throws kInvalidArgument or kUnsupported, with the place in what the client sent.
  std::shared_ptr<const Guidance> compile(const GuidedForm& asked);

  // The same answers, or any, of at least so many tokens.
  std::shared_ptr<const Guidance> at_least(int64_t min_tokens,
                                           std::shared_ptr<const Guidance> guidance);

  // Nothing can be asked of a tokenizer whose tokens have no bytes of their own: compile throws
  // kUnsupported.
  bool has_vocabulary() const { return has_vocabulary_; }

  // Makes the vocabulary and the masks that many forms share, ahead of the first request. Takes
  // some tens of milliseconds. REQUIRES: has_vocabulary().
  void warm_up();

  struct Counts {
    int64_t num_compiled = 0;
    int64_t num_found = 0;  // that were there already
  };
  Counts counts() const;

 private:
  using Compiled = std::shared_ptr<const Guidance>;
  struct Entry {
    std::shared_future<Compiled> compiled;
    std::list<std::string>::iterator use;  // in uses_
  };

  std::shared_ptr<const guide::Vocabulary> vocabulary();
  Compiled compiled(const GuidedForm& asked);
  Compiled make(const GuidedForm& asked);
  Compiled make_here(const GuidedForm& asked);

  const Tokenizer& tokenizer_;
  const int32_t vocab_size_;
  const std::vector<int32_t> end_token_ids_;
  const dialect::Dialects dialects_;
  const dialect::IsSpecialToken is_special_;
  const bool has_vocabulary_;
  std::once_flag vocabulary_made_;
  std::shared_ptr<const guide::Vocabulary> vocabulary_;

  mutable std::mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;  // by what was asked; guarded by mutex_
  std::list<std::string> uses_;                     // the last used first; guarded by mutex_
  Counts counts_;                                   // guarded by mutex_
};

}  // namespace tgi
