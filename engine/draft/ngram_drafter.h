// Drafts what followed the last time that a sequence's end was written before, in its prompt or in
// its own output ("prompt lookup decoding", https://github.com/apoorvumang/prompt-lookup-decoding).
// Of all places the one with the longest common suffix, of those the latest.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/draft/drafter.h"

namespace tgi {

// Finds where the end of a growing text has been before. A look takes constant time.
class NgramIndex {
 public:
  static constexpr int32_t kMinMatch = 2;        // tokens
  static constexpr int32_t kMaxMatch = 32;       // a longer one is as good
  static constexpr int32_t kMaxCandidates = 64;  // places that are looked at, the latest first

  // Of a text that begins with that of the call before: where what has followed its longest known
  // suffix begins; -1: no suffix of kMinMatch has been before.
  int32_t find(std::span<const int32_t> token_ids);

 private:
  void add(std::span<const int32_t> token_ids);
  void make_room(size_t num_tokens);
  size_t place_of(int32_t first, int32_t second) const;

  std::vector<int32_t> latest_;   // by hash of two tokens: where the second was last; -1: nowhere
  std::vector<int32_t> earlier_;  // (tokens indexed): where one of the same hash was before; -1
};

class NgramDrafter final : public Drafter {
 public:
  std::unique_ptr<Memory> start() override;
  bool is_free() const override { return true; }
  void draft(std::span<const Wanted> wanted) override;
};

}  // namespace tgi
