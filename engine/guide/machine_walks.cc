// Which characters bring a state back to itself. Where all paths below a node of the vocabulary's
// trie are made of them, a walk knows what is there without going down: in the middle of a text, of
// a name, of the digits of a number, that is most of the vocabulary.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
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

// step(from, byte): where it leads, kDead (-1): nowhere. may_be_inside(place): of the places in the
// middle of a character.
template <typename Step, typename MayBeInside>
class LoopFinder {
 public:
  LoopFinder(Step step, MayBeInside may_be_inside)
      : step_(std::move(step)), may_be_inside_(std::move(may_be_inside)) {}

  Machine::Loops find(int32_t home) {
    Machine::Loops loops;
    for (size_t byte = 0; byte < 128; ++byte) {
      if (step_(home, static_cast<uint8_t>(byte)) == home)
        loops.ascii[byte / 64] |= uint64_t{1} << (byte % 64);
    }
    const auto is_home = [&](int32_t place) { return place == home; };
    for (const LongCharacters& range : kLongCharacters) {
      for (int byte = range.first_lead; byte <= range.last_lead; ++byte) {
        const auto lead = static_cast<uint8_t>(byte);
        if (leads_to(home, lead, range, is_home, loops.inside)) loops.leads |= lead_bit(lead);
      }
    }
    return loops;
  }

  // Whether all characters that begin with `lead` lead from there to places of one kind. Those on
  // the way are added to `inside`.
  template <typename IsMeant>
  bool leads_to(int32_t from,
                uint8_t lead,
                const LongCharacters& range,
                const IsMeant& is_meant,
                std::vector<int32_t>& inside) {
    inside_.clear();
    const bool is_so =
        passes(step_(from, lead)) && leads_on(inside_.back(), range.first_second, range.last_second,
                                              range.num_more - 1, is_meant);
    for (const int32_t place : inside_) {
      if (is_so && std::ranges::find(inside, place) == inside.end()) inside.push_back(place);
    }
    return is_so;
  }

 private:
  bool passes(int32_t place) {
    if (place == Machine::kDead || !may_be_inside_(place)) return false;
    inside_.push_back(place);
    return true;
  }

  // Whether all of the bytes, and `num_more` others after each, lead to places that are meant.
  template <typename IsMeant>
  bool leads_on(int32_t from, uint8_t first, uint8_t last, int num_more, const IsMeant& is_meant) {
    int32_t before = Machine::kDead;
    for (int byte = first; byte <= last; ++byte) {
      const int32_t next = step_(from, static_cast<uint8_t>(byte));
      if (next == Machine::kDead) return false;
      if (next == before) continue;
      before = next;
      if (num_more == 0) {
        if (!is_meant(next)) return false;
      } else if (!passes(next) || !leads_on(next, 0x80, 0xBF, num_more - 1, is_meant)) {
        return false;
      }
    }
    return true;
  }

  Step step_;
  MayBeInside may_be_inside_;
  std::vector<int32_t> inside_;
};

bool has_bit(const std::array<uint64_t, 2>& ascii, size_t byte) {
  return (ascii[byte / 64] >> (byte % 64) & 1) != 0;
}

}  // namespace

Machine::Loops Machine::loops_of_config(int32_t config) {
  Loops loops = LoopFinder([&](int32_t from, uint8_t byte) { return step(from, byte); },
                           [&](int32_t inside) { return !accepts(inside); })
                    .find(config);
  if ((loops.ascii[0] | loops.ascii[1]) == 0) {
    if (loops.leads == 0) find_run(config, loops);
  } else {
    add_detours(config, loops);
  }
  return loops;
}

// Characters that lead to some few other places, from which all of them, these too, lead to one of
// those or home: in (?s:.)*END that is E, in .*f.*o.* f, behind which an o leads to a third place.
void Machine::add_detours(int32_t config, Loops& loops) {
  constexpr size_t kMaxPlaces = 8;
  int32_t num_steps_left = 8192;
  std::vector<int32_t> places{config};
  std::vector<int32_t> inside;  // of longer characters
  LoopFinder finder([&](int32_t from, uint8_t byte) { return step(from, byte); },
                    [&](int32_t within) { return !accepts(within); });
  // Longer characters have to lead where they lead from home, or to another of the places.
  const auto long_ones_lead_on = [&](int32_t from, const auto& is_known) {
    for (const LongCharacters& range : kLongCharacters) {
      for (int byte = range.first_lead; byte <= range.last_lead; ++byte) {
        const auto lead = static_cast<uint8_t>(byte);
        if ((loops.leads & lead_bit(lead)) == 0 || step(from, lead) == step(config, lead)) continue;
        if (!finder.leads_to(from, lead, range, is_known, inside)) return false;
      }
    }
    return true;
  };
  for (size_t byte = 0; byte < 128; ++byte) {
    if (has_bit(loops.ascii, byte)) continue;
    const int32_t first = step(config, static_cast<uint8_t>(byte));
    if (first == kDead) continue;
    std::array<uint64_t, 2> ascii = loops.ascii;
    ascii[byte / 64] |= uint64_t{1} << (byte % 64);
    std::vector<int32_t> all = places;
    const auto is_known = [&](int32_t place) { return std::ranges::find(all, place) != all.end(); };
    const auto leads_on = [&](int32_t from) {
      for (size_t next = 0; next < 128; ++next) {
        if (!has_bit(ascii, next)) continue;
        const int32_t to = step(from, static_cast<uint8_t>(next));
        if (--num_steps_left < 0 || to == kDead) return false;
        if (is_known(to)) continue;
        if (all.size() == kMaxPlaces) return false;
        all.push_back(to);
      }
      return true;
    };
    if (!is_known(first)) all.push_back(first);
    bool are_places = all.size() <= kMaxPlaces;
    for (size_t i = 0; are_places && i < all.size(); ++i) are_places = leads_on(all[i]);
    for (size_t i = places.size(); are_places && i < all.size(); ++i)
      are_places = long_ones_lead_on(all[i], is_known);
    if (!are_places) continue;
    loops.ascii = ascii;
    places = std::move(all);
  }
  for (const int32_t place : places) {
    if (place == config) continue;
    loops.inside.push_back(place);
    loops.leads_home = false;
    loops.accepts_alike &= accepts(place) == accepts(config);
  }
  loops.inside.insert(loops.inside.end(), inside.begin(), inside.end());
}

// Characters that all lead to one place, and on from there for a while: [a-z]{1,20}.
void Machine::find_run(int32_t config, Loops& loops) {
  constexpr int32_t kMaxRun = 64;
  std::array<int32_t, 128> next{};
  for (size_t byte = 0; byte < 128; ++byte) next[byte] = step(config, static_cast<uint8_t>(byte));
  int32_t to = kDead;
  std::ptrdiff_t most = 0;
  for (const int32_t each : next) {
    const std::ptrdiff_t count = each == kDead || each == to ? 0 : std::ranges::count(next, each);
    if (count > most) {
      most = count;
      to = each;
    }
  }
  if (most < 8) return;
  std::vector<uint8_t> bytes;
  for (size_t byte = 0; byte < 128; ++byte) {
    if (next[byte] != to) continue;
    bytes.push_back(static_cast<uint8_t>(byte));
    loops.ascii[byte / 64] |= uint64_t{1} << (byte % 64);
  }
  loops.max_bytes = 1;
  loops.leads_home = false;
  loops.inside.push_back(to);
  loops.accepts_alike = accepts(to) == accepts(config);
  while (loops.max_bytes < kMaxRun) {
    const int32_t after = step(to, bytes.front());
    const auto leads_there = [&](uint8_t byte) { return step(to, byte) == after; };
    if (after == kDead || !std::ranges::all_of(bytes, leads_there)) return;
    to = after;
    ++loops.max_bytes;
    if (std::ranges::find(loops.inside, to) != loops.inside.end()) {
      loops.max_bytes = std::numeric_limits<int32_t>::max();
      return;
    }
    loops.inside.push_back(to);
    loops.accepts_alike &= accepts(to) == accepts(config);
  }
}

Machine::Loops Machine::loops_of_round(int32_t state,
                                       const std::function<bool(int32_t state)>& is_inside) {
  return LoopFinder(
             [&](int32_t from, uint8_t byte) { return next_state(from, pool_.class_of(byte)); },
             is_inside)
      .find(state);
}

Machine::Loops* Machine::known_loops(int32_t config) {
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
