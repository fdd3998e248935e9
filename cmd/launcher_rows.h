// What the rows of the launcher table are made of: one constexpr function per kind of row. Only for
// the files that hold the rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/literal.h"
#include "cmd/launcher_flags.h"
#include "cmd/launcher_setters.h"

namespace tgi {

// What to do instead, of more than one row.
inline constexpr std::string_view kLeaveOut = "leave it out";
inline constexpr std::string_view kGiveFolder = "give the folder of the model as --model-id";

using Set = void (*)(ServeOptions&, const std::string&);

constexpr LauncherRow sets(std::string_view flag,
                           std::string_view value_name,
                           std::string_view text,
                           Set set,
                           EnvUse env = EnvUse::kRead) {
  return {.flag = flag,
          .value_name = value_name,
          .use = FlagUse::kSets,
          .env = env,
          .text = text,
          .instead = {},
          .fixed = {},
          .short_name = {},
          .set = set};
}

template <auto kMember, int64_t kLow = 1>
constexpr LauncherRow sets_count(std::string_view flag, std::string_view text) {
  return sets(flag, "N", text, [](ServeOptions& options, const std::string& value) {
    options.*kMember = parse_launcher_count(value, kLow);
  });
}

template <auto kMember>
constexpr LauncherRow sets_switch(std::string_view flag, std::string_view text) {
  return sets(flag, "", text, [](ServeOptions& options, const std::string& value) {
    options.*kMember = parse_launcher_switch(value);
  });
}

// To tgid, as the flag of that name there.
template <Literal kFlag>
void pass(ServeOptions& options, const std::string& value) {
  pass_setting(options, kFlag.view(), value);
}

template <Literal kRoute>
void add_alias(ServeOptions& options, const std::string& value) {
  add_route_alias(options, value, kRoute.view());
}

constexpr LauncherRow refused(std::string_view flag,
                              std::string_view value_name,
                              std::string_view text,
                              std::string_view instead,
                              EnvUse env = EnvUse::kWarns) {
  return {.flag = flag,
          .value_name = value_name,
          .use = FlagUse::kRefused,
          .env = env,
          .text = text,
          .instead = instead,
          .fixed = {},
          .short_name = {}};
}

// `values`: those that say what holds here anyway.
constexpr LauncherRow fixed(std::string_view flag,
                            std::string_view value_name,
                            std::string_view values,
                            std::string_view text,
                            std::string_view instead,
                            EnvUse env = EnvUse::kWarns) {
  LauncherRow row = refused(flag, value_name, text, instead, env);
  row.use = FlagUse::kFixed;
  row.fixed = values;
  return row;
}

// A variable that is never looked at.
constexpr LauncherRow unread(std::string_view name, std::string_view text) {
  return refused(name, "TEXT", text, {}, EnvUse::kUnread);
}

constexpr LauncherRow with_short(LauncherRow row, std::string_view short_name) {
  row.short_name = short_name;
  return row;
}

constexpr LauncherRow in_place_of(std::string_view flag, LauncherRow row) {
  row.in_place_of = flag;
  return row;
}

constexpr LauncherRow as_list(LauncherRow row) {
  row.is_list = true;
  return row;
}

// One span per file of rows.
std::span<const LauncherRow> serve_rows();
std::span<const LauncherRow> tgi_launcher_rows();
std::span<const LauncherRow> tgi_router_rows();
std::span<const LauncherRow> lorax_rows();
std::span<const LauncherRow> llamacpp_rows();
std::span<const LauncherRow> variable_rows();

}  // namespace tgi
