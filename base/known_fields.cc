#include "base/known_fields.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/first_names.h"

namespace tgi {
namespace {

constexpr size_t kMaxListed = 20;
constexpr size_t kMaxShown = 60;  // bytes of a value

bool has_name(const KnownField& field, std::string_view name) {
  if (!field.name.ends_with('*')) return field.name == name;
  return name.starts_with(field.name.substr(0, field.name.size() - 1));
}

const KnownField* find_in(std::span<const KnownField> fields, std::string_view name) {
  const auto found =
      std::ranges::find_if(fields, [&](const KnownField& row) { return has_name(row, name); });
  return found == fields.end() ? nullptr : &*found;
}

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kMaxShown) text = text.substr(0, kMaxShown) + "...";
  return text;
}

void check_value(const JsonReader& object, const KnownField& field, const Json& value) {
  if (field.use == FieldUse::kRead && value.is_null()) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("{}: expected a value, got null; without the field its default is taken",
                    object.path_of(field.name)));
  }
  if (field.use != FieldUse::kHarmlessIf || value.is_null()) return;
  const Json harmless = Json::parse(field.values);
  if (std::ranges::find(harmless, value) != harmless.end()) return;
  std::string expected = "null";
  for (const Json& each : harmless) expected += " or " + each.dump();
  throw Error(Code::kUnsupported,
              fmt::format("{}: {} is not supported, expected {}: {}", object.path_of(field.name),
                          shown(value), expected, field.reason));
}

}  // namespace

void rename_aliases(std::span<const FieldAlias> aliases, Json& object) {
  for (const auto& [alias, name] : aliases) {
    const auto found = object.find(std::string(alias));
    if (found == object.end()) continue;
    Json& named = object[std::string(name)];
    if (named.is_null()) {
      named = *found;
    } else if (!found->is_null() && named != *found) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: {} contradicts {} = {}, which is another name of it", alias,
                              shown(*found), name, shown(named)));
    }
    object.erase(std::string(alias));
  }
}

std::string_view name_in_use(const JsonReader& object,
                             std::initializer_list<std::string_view> names) {
  std::string_view used = *names.begin();
  for (const std::string_view name : names) {
    if (!object.has(name) || name == used) continue;
    if (!object.has(used)) {
      used = name;
      continue;
    }
    const Json& first = object.json().at(std::string(used));
    const Json& second = object.json().at(std::string(name));
    if (first == second) continue;
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: {} contradicts {} = {}, which is another name of it",
                            object.path_of(name), shown(second), used, shown(first)));
  }
  return used;
}

const KnownField* find_field(std::span<const KnownField> own,
                             std::span<const KnownField> shared,
                             std::string_view name) {
  const KnownField* field = find_in(own, name);
  return field != nullptr ? field : find_in(shared, name);
}

void refuse_unknown_fields(const JsonReader& object,
                           std::span<const KnownField> own,
                           std::span<const KnownField> shared,
                           std::string_view owner,
                           std::string_view effect) {
  std::vector<std::string> unknown;
  for (const auto& [name, value] : object.json().items()) {
    const KnownField* field = find_field(own, shared, name);
    if (field != nullptr) {
      check_value(object, *field, value);
    } else if (!value.is_null()) {
      unknown.push_back(fmt::format("{} = {}", object.path_of(name), shown(value)));
    }
  }
  if (unknown.empty()) return;
  throw Error(
      Code::kUnsupported,
      fmt::format("{}: not a known field of {}, and may change {}; if it doesn't, take it out "
                  "of the file",
                  first_names(unknown, kMaxListed), owner, effect));
}

}  // namespace tgi
