// Makes the rows of a table of settings: the member that holds a setting says what kind it is.
//   std::string           a text, or one of the row's choices
//   bool                  a switch: a flag without a value; in the environment "1" or "0"
//   int32_t, double       a number in the row's range
//   int64_t               a size in bytes, as "4GiB"
//   milliseconds          seconds, as "0.5"
//   std::optional<...>    a number as above, or "auto": nothing
// Only for the files that hold tables.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "ipc/ordered_json.h"
#include "ipc/setting.h"

namespace tgi::ipc {

void parse_setting(const SettingFacts& row, const std::string& text, std::string& out);
void parse_setting(const SettingFacts& row, const std::string& text, bool& out);
void parse_setting(const SettingFacts& row, const std::string& text, int32_t& out);
void parse_setting(const SettingFacts& row, const std::string& text, int64_t& out);
void parse_setting(const SettingFacts& row, const std::string& text, double& out);
void parse_setting(const SettingFacts& row,
                   const std::string& text,
                   std::chrono::milliseconds& out);

std::string format_setting(const std::string& value);
std::string format_setting(bool value);
std::string format_setting(int32_t value);
std::string format_setting(int64_t value);
std::string format_setting(double value);
std::string format_setting(std::chrono::milliseconds value);

void read_setting(const SettingFacts& row, const OrderedJson& json, std::string& out);
void read_setting(const SettingFacts& row, const OrderedJson& json, bool& out);
void read_setting(const SettingFacts& row, const OrderedJson& json, int32_t& out);
void read_setting(const SettingFacts& row, const OrderedJson& json, int64_t& out);
void read_setting(const SettingFacts& row, const OrderedJson& json, double& out);
void read_setting(const SettingFacts& row, const OrderedJson& json, std::chrono::milliseconds& out);
bool is_auto(const OrderedJson& json);

void write_setting(const std::string& value, OrderedJson& json);
void write_setting(bool value, OrderedJson& json);
void write_setting(int32_t value, OrderedJson& json);
void write_setting(int64_t value, OrderedJson& json);
void write_setting(double value, OrderedJson& json);
void write_setting(std::chrono::milliseconds value, OrderedJson& json);

inline constexpr std::string_view kAutomatic = "auto";

template <typename T>
void parse_setting(const SettingFacts& row, const std::string& text, std::optional<T>& out) {
  if (text == kAutomatic) return out.reset();
  T value{};
  parse_setting(row, text, value);
  out = value;
}

template <typename T>
std::string format_setting(const std::optional<T>& value) {
  return value ? format_setting(*value) : std::string(kAutomatic);
}

template <typename T>
void read_setting(const SettingFacts& row, const OrderedJson& json, std::optional<T>& out) {
  if (is_auto(json)) return out.reset();
  T value{};
  read_setting(row, json, value);
  out = value;
}

template <typename T>
void write_setting(const std::optional<T>& value, OrderedJson& json) {
  value ? write_setting(*value, json) : write_setting(std::string(kAutomatic), json);
}

template <typename T>
struct SettingType {
  static constexpr SettingKind kKind = SettingKind::kWhole;
  static constexpr std::string_view kValueName = "N";
  static constexpr bool kMayBeAuto = false;
};
template <>
struct SettingType<std::string> {
  static constexpr SettingKind kKind = SettingKind::kText;
  static constexpr std::string_view kValueName = "TEXT";
  static constexpr bool kMayBeAuto = false;
};
template <>
struct SettingType<bool> {
  static constexpr SettingKind kKind = SettingKind::kSwitch;
  static constexpr std::string_view kValueName = "";
  static constexpr bool kMayBeAuto = false;
};
template <>
struct SettingType<int64_t> {
  static constexpr SettingKind kKind = SettingKind::kSize;
  static constexpr std::string_view kValueName = "SIZE";
  static constexpr bool kMayBeAuto = false;
};
template <>
struct SettingType<double> {
  static constexpr SettingKind kKind = SettingKind::kReal;
  static constexpr std::string_view kValueName = "X";
  static constexpr bool kMayBeAuto = false;
};
template <>
struct SettingType<std::chrono::milliseconds> {
  static constexpr SettingKind kKind = SettingKind::kSeconds;
  static constexpr std::string_view kValueName = "SECONDS";
  static constexpr bool kMayBeAuto = false;
};
template <typename T>
struct SettingType<std::optional<T>> : SettingType<T> {
  static constexpr bool kMayBeAuto = true;
};

// The member at the end of a path of members.
template <auto kFirst, auto... kRest>
constexpr auto& member_at(auto& object) {
  if constexpr (sizeof...(kRest) == 0) {
    return object.*kFirst;
  } else {
    return member_at<kRest...>(object.*kFirst);
  }
}

template <typename T>
struct OwnerOf;
template <typename Owner, typename Member>
struct OwnerOf<Member Owner::*> {
  using Type = Owner;
};

// A row for Settings::*kFirst, or for a member of that member.
template <auto kFirst, auto... kRest>
constexpr auto setting(SettingFacts facts) {
  using Settings = typename OwnerOf<decltype(kFirst)>::Type;
  using Type = SettingType<
      std::remove_cvref_t<decltype(member_at<kFirst, kRest...>(std::declval<Settings&>()))>>;
  facts.kind = Type::kKind;
  if (!facts.choices.empty()) facts.kind = SettingKind::kChoice;
  if (facts.value_name.empty()) facts.value_name = Type::kValueName;
  facts.may_be_auto = Type::kMayBeAuto;
  return Setting<Settings>{
      facts,
      [](const SettingFacts& row, const std::string& text, Settings& settings) {
        parse_setting(row, text, member_at<kFirst, kRest...>(settings));
      },
      [](const Settings& settings) {
        return format_setting(member_at<kFirst, kRest...>(settings));
      },
      [](const SettingFacts& row, const OrderedJson& json, Settings& settings) {
        read_setting(row, json, member_at<kFirst, kRest...>(settings));
      },
      [](const Settings& settings, OrderedJson& json) {
        write_setting(member_at<kFirst, kRest...>(settings), json);
      },
      [](const Settings& from, Settings& to) {
        member_at<kFirst, kRest...>(to) = member_at<kFirst, kRest...>(from);
      }};
}

}  // namespace tgi::ipc
