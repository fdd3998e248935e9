// Which characters bring a state back to itself. Where all paths below a node of the vocabulary's
// trie are made of them, a walk knows what is there without going down: in the middle of a text, of
// a name, of the digits of a number, that is most of the vocabulary.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "engine/guide/machine.h"

namespace tgi::guide {
namespace {

// The characters of UTF-8 of more than one byte, by their first: what may come second (RFC 3629).
struct LongCharacters {
  uint8_t first_lead, last_lead, num_more, first_second, last_second;
};
constexpr std::array<LongCharacters, 8> kLongCharacters = {{
    {0xC2, 0xDF, 1, 0x80, 0xBF},
    {0xE0, 0xE0, 2, 0xA0, 0xBF},
    {0xE1, 0xEC, 2, 0x80, 0xBF},
    {0xED, 0xED, 2, 0x80, 0x9F},
    {0xEE, 0xEF, 2, 0x80, 0xBF},
    {0xF0, 0xF0, 3, 0x90, 0xBF},
    {0xF1, 0xF3, 3, 0x80, 0xBF},
    {0xF4, 0xF4, 3, 0x80, 0x8F},
}};

// step(from, byte): where it leads, kDead (-1): nowhere.
template <typename Step>
class LoopFinder {
 public:
  explicit LoopFinder(Step step) : step_(step) {}

  // Whether all of the bytes, and `num_more` others after each, lead to `home` and nowhere else.
  bool leads_home(int32_t from, uint8_t first, uint8_t last, int num_more, int32_t home) {
    int32_t before = Machine::kDead;
    for (int byte = first; byte <= last; ++byte) {
      const int32_t next = step_(from, static_cast<uint8_t>(byte));
      if (next == Machine::kDead) return false;
      if (next == before) continue;
      before = next;
      if (num_more == 0) {
        if (next != home) return false;
      } else {
        if (std::ranges::find(inside_, next) == inside_.end()) inside_.push_back(next);
        if (!leads_home(next, 0x80, 0xBF, num_more - 1, home)) return false;
      }
    }
    return true;
  }

  Machine::Loops find(int32_t home) {
    Machine::Loops loops;
    for (size_t byte = 0; byte < 128; ++byte) {
      if (step_(home, static_cast<uint8_t>(byte)) == home)
        loops.ascii[byte / 64] |= uint64_t{1} << (byte % 64);
    }
    loops.others = std::ranges::all_of(kLongCharacters, [&](const LongCharacters& range) {
      for (int lead = range.first_lead; lead <= range.last_lead; ++lead) {
        const int32_t next = step_(home, static_cast<uint8_t>(lead));
        if (next == Machine::kDead) return false;
        if (std::ranges::find(inside_, next) == inside_.end()) inside_.push_back(next);
        if (!leads_home(next, range.first_second, range.last_second, range.num_more - 1, home))
          return false;
      }
      return true;
    });
    if (loops.others) loops.inside = std::move(inside_);
    return loops;
  }

 private:
  Step step_;
  std::vector<int32_t> inside_;
};

}  // namespace

Machine::Loops Machine::loops_of_config(int32_t config) {
  Loops loops =
      LoopFinder([&](int32_t from, uint8_t byte) { return step(from, byte); }).find(config);
  const auto accepts_one = [&](int32_t inside) { return accepts(inside); };
  if (std::ranges::any_of(loops.inside, accepts_one)) loops.others = false;
  return loops;
}

Machine::Loops Machine::loops_of_round(int32_t state,
                                       const std::function<bool(int32_t state)>& is_inside) {
  Loops loops = LoopFinder([&](int32_t from, uint8_t byte) {
                  return next_state(from, pool_.class_of(byte));
                }).find(state);
  if (!std::ranges::all_of(loops.inside, is_inside)) loops.others = false;
  return loops;
}

const Machine::Loops* Machine::known_loops(int32_t config) {
  // To find them costs as much as some hundred steps.
  constexpr int32_t kOften = 24;
  Config& of = configs_[static_cast<size_t>(config)];
  if (of.loops >= 0) return &loops_[static_cast<size_t>(of.loops)];
  if (++of.num_visits < kOften) return nullptr;
  Loops found = loops_of_config(config);
  configs_[static_cast<size_t>(config)].loops = static_cast<int32_t>(loops_.size());
  loops_.push_back(std::move(found));
  return &loops_.back();
}

}  // namespace tgi::guide
