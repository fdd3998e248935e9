// JSON bodies to structs by tables of fields, and the same tables to the OpenAPI document, so that
// what is documented is what is checked. A struct takes part by a specialisation of body_fields<T>.
//
// Null counts as absent. A value of the wrong type is refused with its path. A member that is in no
// table is refused by its name: whoever sends it expects something of it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "cmd/http/api_error.h"
#include "ipc/protocol.h"

namespace tgi::http {

using ipc::OrderedJson;

// Values a number may have. `rule` is what a client is told, after "Input validation error: ".
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool above_low = false;   // low itself is not allowed
  bool below_high = false;  // high itself is not allowed
  std::string_view rule = "";

  bool holds(double value) const {
    const bool low_holds = above_low ? value > low : value >= low;
    const bool high_holds = below_high ? value < high : value <= high;
    return low_holds && high_holds;
  }
};

constexpr Range positive(std::string_view rule) {
  return {.low = 0, .above_low = true, .rule = rule};
}

template <typename T>
struct BodyField {
  std::string_view name;
  std::string_view description;
  bool required;
  Range range;
  void (*read)(const OrderedJson& json, const std::string& path, T& body);
  OrderedJson (*schema)();
  std::optional<double> (*number)(const T& body);  // nothing: no number, or absent
};

template <typename T>
std::span<const BodyField<T>> body_fields();

// A member that clients of other servers send and that nothing here reads.
struct ExtraField {
  std::string_view name;
  // A JSON array of the values that ask for nothing that is not done anyway; kAnything: all do.
  std::string_view harmless;
  std::string_view reason;  // why it is harmless, or what it would ask for
};
inline constexpr std::string_view kAnything = "*";

// Those of T; a specialisation says which.
template <typename T>
std::span<const ExtraField> extra_fields() {
  return {};
}

// Refuses a member that is not in the table of the body: takes it when it is a harmless one of
// `extras`. `path` is its whole name, `known` what the body has.
void check_extra_field(const std::string& path,
                       const std::string& name,
                       const OrderedJson& value,
                       std::span<const ExtraField> extras,
                       std::span<const std::string_view> known);

// The name of T in the OpenAPI document.
template <typename T>
struct SchemaName;

template <typename T>
concept BodyStruct = requires {
  SchemaName<T>::value;
};

[[noreturn]] inline void fail_body(const std::string& path, const std::string& problem) {
  throw BodyError(422,
                  fmt::format("Failed to deserialize the JSON body into the target type: {}: {}",
                              path, problem),
                  path);
}

[[noreturn]] inline void fail_body_type(const std::string& path,
                                        std::string_view expected,
                                        const OrderedJson& got) {
  fail_body(path, fmt::format("invalid type: {}, expected {}", got.type_name(), expected));
}

inline void read_body_value(const OrderedJson& json, const std::string& path, bool& out) {
  if (!json.is_boolean()) fail_body_type(path, "a boolean", json);
  out = json.get<bool>();
}

template <std::integral Integer>
void read_body_value(const OrderedJson& json, const std::string& path, Integer& out) {
  if (!json.is_number_integer()) fail_body_type(path, "a whole number", json);
  const auto take = [&](auto wide) {
    if (!std::in_range<Integer>(wide)) {
      fail_body(path, fmt::format("invalid value: {}, expected a number from {} to {}", wide,
                                  std::numeric_limits<Integer>::min(),
                                  std::numeric_limits<Integer>::max()));
    }
    out = static_cast<Integer>(wide);
  };
  json.is_number_unsigned() ? take(json.get<uint64_t>()) : take(json.get<int64_t>());
}

inline void read_body_value(const OrderedJson& json, const std::string& path, double& out) {
  if (!json.is_number()) fail_body_type(path, "a number", json);
  out = json.get<double>();
}

inline void read_body_value(const OrderedJson& json, const std::string& path, std::string& out) {
  if (!json.is_string()) fail_body_type(path, "a string", json);
  out = json.get<std::string>();
}

inline void read_body_value(const OrderedJson& json, const std::string&, OrderedJson& out) {
  out = json;  // whatever it is: the handler looks closer
}

template <BodyStruct T>
void read_body_value(const OrderedJson& json, const std::string& path, T& out);

template <typename T>
void read_body_value(const OrderedJson& json, const std::string& path, std::vector<T>& out);

template <typename T>
void read_body_value(const OrderedJson& json, const std::string& path, std::optional<T>& out) {
  read_body_value(json, path, out.emplace());
}

template <typename T>
void read_body_value(const OrderedJson& json, const std::string& path, std::vector<T>& out) {
  if (!json.is_array()) fail_body_type(path, "an array", json);
  out.clear();
  for (size_t i = 0; i < json.size(); ++i) {
    read_body_value(json[i], fmt::format("{}[{}]", path, i), out.emplace_back());
  }
}

template <typename T>
void check_extra_fields(const OrderedJson& json, const std::string& path) {
  std::vector<std::string_view> known;
  for (const BodyField<T>& field : body_fields<T>()) known.push_back(field.name);
  for (const auto& item : json.items()) {
    if (std::find(known.begin(), known.end(), item.key()) != known.end()) continue;
    check_extra_field(path.empty() ? item.key() : path + "." + item.key(), item.key(), item.value(),
                      extra_fields<T>(), known);
  }
}

template <typename T>
void read_body_fields(const OrderedJson& json, const std::string& path, T& out) {
  if (!json.is_object()) fail_body_type(path.empty() ? "body" : path, "an object", json);
  for (const BodyField<T>& field : body_fields<T>()) {
    const std::string name(field.name);
    const std::string where = path.empty() ? name : path + "." + name;
    const auto it = json.find(name);
    if (it != json.end() && !it->is_null()) {
      field.read(*it, where, out);
    } else if (field.required) {
      fail_body(where, "missing field");
    }
  }
  check_extra_fields<T>(json, path);
}

template <BodyStruct T>
void read_body_value(const OrderedJson& json, const std::string& path, T& out) {
  read_body_fields(json, path, out);
}

template <typename T>
T read_body(const OrderedJson& json) {
  T out;
  read_body_fields(json, "", out);
  return out;
}

// Throws the rule of the first number, in the order of the table, that is out of its range.
template <typename T>
void check_ranges(const T& body) {
  for (const BodyField<T>& field : body_fields<T>()) {
    const std::optional<double> number = field.number(body);
    if (number && !field.range.holds(*number)) {
      throw validation_error(std::string(field.range.rule));
    }
  }
}

// --- schemas

template <typename T>
struct SchemaOf;

template <>
struct SchemaOf<bool> {
  static OrderedJson get() { return {{"type", "boolean"}}; }
};
template <std::integral Integer>
struct SchemaOf<Integer> {
  static OrderedJson get() {
    OrderedJson out = {{"type", "integer"}, {"format", sizeof(Integer) == 8 ? "int64" : "int32"}};
    if (std::is_unsigned_v<Integer>) out["minimum"] = 0;
    return out;
  }
};
template <>
struct SchemaOf<double> {
  static OrderedJson get() { return {{"type", "number"}, {"format", "float"}}; }
};
template <>
struct SchemaOf<std::string> {
  static OrderedJson get() { return {{"type", "string"}}; }
};
template <>
struct SchemaOf<OrderedJson> {
  static OrderedJson get() { return OrderedJson::object(); }
};
template <BodyStruct T>
struct SchemaOf<T> {
  static OrderedJson get() {
    return {{"$ref", "#/components/schemas/" + std::string(SchemaName<T>::value)}};
  }
};
template <typename T>
struct SchemaOf<std::optional<T>> {
  static OrderedJson get() { return SchemaOf<T>::get(); }
};
template <typename T>
struct SchemaOf<std::vector<T>> {
  static OrderedJson get() { return {{"type", "array"}, {"items", SchemaOf<T>::get()}}; }
};

template <typename T>
OrderedJson field_schema(const BodyField<T>& field) {
  OrderedJson out = field.schema();
  if (std::isfinite(field.range.low)) {
    out["minimum"] = field.range.low;
    if (field.range.above_low) out["exclusiveMinimum"] = true;
  }
  if (std::isfinite(field.range.high)) {
    out["maximum"] = field.range.high;
    if (field.range.below_high) out["exclusiveMaximum"] = true;
  }
  if (!out.contains("$ref")) {
    if (!field.required) out["nullable"] = true;
    if (!field.description.empty()) out["description"] = field.description;
  }
  return out;
}

OrderedJson extra_field_schema(const ExtraField& extra);

template <typename T>
OrderedJson body_schema() {
  OrderedJson properties = OrderedJson::object();
  OrderedJson required = OrderedJson::array();
  for (const BodyField<T>& field : body_fields<T>()) {
    properties[std::string(field.name)] = field_schema(field);
    if (field.required) required.push_back(field.name);
  }
  for (const ExtraField& extra : extra_fields<T>()) {
    properties[std::string(extra.name)] = extra_field_schema(extra);
  }
  OrderedJson out = {{"type", "object"}};
  if (!required.empty()) out["required"] = required;
  out["properties"] = std::move(properties);
  out["additionalProperties"] = false;
  return out;
}

// --- tables and their rows

template <typename Row, size_t... kSizes>
constexpr auto joined_rows(const std::array<Row, kSizes>&... tables) {
  std::array<Row, (kSizes + ...)> out{};
  auto to = out.begin();
  ((to = std::copy(tables.begin(), tables.end(), to)), ...);
  return out;
}

inline std::optional<double> number_in(const auto& value) {
  using T = std::remove_cvref_t<decltype(value)>;
  if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
    return static_cast<double>(value);
  } else if constexpr (requires { value.has_value(); }) {
    return value ? number_in(*value) : std::nullopt;
  } else {
    return std::nullopt;
  }
}

template <auto kMember>
struct BodyMember;
template <typename T, typename M, M T::*kMember>
struct BodyMember<kMember> {
  using Object = T;
  using Value = M;
};

struct FieldInfo {
  std::string_view description = "";
  bool required = false;
  Range range = {};
};

// A member of T, or of what T inherits from.
template <typename T, auto kMember>
constexpr auto inherited_field(std::string_view name, FieldInfo info = {}) {
  using M = typename BodyMember<kMember>::Value;
  return BodyField<T>{
      .name = name,
      .description = info.description,
      .required = info.required,
      .range = info.range,
      .read = [](const OrderedJson& json, const std::string& path,
                 T& body) { read_body_value(json, path, body.*kMember); },
      .schema = [] { return SchemaOf<M>::get(); },
      .number = [](const T& body) { return number_in(body.*kMember); },
  };
}

// 2 of 2.0, and anything else as it is.
inline OrderedJson whole_if_it_is(const OrderedJson& json) {
  constexpr double kExact = 9007199254740992;  // 2^53: beyond, a double is no count any more
  if (!json.is_number_float()) return json;
  const double value = json.get<double>();
  const bool is_whole = std::trunc(value) == value && std::abs(value) <= kExact;
  return is_whole ? OrderedJson(static_cast<int64_t>(value)) : json;
}

// A whole number of an API whose own server reads all numbers as real ones, so that 2.0 is 2.
template <typename T, auto kMember>
constexpr auto counting_field(std::string_view name, FieldInfo info = {}) {
  BodyField<T> out = inherited_field<T, kMember>(name, info);
  out.read = [](const OrderedJson& json, const std::string& path, T& body) {
    read_body_value(whole_if_it_is(json), path, body.*kMember);
  };
  return out;
}

template <auto kMember>
constexpr auto body_field(std::string_view name, FieldInfo info = {}) {
  return inherited_field<typename BodyMember<kMember>::Object, kMember>(name, info);
}

}  // namespace tgi::http
