// The terminals of a Lark grammar as regular languages: those that it defines, and those of Lark's
// "common". Used by the reader of Lark only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "engine/guide/lark_syntax.h"
#include "engine/guide/regex.h"

namespace tgi::guide {

class LarkTerminals {
 public:
  // Throws kInvalidArgument for an import that is not known. All three must outlive it.
  LarkTerminals(RegexPool& regex, const SourceText& source, const LarkGrammar& lark);

  bool contains(const std::string& name) const { return terminals_.contains(name); }
  // REQUIRES: its name is free.
  void add(const LarkDefinition& definition);

  // Throw kInvalidArgument with the place for what is not defined, is defined by itself, or can
  // stand in rules only.
  Regex named(const std::string& name, size_t place);
  Regex of_node(int32_t id);

 private:
  struct Terminal {
    int32_t body = -1;
    std::string_view pattern{};  // of an imported one
    size_t place = 0;
    bool is_open = false;
    bool is_done = false;
    Regex language{};
  };

  [[noreturn]] void refuse(size_t place, const std::string& what) const {
    source_.refuse(place, what, Code::kInvalidArgument);
  }
  Regex string_of(const LarkNode& node);
  Regex pattern_of(const LarkNode& node);
  Regex substring_of(const LarkNode& node);

  RegexPool& regex_;
  const SourceText& source_;
  const LarkGrammar& lark_;
  std::map<std::string, Terminal> terminals_;
};

}  // namespace tgi::guide
