// The rank and the scale of each module of an adapter: those of adapter_config.json, or those that
// rank_pattern and alpha_pattern give to the modules whose names match.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/guide/regex.h"
#include "engine/lora/adapter_config.h"

namespace tgi {

// Patterns of module names as PEFT matches them: a regular expression that describes the whole
// name, or what follows one of its dots. Belongs to one thread.
class ModulePatterns {
 public:
  // Throws kInvalidArgument or kUnsupported naming the pattern that can't be read.
  explicit ModulePatterns(const std::vector<std::string>& patterns);

  // The place of the first that matches; -1: none. Throws kInvalidArgument for one that takes too
  // much work.
  int32_t find(std::string_view module);

 private:
  struct Pattern {
    std::string text;
    bool is_plain = false;  // of letters, digits and dots: compared without an automaton
    guide::Regex regex{};
  };
  bool matches(const Pattern& pattern, std::string_view module);

  guide::RegexPool pool_;
  std::vector<Pattern> patterns_;
};

class ModuleScales {
 public:
  // Throws as ModulePatterns, naming the field. `config` must outlive it.
  explicit ModuleScales(const AdapterConfig& config);

  int32_t rank_of(std::string_view module);
  // What the product of A and B is multiplied by.
  float scale_of(std::string_view module);

 private:
  const AdapterConfig& config_;
  ModulePatterns rank_patterns_;
  ModulePatterns alpha_patterns_;
};

}  // namespace tgi
