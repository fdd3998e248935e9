// One setting of a program: what it is called, what it may be, and how it gets into the struct that
// holds it, from a text (a flag, an environment variable) or from a field of a request. Tables of
// them are written with setting_rows.h. Plain constants.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

namespace tgi::ipc {

enum class SettingKind : uint8_t { kText, kChoice, kSwitch, kWhole, kReal, kSize, kSeconds };

enum class SettingScope : uint8_t {
  kStart,  // said when the daemon starts
  kLoad,   // also with a load; where it does not say, it is as the daemon was started
  kModel,  // also with a load; where it does not say, it is the default, as it is of one model
};

struct SettingFacts {
  std::string_view name;          // of the flag, without the dashes: "max-running"
  std::string_view value_name{};  // empty: the usual one of its kind; a switch has none
  std::string_view help;  // what it is, its unit, what it costs; choices and default are added
  SettingScope scope = SettingScope::kStart;
  std::span<const std::string_view> choices{};  // of a text; empty: any
  double low = 0;                               // of a number
  double high = std::numeric_limits<double>::infinity();
  bool above_low = false;       // low itself is not allowed
  bool is_file = false;         // a path: who hands it to another process makes it absolute
  bool is_model = false;        // a model as users name it: who hands it on resolves it to a path
  std::string_view own_word{};  // what it may be in place of a model; empty: nothing
  bool in_status = false;       // the status of a model tells what it came to, by the same name
  bool in_serve = false;        // `tgi serve` has a flag of its own for it, with this text

  // Told by the member that holds it (setting_rows.h).
  SettingKind kind = SettingKind::kText;
  bool may_be_auto = false;  // "auto": the program chooses

  constexpr bool is_switch() const { return kind == SettingKind::kSwitch; }
  // Whether such a value is to be resolved to a path.
  constexpr bool names_model(std::string_view value) const {
    return is_model && !value.empty() && value != own_word;
  }
  constexpr bool is_of_load() const { return scope != SettingScope::kStart; }
};

template <typename Settings>
struct Setting : SettingFacts {
  void (*parse)(const SettingFacts& row, const std::string& text, Settings& settings);
  std::string (*format)(const Settings& settings);
  void (*read)(const SettingFacts& row, const nlohmann::ordered_json& json, Settings& settings);
  void (*write)(const Settings& settings, nlohmann::ordered_json& json);
  void (*copy)(const Settings& from, Settings& to);

  // Both throw kInvalidArgument with what was expected and what came; `set` without the name, which
  // the caller knows as a flag or a variable.
  void set(Settings& settings, const std::string& text) const { parse(*this, text, settings); }
  void set_json(Settings& settings, const nlohmann::ordered_json& json) const {
    read(*this, json, settings);
  }
  // As `set` takes it.
  std::string get(const Settings& settings) const { return format(settings); }
};

// "max_running": its field in a request.
std::string field_name(std::string_view setting);

// What it may be, for people: "one of auto, f32", "a whole number of at least 1".
std::string allowed_values(const SettingFacts& row);

// Its help with its choices.
std::string setting_help(const SettingFacts& row);

}  // namespace tgi::ipc
