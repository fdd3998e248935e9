#include "engine/draft/ngram_drafter.h"

#include <algorithm>
#include <random>

#include "tests/catch.h"

namespace tgi {
namespace {

std::vector<int32_t> draft_of(const std::vector<int32_t>& token_ids, int32_t max_tokens) {
  NgramDrafter drafter;
  const auto memory = drafter.start();
  std::vector<int32_t> out = {99};
  const Drafter::Wanted wanted[] = {{.memory = memory.get(),
                                     .token_ids = token_ids,
                                     .max_tokens = max_tokens,
                                     .draft_ids = &out}};
  drafter.draft(wanted);
  return out;
}

// By looking everywhere.
int32_t find_plainly(const std::vector<int32_t>& token_ids) {
  const auto size = static_cast<int32_t>(token_ids.size());
  int32_t longest = NgramIndex::kMinMatch - 1;
  int32_t found = -1;
  for (int32_t end = size - 2; end >= 1; --end) {
    int32_t length = 0;
    while (length < std::min(end + 1, NgramIndex::kMaxMatch) &&
           token_ids[static_cast<size_t>(end - length)] ==
               token_ids[static_cast<size_t>(size - 1 - length)]) {
      ++length;
    }
    if (length > longest) {
      longest = length;
      found = end + 1;
    }
  }
  return found;
}

}  // namespace

TEST_CASE("what followed the longest suffix is drafted, not what followed its last token first") {
  //                       1 2 -> 7      5 1 2 -> 8      1 2 -> 9
  CHECK(draft_of({1, 2, 7, 0, 5, 1, 2, 8, 6, 0, 1, 2, 9, 3, 5, 1, 2}, 2) ==
        std::vector<int32_t>{8, 6});
  // Of two that are as long the later one.
  CHECK(draft_of({1, 2, 7, 0, 1, 2, 8, 0, 3, 1, 2}, 1) == std::vector<int32_t>{8});
}

TEST_CASE("what was written once, or has no end yet, gives no draft") {
  CHECK(draft_of({}, 3).empty());
  CHECK(draft_of({1}, 3).empty());
  CHECK(draft_of({1, 2, 3, 4}, 3).empty());
  CHECK(draft_of({1, 2, 1}, 3).empty());  // one token is too little to go by
}

TEST_CASE("a text that goes round is drafted past its end") {
  CHECK(draft_of({9, 1, 2, 3, 1, 2, 3, 1, 2}, 8) == std::vector<int32_t>{3, 1, 2, 3, 1, 2, 3, 1});
  CHECK(draft_of({4, 4, 4}, 5) == std::vector<int32_t>{4, 4, 4, 4, 4});
}

TEST_CASE("an index that grows with its text finds what a search of all of it finds") {
  std::mt19937 random(4);
  for (const uint32_t num_ids : {4U, 30U, 100000U}) {
    NgramIndex index;
    std::vector<int32_t> text;
    int num_found = 0;
    while (text.size() < 1500) {
      // New tokens, or a piece of what is there.
      if (text.size() > 20 && random() % 4 == 0) {
        const size_t from = random() % (text.size() - 12);
        for (size_t i = 0; i < 12; ++i) text.push_back(text[from + i]);
      }
      for (auto count = random() % 9; count > 0; --count)
        text.push_back(static_cast<int32_t>(random() % num_ids));
      const int32_t wanted = find_plainly(text);
      const int32_t found = index.find(text);
      if (num_ids > 4)
        CHECK(found == wanted);  // with four ids there are more places than it looks at
      CHECK((found >= 0) == (wanted >= 0));
      num_found += found >= 0 ? 1 : 0;
    }
    CHECK(num_found > 0);
  }
}

}  // namespace tgi
