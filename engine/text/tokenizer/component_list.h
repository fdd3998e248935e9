// Reading the parts of tokenizer.json that have a "type", among them Sequence.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"

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

inline bool is_character(std::string_view text) {
  return !text.empty() && utf8_size(text[0]) == text.size();
}

// A member that is one character.
inline std::string read_character(const JsonReader& component, std::string_view key) {
  std::string character = component.string(key);
  if (!is_character(character)) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected one character", component.path_of(key)));
  }
  return character;
}

// Calls visit(component, type) for what `component` is: itself or, of a Sequence, each member of
// its `list`, in order.
template <typename Visit>
void for_each_component(const JsonReader& component,
                        std::string_view list,
                        const Visit& visit,
                        int depth = 0) {
  check_component_depth(component, depth);
  const std::string type = component.string("type");
  if (type != "Sequence") return visit(component, type);
  for (const JsonReader& member : component_list(component, list)) {
    for_each_component(member, list, visit, depth + 1);
  }
}

// For tables of steps: the steps that `component` is, made by the `rows` (type, make) of their
// types. `known`: for the error when a type is in none.
template <typename Rows, typename Steps>
void add_component_steps(const JsonReader& component,
                         std::string_view list,
                         const Rows& rows,
                         std::string_view known,
                         Steps& steps) {
  for_each_component(component, list, [&](const JsonReader& each, const std::string& type) {
    for (const auto& row : rows) {
      if (row.type == type) return steps.push_back(row.make(each));
    }
    fail_unknown_type(each, type, known);
  });
}

}  // namespace tgi
