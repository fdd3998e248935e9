// The shortest way to the end, and what can't be avoided on the way.
//
// Of the shortest texts the one is meant that comes first in the order of bytes. What is left of it
// after its first token is the one of the configuration after that token, and so is the way it is
// cut into tokens: the number of tokens to the end shrinks by one with each that is taken.
#include <algorithm>
#include <limits>
#include <string>

#include "engine/guide/machine.h"

namespace tgi::guide {
namespace {

constexpr int32_t kLongText = 100'000;  // from here on, bytes count as tokens

}  // namespace

int32_t Machine::shortest_end(int32_t config) {
  Config& of = configs_[static_cast<size_t>(config)];
  if (of.rest != kUnknown) return of.rest;
  int64_t least = of.accepts ? 0 : int64_t{ExprPool::kMaxLength};
  for (const Item& item : items(config)) {
    const int64_t rest = int64_t{pool_.shortest(states_[static_cast<size_t>(item.state)].expr)} +
                         stacks_[static_cast<size_t>(item.stack)].rest;
    least = std::min(least, rest);
  }
  return of.rest = static_cast<int32_t>(least);
}

Machine::Way Machine::shortest_way(int32_t config) {
  const int32_t wanted = shortest_end(config) - 1;
  for (const int32_t c : classes_by_byte_) {
    const int32_t next = step_class(config, c);
    // Less where an item was counted longer than it has to be.
    if (next != kDead && shortest_end(next) <= wanted)
      return {next, false, pool_.representative(c)};
  }
  for (const TokenStep& step : token_steps(config)) {
    if (shortest_end(step.config) <= wanted) return {step.config, true, step.tokens.first()};
  }
  return {};
}

int32_t Machine::num_tokens_to_end(int32_t config) {
  if (const int32_t known = configs_[static_cast<size_t>(config)].tokens_to_end; known != kUnknown)
    return known;
  int32_t count = 0;
  std::string text;
  const auto cut = [&] {
    for (std::string_view rest = text; !rest.empty(); ++count) {
      const size_t length = vocabulary_.longest_prefix(rest).first;
      if (length == 0) return false;
      rest.remove_prefix(length);
    }
    text.clear();
    return true;
  };
  bool possible = true;
  if (shortest_end(config) > kLongText) {
    count = shortest_end(config);
  } else {
    for (int32_t at = config; possible && shortest_end(at) > 0;) {
      const Way way = shortest_way(at);
      possible = way.config != kDead;
      if (possible && ends_item(at) && !way.is_token && way.symbol != ']') {
        // The next item depends on what is written until then: from here on bytes are counted.
        possible = cut();
        count += shortest_end(at);
        break;
      }
      at = way.config;
      if (way.is_token) {
        possible = possible && cut();
        ++count;
      } else {
        text.push_back(static_cast<char>(way.symbol));
      }
    }
    possible = possible && cut();
  }
  return configs_[static_cast<size_t>(config)].tokens_to_end = possible ? count : kMaxTokens;
}

std::string Machine::forced_text(int32_t config, size_t max_bytes) {
  std::string text;
  // Behind an item it takes the whole text to know what may follow.
  while (text.size() < max_bytes && !accepts(config) && !ends_item(config)) {
    int32_t only = -1;
    for (const Item& item : items(config)) {
      if (states_[static_cast<size_t>(item.state)].has_tokens) return text;
    }
    for (int32_t c = 0; c < num_classes_; ++c) {
      if (step_class(config, c) == kDead) continue;
      if (only >= 0 || class_sizes_[static_cast<size_t>(c)] > 1) return text;
      only = c;
    }
    if (only < 0) break;
    text.push_back(static_cast<char>(pool_.representative(only)));
    config = step_class(config, only);
  }
  return text;
}

}  // namespace tgi::guide
