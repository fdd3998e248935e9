#include "base/json.h"

#include <fmt/format.h>

#include <limits>

#include "base/error.h"
#include "base/json_syntax.h"

namespace tgi {
namespace {

[[noreturn]] void fail_type(const std::string& path, std::string_view expected, const Json& got) {
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: expected {}, got {}", path, expected, got.type_name()));
}

int64_t to_integer(const Json& value, const std::string& path) {
  if (value.is_number_unsigned()) {
    const auto wide = value.get<uint64_t>();
    if (wide > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      throw Error(Code::kInvalidArgument, fmt::format("{}: {} is too large", path, wide));
    }
    return static_cast<int64_t>(wide);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  // Some exporters write whole numbers as 1e6 or 4096.0.
  if (value.is_number_float()) {
    const double real = value.get<double>();
    if (real >= -9.0e15 && real <= 9.0e15 &&
        real == static_cast<double>(static_cast<int64_t>(real))) {
      return static_cast<int64_t>(real);
    }
  }
  fail_type(path, "a whole number", value);
}

}  // namespace

Json parse_json(std::string_view text, int max_depth) {
  const auto limit_depth = [max_depth](int depth, Json::parse_event_t event, Json& /*parsed*/) {
    const bool opens =
        event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && depth >= max_depth) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("JSON nests deeper than {} levels", max_depth));
    }
    return true;
  };
  try {
    return Json::parse(text, limit_depth);
  } catch (const Json::exception&) {
    throw json_syntax_error(text);
  }
}

JsonReader::JsonReader(const Json& object, std::string path)
    : object_(&object), path_(std::move(path)) {
  if (!object.is_object()) fail_type(path_.empty() ? "the document" : path_, "an object", object);
}

std::string JsonReader::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

const Json* JsonReader::find(std::string_view key) const {
  const auto it = object_->find(std::string(key));
  return it == object_->end() || it->is_null() ? nullptr : &*it;
}

const Json& JsonReader::require(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: missing", path_of(key)));
  }
  return *value;
}

bool JsonReader::has(std::string_view key) const {
  return find(key) != nullptr;
}

std::string JsonReader::string(std::string_view key) const {
  const Json& value = require(key);
  if (!value.is_string()) fail_type(path_of(key), "a string", value);
  return value.get<std::string>();
}

int64_t JsonReader::integer(std::string_view key) const {
  return to_integer(require(key), path_of(key));
}

double JsonReader::number(std::string_view key) const {
  const Json& value = require(key);
  if (!value.is_number()) fail_type(path_of(key), "a number", value);
  return value.get<double>();
}

bool JsonReader::boolean(std::string_view key) const {
  const Json& value = require(key);
  if (!value.is_boolean()) fail_type(path_of(key), "true or false", value);
  return value.get<bool>();
}

JsonReader JsonReader::object(std::string_view key) const {
  return JsonReader(require(key), path_of(key));
}

std::string JsonReader::string_or(std::string_view key, std::string fallback) const {
  return has(key) ? string(key) : std::move(fallback);
}
int64_t JsonReader::integer_or(std::string_view key, int64_t fallback) const {
  return has(key) ? integer(key) : fallback;
}
double JsonReader::number_or(std::string_view key, double fallback) const {
  return has(key) ? number(key) : fallback;
}
bool JsonReader::boolean_or(std::string_view key, bool fallback) const {
  return has(key) ? boolean(key) : fallback;
}
std::optional<std::string> JsonReader::optional_string(std::string_view key) const {
  return has(key) ? std::optional(string(key)) : std::nullopt;
}
std::optional<int64_t> JsonReader::optional_integer(std::string_view key) const {
  return has(key) ? std::optional(integer(key)) : std::nullopt;
}
std::optional<double> JsonReader::optional_number(std::string_view key) const {
  return has(key) ? std::optional(number(key)) : std::nullopt;
}

std::vector<std::string> JsonReader::strings_or_empty(std::string_view key) const {
  std::vector<std::string> out;
  const Json* value = find(key);
  if (value == nullptr) return out;
  if (!value->is_array()) fail_type(path_of(key), "an array of strings", *value);
  for (const Json& item : *value) {
    if (!item.is_string()) fail_type(path_of(key), "an array of strings", item);
    out.push_back(item.get<std::string>());
  }
  return out;
}

void JsonReader::refuse_unknown(const std::vector<std::string_view>& known) const {
  for (const auto& [key, value] : object_->items()) {
    bool found = false;
    for (const std::string_view name : known) found = found || name == key;
    if (!found) {
      throw Error(Code::kInvalidArgument, fmt::format("{}: unknown field; known are {}",
                                                      path_of(key), fmt::join(known, ", ")));
    }
  }
}

}  // namespace tgi
