// Ends the reasoning of an answer after so many tokens: from then on nothing but the mark that ends
// it may be drawn.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/guide/token_guide.h"
#include "engine/guide/vocabulary.h"

namespace tgi::dialect {

struct ReasoningBudget {
  std::vector<std::string> begins{};  // marks, as marked text
  std::vector<std::string> ends{};    // the first is drawn when the budget is spent
  bool has_begun = false;             // by the prompt
  int64_t max_tokens = 0;
};

std::shared_ptr<const Guidance> with_reasoning_budget(
    std::shared_ptr<const Guidance> guidance,
    std::shared_ptr<const guide::Vocabulary> vocabulary,
    ReasoningBudget budget);

}  // namespace tgi::dialect
