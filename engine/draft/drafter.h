// Guesses what sequences will draw next. Steps verify the guesses (engine/tensor/batch.h), so that
// a wrong one costs time and never changes an answer. Belongs to the engine thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tgi {

class Drafter {
 public:
  // What is kept of one sequence between its drafts.
  class Memory {
   public:
    virtual ~Memory() = default;
  };

  struct Wanted {
    Memory* memory = nullptr;            // of start()
    std::span<const int32_t> token_ids;  // begin with those of the sequence's call before
    int32_t max_tokens = 0;
    std::vector<int32_t>* draft_ids = nullptr;  // set to what follows token_ids; may stay empty
  };

  virtual ~Drafter() = default;
  virtual std::unique_ptr<Memory> start() = 0;
  // Of all sequences of a step at once.
  virtual void draft(std::span<const Wanted> wanted) = 0;
};

}  // namespace tgi
