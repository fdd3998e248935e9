// How far one answer has come in a compiled grammar, and which tokens may be next.
//
// The state is a set of stacks of a pushdown automaton, held as nodes that are shared and never
// changed, so that going back costs nothing. Masks are cached by state for all answers with the
// same grammar and vocabulary. One matcher belongs to one thread at a time; what it shares with
// others is locked inside.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/guide/compiled_grammar.h"
#include "engine/guide/vocabulary.h"

namespace tgi::guide {

//
// Where a grammar becomes too large to be followed (its expressions, the ways to read the text, the
// steps that one of them takes), all of these throw kInvalidArgument, then and until a rollback,
// and only for this matcher.
class Matcher {
 public:
  Matcher(std::shared_ptr<const CompiledGrammar> grammar,
          std::shared_ptr<const Vocabulary> vocabulary);
  ~Matcher();
  Matcher(Matcher&&) noexcept;
  Matcher& operator=(Matcher&&) noexcept;

  // Sets the bit (id % 32 of word id / 32) of every token that may be next, clears all others. The
  // end tokens of the vocabulary may when can_end(). With `max_tokens` >= 0, only tokens after
  // which the answer can be completed in at most max_tokens - 1 more (the end token not counted),
  // as long as there are such.
  void fill_mask(std::span<uint32_t> mask, int64_t max_tokens = -1);

  bool allows(int32_t token_id);

  // False, and nothing changes, when the grammar does not allow the token here.
  [[nodiscard]] bool accept(int32_t token_id);

  // What was too large since then is forgotten. REQUIRES: at most num_tokens().
  void rollback(int32_t num_tokens);
  int32_t num_tokens() const;  // accepted and not taken back

  bool can_end() const;  // what was accepted is a whole text of the grammar
  bool must_end();       // ... and nothing can follow

  // What every continuation begins with, at most so many bytes of it; may be empty.
  std::string forced_text(size_t max_bytes);

  // The least number of tokens that complete the answer from here, end token not counted. An upper
  // bound: found by the shortest text, cut into the longest tokens.
  int64_t min_tokens_to_end();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tgi::guide
