// Answers that are texts of a grammar: the guide that the engine asks, made of a matcher.
#pragma once

#include <memory>

#include "engine/guide/canonical_tokens.h"
#include "engine/guide/compiled_grammar.h"
#include "engine/guide/token_guide.h"
#include "engine/guide/vocabulary.h"

namespace tgi::guide {

// `canonical`: (optional) of a text that is forced; without it no tokens are.
class GrammarGuidance final : public Guidance {
 public:
  GrammarGuidance(std::shared_ptr<const CompiledGrammar> grammar,
                  std::shared_ptr<const Vocabulary> vocabulary,
                  CanonicalTokens canonical = {});

  std::unique_ptr<TokenGuide> start() const override;
  int64_t num_enough_tokens() const override { return num_enough_tokens_; }

 private:
  const std::shared_ptr<const CompiledGrammar> grammar_;
  const std::shared_ptr<const Vocabulary> vocabulary_;
  const CanonicalTokens canonical_;
  const int64_t num_enough_tokens_;
};

}  // namespace tgi::guide
