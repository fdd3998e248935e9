#include "ipc/preset_toml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <toml++/toml.h>
#include <algorithm>
#include <array>
#include <optional>
#include <sstream>
#include <string>

#include "base/error.h"

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

std::string expect_text(const toml::node& node, std::string_view name, std::string_view expected) {
  if (std::optional<std::string> text = scalar_of(node)) return std::move(*text);
  fail_modelfile(start_of(node), fmt::format("{}: expected {}", name, expected));
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

void read_one(std::string_view instruction, const toml::node& node, Lines& out) {
  const std::string name(instruction);
  out.push_back(line_of(name, "", node, expect_text(node, name, "a text")));
}

void read_several(std::string_view instruction, const toml::node& node, Lines& out) {
  for_each(node, [&](const toml::node& each) { read_one(instruction, each, out); });
}

// As a table too.
void read_schema(std::string_view instruction, const toml::node& node, Lines& out) {
  const toml::table* const table = node.as_table();
  if (table == nullptr) return read_one(instruction, node, out);
  std::ostringstream json;
  json << toml::json_formatter(*table);
  out.push_back(line_of(std::string(instruction), "", node, json.str()));
}

void read_parameters(std::string_view instruction, const toml::node& node, Lines& out) {
  const toml::table* const table = node.as_table();
  if (table == nullptr) fail_modelfile(start_of(node), "parameters: expected a table");
  for (const auto& [key, value] : *table) {
    const std::string name(key.str());
    for_each(value, [&](const toml::node& each) {
      out.push_back(line_of(std::string(instruction), name, each,
                            expect_text(each, name, "a number, or a text")));
    });
  }
}

void read_messages(std::string_view instruction, const toml::node& node, Lines& out) {
  for_each(node, [&](const toml::node& each) {
    const toml::table* const message = each.as_table();
    const bool is_whole = message != nullptr && message->size() == 2 && message->contains("role") &&
                          message->contains("content");
    if (!is_whole) fail_modelfile(start_of(each), "messages: expected a role and a content each");
    out.push_back(line_of(std::string(instruction),
                          expect_text(*message->get("role"), "role", "a text"), each,
                          expect_text(*message->get("content"), "content", "a text")));
  });
}

struct Key {
  std::string_view name;
  std::string_view instruction;
  void (*read)(std::string_view instruction, const toml::node& node, Lines& out);
};

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
    row->read(row->instruction, node, out);
  }
  return out;
}

}  // namespace tgi::ipc
