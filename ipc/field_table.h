// Structs to JSON objects and back by tables of fields, for the codec only (protocol.h is what
// others include). A struct takes part by a specialisation of fields<T>(); a field is one row:
// its name on the wire, the member, and what values it may have.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ipc/protocol.h"

namespace tgi::ipc {

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

struct Rules {
  double low = -kNoLimit;
  double high = kNoLimit;
  bool above_low = false;  // low itself is not allowed
  bool required = false;
  bool leave_out_empty = false;  // an empty string or list is not written, nor is false
  bool is_object = false;        // of JSON that is kept as it is: an object, not a list of them
};

inline constexpr Rules kLeaveOutEmpty = {.leave_out_empty = true};

template <typename T>
struct Field {
  std::string_view name;
  void (*read)(const OrderedJson& json, const std::string& path, const Rules& rules, T& object);
  OrderedJson (*write)(const T& object);
  Rules rules;
};

// Lists, optionals, text and JSON itself have overloads of their own, which win over this.
template <typename T>
concept Struct = std::is_class_v<T>;

template <Struct T>
std::span<const Field<T>> fields();

template <>
std::span<const Field<TokenBias>> fields<TokenBias>();
template <>
std::span<const Field<GuideParams>> fields<GuideParams>();
template <>
std::span<const Field<MergedAdapters>> fields<MergedAdapters>();
template <>
std::span<const Field<AcceptedEvent>> fields<AcceptedEvent>();
template <>
std::span<const Field<ProgressEvent>> fields<ProgressEvent>();
template <>
std::span<const Field<TokenSpan>> fields<TokenSpan>();
template <>
std::span<const Field<SamplingDefaults>> fields<SamplingDefaults>();
template <>
std::span<const Field<GenerateParams>> fields<GenerateParams>();
template <>
std::span<const Field<GenerateRequest>> fields<GenerateRequest>();
template <>
std::span<const Field<TokenizeParams>> fields<TokenizeParams>();
template <>
std::span<const Field<LoadAdapterParams>> fields<LoadAdapterParams>();
template <>
std::span<const Field<MergeParams>> fields<MergeParams>();
template <>
std::span<const Field<UnloadAdapterParams>> fields<UnloadAdapterParams>();
template <>
std::span<const Field<AdapterStatus>> fields<AdapterStatus>();
template <>
std::span<const Field<AdapterList>> fields<AdapterList>();
template <>
std::span<const Field<TokenInfo>> fields<TokenInfo>();
template <>
std::span<const Field<TokenEvent>> fields<TokenEvent>();
template <>
std::span<const Field<Timings>> fields<Timings>();
template <>
std::span<const Field<SequenceResult>> fields<SequenceResult>();
template <>
std::span<const Field<DoneEvent>> fields<DoneEvent>();
template <>
std::span<const Field<MemoryPlan>> fields<MemoryPlan>();
template <>
std::span<const Field<LeftOutKernels>> fields<LeftOutKernels>();
template <>
std::span<const Field<ModelStatus>> fields<ModelStatus>();
template <>
std::span<const Field<Counters>> fields<Counters>();
template <>
std::span<const Field<Status>> fields<Status>();
template <>
std::span<const Field<TokenizeResult>> fields<TokenizeResult>();
template <>
std::span<const Field<Hello>> fields<Hello>();

// The common form of a token event, or nothing: then the tables have to read it.
std::optional<TokenEvent> try_decode_token_event(std::string_view line);

[[noreturn]] inline void fail_field(const std::string& path, const std::string& problem) {
  throw Error(Code::kInvalidArgument, fmt::format("{}: {}", path, problem));
}

[[noreturn]] inline void fail_type(const std::string& path,
                                   std::string_view expected,
                                   const OrderedJson& got) {
  fail_field(path, fmt::format("expected {}, got {}", expected, got.type_name()));
}

template <typename Number>
void check_range(Number value, const std::string& path, const Rules& rules) {
  const auto real = static_cast<double>(value);
  if (real > rules.low || (real == rules.low && !rules.above_low)) {
    if (real <= rules.high) return;
  }
  const std::string_view relation = rules.above_low ? "more than" : "at least";
  const bool bounded = rules.high != kNoLimit;
  fail_field(path, fmt::format("expected a number {} {}{}, got {}", relation, rules.low,
                               bounded ? fmt::format(" and at most {}", rules.high) : "", value));
}

// --- reading; one overload per kind of member

inline void read_value(const OrderedJson& json, const std::string& path, const Rules&, bool& out) {
  if (!json.is_boolean()) fail_type(path, "true or false", json);
  out = json.get<bool>();
}

template <std::integral Integer>
void read_value(const OrderedJson& json,
                const std::string& path,
                const Rules& rules,
                Integer& out) {
  if (!json.is_number()) fail_type(path, "a whole number", json);
  // Only integers are taken: 1e400, 3.5 and 2^70 come out of the parser as reals.
  if (!json.is_number_integer()) {
    fail_field(path, fmt::format("expected a whole number, got {}", json.get<double>()));
  }
  const auto fits = [&](auto wide) {
    if (!std::in_range<Integer>(wide)) {
      fail_field(path, fmt::format("expected a number from {} to {}, got {}",
                                   std::numeric_limits<Integer>::min(),
                                   std::numeric_limits<Integer>::max(), wide));
    }
    check_range(wide, path, rules);
    out = static_cast<Integer>(wide);
  };
  json.is_number_unsigned() ? fits(json.get<uint64_t>()) : fits(json.get<int64_t>());
}

inline void read_value(const OrderedJson& json,
                       const std::string& path,
                       const Rules& rules,
                       double& out) {
  if (!json.is_number()) fail_type(path, "a number", json);
  out = json.get<double>();
  check_range(out, path, rules);
}

inline void read_value(const OrderedJson& json,
                       const std::string& path,
                       const Rules&,
                       std::string& out) {
  if (!json.is_string()) fail_type(path, "a string", json);
  out = json.get<std::string>();
}

// What is kept as it is: an object, or a list of objects such as messages and tools.
inline void read_value(const OrderedJson& json,
                       const std::string& path,
                       const Rules& rules,
                       OrderedJson& out) {
  if (rules.is_object) {
    if (!json.is_object()) fail_type(path, "an object", json);
    out = json;
    return;
  }
  if (!json.is_array()) fail_type(path, "an array of objects", json);
  for (size_t i = 0; i < json.size(); ++i) {
    if (!json[i].is_object()) fail_type(fmt::format("{}.{}", path, i), "an object", json[i]);
  }
  out = json;
}

void read_value(const OrderedJson& json,
                const std::string& path,
                const Rules& rules,
                FinishReason& out);

template <typename T>
requires requires {
  fields<T>();
} && std::is_class_v<T>
void read_value(const OrderedJson& json, const std::string& path, const Rules& rules, T& out);

template <typename T>
void read_value(const OrderedJson& json,
                const std::string& path,
                const Rules& rules,
                std::optional<T>& out) {
  read_value(json, path, rules, out.emplace());
}

template <typename T>
void read_value(const OrderedJson& json,
                const std::string& path,
                const Rules& rules,
                std::vector<T>& out) {
  if (!json.is_array()) fail_type(path, "an array", json);
  out.clear();
  out.reserve(json.size());
  for (size_t i = 0; i < json.size(); ++i) {
    read_value(json[i], fmt::format("{}.{}", path, i), rules, out.emplace_back());
  }
}

// --- writing; null means "leave it out"

template <typename T>
OrderedJson write_value(const T& value);
template <typename T>
OrderedJson write_value(const std::optional<T>& value);
template <typename T>
OrderedJson write_value(const std::vector<T>& values);

// --- whole objects

// Reads the members that `json` has into `out`; null counts as absent.
template <typename T>
void read_fields(const OrderedJson& json, const std::string& path, T& out) {
  for (const Field<T>& field : fields<T>()) {
    const auto it = json.find(std::string(field.name));
    const std::string field_path =
        path.empty() ? std::string(field.name) : fmt::format("{}.{}", path, field.name);
    if (it != json.end() && !it->is_null()) {
      field.read(*it, field_path, field.rules, out);
    } else if (field.rules.required) {
      fail_field(field_path, "missing");
    }
  }
}

inline void require_object(const OrderedJson& json, const std::string& path) {
  if (!json.is_object()) fail_type(path.empty() ? "the document" : path, "an object", json);
}

// Throws naming the first member of `json` that is not known.
template <typename Name>
void refuse_others(const OrderedJson& json,
                   const std::vector<Name>& known,
                   const std::string& path) {
  for (const auto& item : json.items()) {
    bool found = false;
    for (const std::string_view name : known) found = found || name == item.key();
    if (!found) {
      fail_field(path.empty() ? item.key() : fmt::format("{}.{}", path, item.key()),
                 fmt::format("unknown field; known are {}", fmt::join(known, ", ")));
    }
  }
}

// The same of what no table knows.
template <typename... T>
void refuse_unknown(const OrderedJson& json, const std::string& path) {
  std::vector<std::string_view> known;
  const auto collect = [&](const auto& table) {
    for (const auto& field : table) known.push_back(field.name);
  };
  (collect(fields<T>()), ...);
  refuse_others(json, known, path);
}

template <typename T>
void write_fields(const T& object, OrderedJson& out) {
  for (const Field<T>& field : fields<T>()) {
    OrderedJson value = field.write(object);
    const bool empty = value.empty() || (value.is_string() && value == "") || value == false;
    if (value.is_null() || (empty && field.rules.leave_out_empty)) continue;
    out[std::string(field.name)] = std::move(value);
  }
}

template <typename T>
requires requires {
  fields<T>();
} && std::is_class_v<T>
void read_value(const OrderedJson& json, const std::string& path, const Rules&, T& out) {
  require_object(json, path);
  read_fields(json, path, out);
}

// A whole answer of the daemon; `path` is what errors call it.
template <typename T>
T from_reply(const OrderedJson& json, const std::string& path) {
  T out;
  read_value(json, path, Rules{}, out);
  return out;
}

std::string write_finish_reason(FinishReason reason);

template <typename T>
OrderedJson write_value(const T& value) {
  if constexpr (std::is_same_v<T, FinishReason>) {
    return write_finish_reason(value);
  } else if constexpr (std::is_same_v<T, OrderedJson> || std::is_same_v<T, std::string> ||
                       std::is_arithmetic_v<T>) {
    return value;  // a number that is not finite is written as null by the library
  } else {
    OrderedJson out = OrderedJson::object();
    write_fields(value, out);
    return out;
  }
}

template <typename T>
OrderedJson write_value(const std::optional<T>& value) {
  return value ? write_value(*value) : OrderedJson();
}

template <typename T>
OrderedJson write_value(const std::vector<T>& values) {
  OrderedJson out = OrderedJson::array();
  for (const T& value : values) out.push_back(write_value(value));
  return out;
}

// --- one row of a table

template <auto kMember>
struct MemberOf;
template <typename T, typename M, M T::*kMember>
struct MemberOf<kMember> {
  using Object = T;
};

template <auto kMember>
constexpr auto field(std::string_view name, Rules rules = {}) {
  using T = typename MemberOf<kMember>::Object;
  return Field<T>{
      .name = name,
      .read = [](const OrderedJson& json, const std::string& path, const Rules& row_rules,
                 T& object) { read_value(json, path, row_rules, object.*kMember); },
      .write = [](const T& object) { return write_value(object.*kMember); },
      .rules = rules,
  };
}

}  // namespace tgi::ipc
