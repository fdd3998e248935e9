// Answers that are texts of a grammar: the guide that the engine asks, made of a matcher.
#pragma once

#include <memory>

#include "engine/guide/compiled_grammar.h"
#include "engine/guide/token_guide.h"
#include "engine/guide/vocabulary.h"

namespace tgi::guide {

class GrammarGuidance final : public Guidance {
 public:
  GrammarGuidance(std::shared_ptr<const CompiledGrammar> grammar,
                  std::shared_ptr<const Vocabulary> vocabulary);

  std::unique_ptr<TokenGuide> start() const override;
  int64_t num_enough_tokens() const override { return num_enough_tokens_; }

 private:
  const std::shared_ptr<const CompiledGrammar> grammar_;
  const std::shared_ptr<const Vocabulary> vocabulary_;
  const int64_t num_enough_tokens_;
};

}  // namespace tgi::guide
