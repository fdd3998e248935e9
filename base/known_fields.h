// Tables of what is known of the members of a JSON object that others wrote: a row per field. A
// field that no row knows may change what the file means: it is refused by name, and so is a known
// one with a value that asks for something else than is done here.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"

namespace tgi {

enum class FieldUse : uint8_t {
  kRead,        // by the reader; null is not a value of it
  kReadOrNull,  // by the reader, to which null says the same as no field, or something of its own
  kHarmless,    // changes nothing that is computed here
  kHarmlessIf,  // harmless with null and some values, refused with all others
};

struct KnownField {
  std::string_view name;  // a last '*' stands for any ending
  FieldUse use = FieldUse::kHarmless;
  std::string_view reason{};  // why it is harmless, or is refused with other values
  std::string_view values{};  // kHarmlessIf: a JSON array of the harmless ones
};

constexpr KnownField read(std::string_view name) {
  return {.name = name, .use = FieldUse::kRead};
}
constexpr KnownField read_or_null(std::string_view name) {
  return {.name = name, .use = FieldUse::kReadOrNull};
}
constexpr KnownField harmless(std::string_view name, std::string_view reason) {
  return {.name = name, .use = FieldUse::kHarmless, .reason = reason};
}
constexpr KnownField harmless_if(std::string_view name,
                                 std::string_view values,
                                 std::string_view reason) {
  return {.name = name, .use = FieldUse::kHarmlessIf, .reason = reason, .values = values};
}

template <size_t... kSizes>
constexpr auto join_fields(const std::array<KnownField, kSizes>&... parts) {
  std::array<KnownField, (kSizes + ...)> out{};
  size_t end = 0;
  const auto append = [&](const auto& part) {
    std::copy(part.begin(), part.end(), out.begin() + static_cast<ptrdiff_t>(end));
    end += part.size();
  };
  (append(parts), ...);
  return out;
}

// Another name of a field, as the attribute_map of a config class says it.
struct FieldAlias {
  std::string_view alias;
  std::string_view name;
};

// Gives aliased members of `object` their names. Throws kInvalidArgument where both names are there
// with different values.
void rename_aliases(std::span<const FieldAlias> aliases, Json& object);

// Which of the names of one field the object has; the first when it has none. Throws
// kInvalidArgument where two of them have different values.
std::string_view name_in_use(const JsonReader& object,
                             std::initializer_list<std::string_view> names);

// Looks a field up by its whole name first, then by its beginning; null: neither table knows it.
const KnownField* find_field(std::span<const KnownField> own,
                             std::span<const KnownField> shared,
                             std::string_view name);

// Throws kUnsupported naming every member that no row knows (null ones say nothing and pass), and
// the first known one with a value it can't have. `owner` is what the fields are of, `effect` what
// an unknown one may change.
void refuse_unknown_fields(const JsonReader& object,
                           std::span<const KnownField> own,
                           std::span<const KnownField> shared,
                           std::string_view owner,
                           std::string_view effect = "what the model computes");

}  // namespace tgi
