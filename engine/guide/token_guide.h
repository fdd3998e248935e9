// Which tokens an answer may have: asked before each is drawn, told of each that was taken. Belongs
// to one sequence, on the engine thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace tgi {

class TokenGuide {
 public:
  virtual ~TokenGuide() = default;

  // Sets the bit (id % 32 of word id / 32) of every token that may be next and clears all others.
  // `max_tokens`: how many the answer may still have, this one included; at least 1. False: there
  // is none, the answer cannot go on.
  [[nodiscard]] virtual bool fill_mask(std::span<uint32_t> mask, int64_t max_tokens) = 0;

  // REQUIRES: it was in the mask that was filled last.
  virtual void accept(int32_t token_id) = 0;

  // Looks ahead: as accept where the token is allowed; else false, and nothing changes. After an
  // exception, or when enough is seen, rollback() goes back.
  [[nodiscard]] virtual bool try_accept(int32_t token_id) = 0;
  // To where the last accept() led, or to the start.
  virtual void rollback() = 0;

  // The tokens that come next where only one text can follow: its canonical ones, up to where
  // longer ones might be better. Empty: nothing is forced. They follow from what was accepted or
  // tried, and from nothing else. Valid until the next call.
  virtual std::span<const int32_t> forced_tokens() { return {}; }

  // What was accepted is a whole answer and nothing but an end token can follow: it ends here, and
  // no step is spent on that token.
  virtual bool is_over() = 0;
};

// What a request asks of its answers; shared by its sequences, which may be on any thread.
class Guidance {
 public:
  virtual ~Guidance() = default;
  virtual std::unique_ptr<TokenGuide> start() const = 0;
  // So many tokens are enough for some answer.
  virtual int64_t num_enough_tokens() const = 0;
};

}  // namespace tgi
