// Checks that requests of several methods share. Each throws Error{kInvalidArgument} naming the
// field.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <string>

#include "ipc/field_table.h"

namespace tgi::ipc {

template <typename T>
T from_params(const OrderedJson& params) {
  require_object(params, "params");
  refuse_unknown<T>(params, "");
  T out;
  read_fields(params, "", out);
  return out;
}

inline void check_one_of(const std::string& names, std::initializer_list<bool> given) {
  int count = 0;
  for (const bool one : given) count += one ? 1 : 0;
  if (count != 1) fail_field(names, fmt::format("expected exactly one of them, got {}", count));
}

inline void check_adapter_name(const std::string& field, const std::string& name) {
  if (name.empty()) fail_field(field, "expected the name of an adapter, got \"\"");
  if (name.size() > kMaxAdapterName) {
    fail_field(field,
               fmt::format("expected at most {} bytes, got {}", kMaxAdapterName, name.size()));
  }
}

// The daemon has a working folder of its own.
inline void check_adapter_path(const std::string& field, const std::string& path) {
  if (!path.starts_with('/')) {
    fail_field(field, fmt::format("expected the absolute path of a folder, got \"{}\"",
                                  path.substr(0, 200)));
  }
}

}  // namespace tgi::ipc
