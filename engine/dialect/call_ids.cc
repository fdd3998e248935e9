#include "engine/dialect/call_ids.h"

#include <fmt/format.h>

#include <random>

namespace tgi::dialect {
namespace {

// Of calls: unique among those of all conversations, so by chance and not by seed.
std::string random_id(size_t length) {
  constexpr std::string_view kCharacters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  thread_local std::mt19937_64 random{(uint64_t{std::random_device{}()} << 32) |
                                      std::random_device{}()};
  std::uniform_int_distribution<size_t> pick(0, kCharacters.size() - 1);
  std::string out;
  for (size_t i = 0; i < length; ++i) out += kCharacters[pick(random)];
  return out;
}

}  // namespace

std::string make_call_id(CallIds form,
                         std::string_view name,
                         std::string_view number,
                         int64_t index) {
  switch (form) {
    case CallIds::kNine:
      return random_id(9);
    case CallIds::kFunction:
      return fmt::format("functions.{}:{}", name, number.empty() ? std::to_string(index) : number);
    case CallIds::kRandom:
      break;
  }
  return "call_" + random_id(24);
}

}  // namespace tgi::dialect
