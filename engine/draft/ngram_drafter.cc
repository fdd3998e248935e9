#include "engine/draft/ngram_drafter.h"

#include <algorithm>
#include <bit>

namespace tgi {
namespace {

class NgramMemory final : public Drafter::Memory {
 public:
  NgramIndex index;
};

}  // namespace

// Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4). REQUIRES: latest_ is a power
// of two long.
size_t NgramIndex::place_of(int32_t first, int32_t second) const {
  const uint64_t both =
      (uint64_t{static_cast<uint32_t>(first)} << 32) | static_cast<uint32_t>(second);
  const uint64_t mixed = (both ^ (both >> 29)) * 0x9E3779B97F4A7C15U;
  return static_cast<size_t>(mixed >> 32) & (latest_.size() - 1);
}

void NgramIndex::make_room(size_t num_tokens) {
  if (num_tokens <= latest_.size()) return;
  latest_.assign(std::bit_ceil(std::max<size_t>(2 * num_tokens, 256)), -1);
  earlier_.clear();  // all are put in anew
}

void NgramIndex::add(std::span<const int32_t> token_ids) {
  make_room(token_ids.size());
  for (size_t i = earlier_.size(); i < token_ids.size(); ++i) {
    int32_t before = -1;
    if (i > 0) {
      int32_t& latest = latest_[place_of(token_ids[i - 1], token_ids[i])];
      before = latest;
      latest = static_cast<int32_t>(i);
    }
    earlier_.push_back(before);
  }
}

int32_t NgramIndex::find(std::span<const int32_t> token_ids) {
  add(token_ids);
  if (token_ids.empty()) return -1;
  const auto end = static_cast<int32_t>(token_ids.size()) - 1;
  const auto at = [&](int32_t i) { return token_ids[static_cast<size_t>(i)]; };
  int32_t longest = kMinMatch - 1;
  int32_t found = -1;
  int32_t candidate = earlier_.back();
  for (int32_t i = 0; i < kMaxCandidates && candidate >= 0; ++i) {
    const int32_t most = std::min(candidate + 1, kMaxMatch);
    int32_t length = 0;
    while (length < most && at(candidate - length) == at(end - length)) ++length;
    if (length > longest) {
      longest = length;
      found = candidate + 1;
    }
    if (longest == kMaxMatch) break;
    candidate = earlier_[static_cast<size_t>(candidate)];
  }
  return found;
}

std::unique_ptr<Drafter::Memory> NgramDrafter::start() {
  return std::make_unique<NgramMemory>();
}

void NgramDrafter::draft(std::span<const Wanted> wanted) {
  for (const Wanted& each : wanted) {
    each.draft_ids->clear();
    const int32_t from = static_cast<NgramMemory*>(each.memory)->index.find(each.token_ids);
    if (from < 0) continue;
    for (int32_t i = 0; i < each.max_tokens; ++i) {
      // What repeats itself goes on with what was just drafted.
      const auto next = static_cast<size_t>(from + i);
      const size_t known = each.token_ids.size();
      each.draft_ids->push_back(next < known ? each.token_ids[next]
                                             : (*each.draft_ids)[next - known]);
    }
  }
}

}  // namespace tgi
