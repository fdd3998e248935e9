// Two tokenizers that shall be one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/text/tokenizer.h"
#include "tests/catch.h"
#include "tests/tokenizer/golden.h"

namespace tgi {

inline void check_same_ids(const Tokenizer& tokenizer, const Tokenizer& expected) {
  for (const std::string& text : read_cases()) {
    INFO(text);
    const std::vector<int32_t> ids = tokenizer.encode(text, true);
    CHECK(ids == expected.encode(text, true));
    CHECK(tokenizer.decode(ids, true) == expected.decode(ids, true));
  }
}

}  // namespace tgi
