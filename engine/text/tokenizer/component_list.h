// Reading the parts of tokenizer.json that have a "type", among them Sequence.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace tgi {

constexpr int kMaxComponentDepth = 16;  // Sequences inside Sequences

// The members of `list`, an array of objects under `component`.
inline std::vector<JsonReader> component_list(const JsonReader& component, std::string_view list) {
  const std::string path = component.path_of(list);
  const auto found = component.json().find(std::string(list));
  if (found == component.json().end() || !found->is_array()) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: expected an array", path));
  }
  std::vector<JsonReader> members;
  for (const Json& member : *found) {
    members.emplace_back(member, fmt::format("{}[{}]", path, members.size()));
  }
  return members;
}

inline void check_component_depth(const JsonReader& component, int depth) {
  if (depth <= kMaxComponentDepth) return;
  throw Error(Code::kInvalidArgument, fmt::format("{}: Sequences nest deeper than {} levels",
                                                  component.path_of("type"), kMaxComponentDepth));
}

[[noreturn]] inline void fail_unknown_type(const JsonReader& component,
                                           const std::string& type,
                                           std::string_view known) {
  throw Error(Code::kUnsupported, fmt::format("{}: \"{}\" is not supported; known are {}",
                                              component.path_of("type"), type, known));
}

}  // namespace tgi
