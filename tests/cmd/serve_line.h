// A command line of `tgi serve` and its variables, as the tests write them.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cmd/serve_flags.h"
#include "cmd/session.h"

namespace tgi {

using Variables = std::map<std::string, std::string>;

inline ServeOptions resolve(std::vector<std::string> arguments, const Variables& variables = {}) {
  CLI::App app;
  ServeFlags flags;
  add_serve_flags(app, flags);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes a vector
  app.parse(arguments);
  return resolve_serve_flags(flags, [&](const std::string& name) {
    const auto it = variables.find(name);
    return it == variables.end() ? std::nullopt : std::optional(it->second);
  });
}

// The message of a wrong command line, or "" when it is right.
inline std::string refusal(const std::vector<std::string>& arguments,
                           const Variables& variables = {}) {
  try {
    resolve(arguments, variables);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

inline std::optional<Code> code_of(const std::vector<std::string>& arguments,
                                   const Variables& variables = {}) {
  try {
    resolve(arguments, variables);
  } catch (const Error& error) {
    return error.code();
  } catch (const UsageError&) {
  }
  return std::nullopt;
}

}  // namespace tgi
