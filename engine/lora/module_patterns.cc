#include "engine/lora/module_patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace tgi {
namespace {

bool is_plain_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.';
}

// A dot of the pattern stands for any character.
bool matches_end(std::string_view pattern, std::string_view module) {
  if (pattern.size() > module.size()) return false;
  const std::string_view end = module.substr(module.size() - pattern.size());
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '.' && pattern[i] != end[i]) return false;
  }
  return end.size() == module.size() || module[module.size() - end.size() - 1] == '.';
}

template <typename T>
std::vector<std::string> patterns_of(const NumbersByPattern<T>& numbers) {
  std::vector<std::string> out;
  for (const auto& [pattern, number] : numbers) out.push_back(pattern);
  return out;
}

template <typename T>
ModulePatterns patterns_in(const NumbersByPattern<T>& numbers, std::string_view field) {
  try {
    return ModulePatterns(patterns_of(numbers));
  } catch (const Error& error) {
    throw error.in(field);
  }
}

}  // namespace

ModulePatterns::ModulePatterns(const std::vector<std::string>& patterns) {
  for (const std::string& text : patterns) {
    Pattern pattern{.text = text, .is_plain = std::ranges::all_of(text, is_plain_character)};
    if (!pattern.is_plain) {
      try {
        guide::parse_regex(pool_, text, guide::RegexUse::kWhole);  // places in it, for the error
        pattern.regex =
            guide::parse_regex(pool_, "(?:.*\\.)?(?:" + text + ")", guide::RegexUse::kWhole);
      } catch (const Error& error) {
        throw error.in(text);
      }
    }
    patterns_.push_back(std::move(pattern));
  }
}

bool ModulePatterns::matches(const Pattern& pattern, std::string_view module) {
  if (pattern.is_plain) return matches_end(pattern.text, module);
  return pool_.matches(pattern.regex, module);
}

int32_t ModulePatterns::find(std::string_view module) {
  for (size_t i = 0; i < patterns_.size(); ++i) {
    if (matches(patterns_[i], module)) return static_cast<int32_t>(i);
  }
  return -1;
}

ModuleScales::ModuleScales(const AdapterConfig& config)
    : config_(config),
      rank_patterns_(patterns_in(config.ranks, "rank_pattern")),
      alpha_patterns_(patterns_in(config.alphas, "alpha_pattern")) {}

int32_t ModuleScales::rank_of(std::string_view module) {
  const int32_t found = rank_patterns_.find(module);
  return found < 0 ? config_.rank : config_.ranks[static_cast<size_t>(found)].second;
}

float ModuleScales::scale_of(std::string_view module) {
  const int32_t found = alpha_patterns_.find(module);
  const double alpha =
      found < 0 ? config_.alpha : config_.alphas[static_cast<size_t>(found)].second;
  const double rank = rank_of(module);
  return static_cast<float>(alpha / (config_.is_rank_stabilised ? std::sqrt(rank) : rank));
}

}  // namespace tgi
