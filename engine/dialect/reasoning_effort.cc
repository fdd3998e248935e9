#include "engine/dialect/reasoning_effort.h"

#include <string_view>

namespace tgi::dialect {

void add_reasoning_effort(const ReasoningDialect* dialect,
                          const std::string& effort,
                          nlohmann::ordered_json& variables) {
  const auto set = [&](std::string_view name, const nlohmann::ordered_json& value) {
    if (!variables.contains(name)) variables[std::string(name)] = value;
  };
  const bool is_on = effort != "none";
  set("reasoning_effort", effort);
  set("enable_thinking", is_on);
  set("thinking", is_on);
  if (dialect == nullptr || dialect->mode.variable.empty()) return;
  set(dialect->mode.variable, std::string(is_on ? dialect->mode.on : dialect->mode.off));
}

}  // namespace tgi::dialect
