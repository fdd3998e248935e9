#include "ipc/preset_toml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <toml++/toml.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ipc/ordered_json.h"

namespace tgi::ipc {
namespace {

using Lines = std::vector<ModelfileLine>;

TextPlace start_of(const toml::source_position& at) {
  return {.line = at.line, .column = at.column};
}

TextPlace start_of(const toml::node& node) {
  return start_of(node.source().begin);
}

std::optional<std::string> scalar_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  return std::nullopt;
}

std::string_view kind_of(const toml::node& node) {
  if (node.is_string()) return "a text";
  if (node.is_number()) return "a number";
  if (node.is_boolean()) return "true or false";
  if (node.is_array()) return "a list";
  return node.is_table() ? "a table" : "a date or a time";
}

[[noreturn]] void refuse(const toml::node& node, std::string_view name, std::string_view expected) {
  fail_modelfile(start_of(node),
                 fmt::format("{}: expected {}, got {}", name, expected, kind_of(node)));
}

std::string expect_text(const toml::node& node, std::string_view name, std::string_view expected) {
  if (std::optional<std::string> text = scalar_of(node)) return std::move(*text);
  refuse(node, name, expected);
}

ModelfileLine line_of(std::string instruction,
                      std::string argument,
                      const toml::node& node,
                      std::string value) {
  const TextPlace at = start_of(node);
  return {.instruction = std::move(instruction),
          .at = at,
          .argument = std::move(argument),
          .argument_at = at,
          .value = std::move(value),
          .value_at = at};
}

// One value, or each of a list.
template <typename Take>
void for_each(const toml::node& node, Take take) {
  const toml::array* const list = node.as_array();
  if (list == nullptr) return take(node);
  for (const toml::node& each : *list) take(each);
}

struct Key {
  std::string_view name;
  std::string_view instruction;
  void (*read)(const Key& key, const toml::node& node, Lines& out);
};

void read_one(const Key& key, const toml::node& node, Lines& out) {
  out.push_back(
      line_of(std::string(key.instruction), "", node, expect_text(node, key.name, "a text")));
}

void read_several(const Key& key, const toml::node& node, Lines& out) {
  for_each(node, [&](const toml::node& each) { read_one(key, each, out); });
}

// With the members of each table as they stand in the file: their order is the answer's.
OrderedJson json_of(const toml::node& node, std::string_view name) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return number->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  const auto* const number = node.as_floating_point();
  if (number != nullptr && std::isfinite(number->get())) return number->get();
  if (const auto* list = node.as_array()) {
    OrderedJson out = OrderedJson::array();
    for (const toml::node& each : *list) out.push_back(json_of(each, name));
    return out;
  }
  const auto* const table = node.as_table();
  if (table == nullptr) refuse(node, name, "what JSON has");
  std::vector<std::pair<const toml::key*, const toml::node*>> members;
  for (const auto& [key, value] : *table) members.emplace_back(&key, &value);
  std::ranges::sort(members, [](const auto& a, const auto& b) {
    return a.first->source().begin < b.first->source().begin;
  });
  OrderedJson out = OrderedJson::object();
  for (const auto& [key, value] : members) out[std::string(key->str())] = json_of(*value, name);
  return out;
}

// As a table too.
void read_schema(const Key& key, const toml::node& node, Lines& out) {
  if (!node.is_table()) return read_one(key, node, out);
  out.push_back(line_of(std::string(key.instruction), "", node, json_of(node, key.name).dump()));
}

void read_parameters(const Key& key, const toml::node& node, Lines& out) {
  const toml::table* const table = node.as_table();
  if (table == nullptr) refuse(node, key.name, "a table");
  for (const auto& [member, value] : *table) {
    const std::string name(member.str());
    for_each(value, [&](const toml::node& each) {
      out.push_back(line_of(std::string(key.instruction), name, each,
                            expect_text(each, name, "a number, or a text")));
    });
  }
}

void read_messages(const Key& key, const toml::node& node, Lines& out) {
  for_each(node, [&](const toml::node& each) {
    const toml::table* const message = each.as_table();
    if (message == nullptr) refuse(each, key.name, "a role and a content each");
    const bool is_whole =
        message->size() == 2 && message->contains("role") && message->contains("content");
    if (!is_whole) {
      std::vector<std::string_view> names;
      for (const auto& [member, value] : *message) names.push_back(member.str().substr(0, 100));
      fail_modelfile(start_of(each), fmt::format("{}: expected a role and a content each, got {}",
                                                 key.name, fmt::join(names, ", ")));
    }
    out.push_back(line_of(std::string(key.instruction),
                          expect_text(*message->get("role"), "role", "a text"), each,
                          expect_text(*message->get("content"), "content", "a text")));
  });
}

constexpr std::array kKeys = {
    Key{"from", "FROM", read_one},
    Key{"parameters", "PARAMETER", read_parameters},
    Key{"system", "SYSTEM", read_one},
    Key{"template", "TEMPLATE", read_one},
    Key{"adapter", "ADAPTER", read_one},
    Key{"messages", "MESSAGE", read_messages},
    Key{"license", "LICENSE", read_several},
    Key{"schema", "SCHEMA", read_schema},
    Key{"speculator", "SPECULATOR", read_one},
    Key{"draft", "DRAFT", read_one},
};

toml::table parse_text(std::string_view text) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    fail_modelfile(start_of(error.source().begin), error.description());
  }
}

}  // namespace

std::vector<ModelfileLine> lines_of_toml(std::string_view text) {
  const toml::table table = parse_text(text);
  Lines out;
  for (const auto& [key, node] : table) {
    const auto row = std::ranges::find(kKeys, key.str(), &Key::name);
    if (row == kKeys.end()) {
      std::vector<std::string_view> names;
      for (const Key& each : kKeys) names.push_back(each.name);
      fail_modelfile(start_of(key.source().begin),
                     fmt::format("expected one of {}, got {}", fmt::join(names, ", "),
                                 key.str().substr(0, 100)));
    }
    row->read(*row, node, out);
  }
  return out;
}

}  // namespace tgi::ipc
