// Answers of at least so many tokens: until then no end token may be drawn.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/guide/token_guide.h"
#include "engine/guide/vocabulary.h"

namespace tgi::guide {

// `inner` (optional): what else is asked of the answers. It goes before the minimum: a text that
// its form allows nothing more of ends as it is.
std::shared_ptr<const Guidance> with_minimum(std::shared_ptr<const Guidance> inner,
                                             std::shared_ptr<const Vocabulary> vocabulary,
                                             int64_t min_tokens);

}  // namespace tgi::guide
