// For any row of a table of settings: a value that it takes and values that it refuses.
#pragma once

#include <fmt/format.h>

#include <string>

#include "base/nlohmann_json.h"
#include "ipc/setting.h"

namespace tgi {

using ipc::SettingKind;

inline std::string taken_text(const ipc::SettingFacts& row) {
  switch (row.kind) {
    case SettingKind::kText:
      return "/some/text";
    case SettingKind::kChoice:
      return std::string(row.choices.back());
    case SettingKind::kSwitch:
      return "1";
    case SettingKind::kWhole:
      return fmt::format("{}", row.low + 7);
    case SettingKind::kReal:
      return fmt::format("{}", row.low + 0.25);
    case SettingKind::kSize:
      return "1048576";
    case SettingKind::kSeconds:
      return "7.5";
  }
  return "";
}

// "": there is none.
inline std::string refused_text(const ipc::SettingFacts& row) {
  switch (row.kind) {
    case SettingKind::kText:
      return "";
    case SettingKind::kSize:
      return "4parsecs";
    case SettingKind::kWhole:
    case SettingKind::kReal:
      return fmt::format("{}", row.low - 1);
    default:
      return "no-such-value";
  }
}

inline nlohmann::ordered_json refused_json(const ipc::SettingFacts& row) {
  if (row.kind == SettingKind::kText || row.kind == SettingKind::kSwitch) return 7;
  if (row.kind == SettingKind::kChoice) return "no-such-value";
  return row.low - 1 < 0 ? -1 : static_cast<int>(row.low) - 1;
}

}  // namespace tgi
