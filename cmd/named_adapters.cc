#include "cmd/named_adapters.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "cmd/session.h"

namespace tgi {

NamedAdapterText split_named_adapter(const std::string& text) {
  const size_t equals = text.find('=');
  const bool has_name = equals != std::string::npos && equals > 0;
  std::string adapter = has_name ? text.substr(equals + 1) : text;
  std::string name = has_name ? text.substr(0, equals) : adapter.substr(0, adapter.find('@'));
  return {.name = std::move(name), .adapter = std::move(adapter)};
}

void check_adapter_names(const ServeOptions& options) {
  // Of these a request means the model, whatever adapters there are.
  std::set<std::string> models = {options.model};
  for (const auto* list : {&options.beside, &options.on_demand}) {
    for (const ipc::NamedModel& each : *list) models.insert(each.name);
  }
  std::map<std::string, std::string> named;
  const auto add = [&](const std::string& flag, const std::string& text) {
    const auto [name, adapter] = split_named_adapter(text);
    if (models.contains(name)) {
      throw UsageError(
          fmt::format("{}: {} is the name of a model, and requests with it mean that; "
                      "give the adapter another: NAME={}",
                      flag, name, adapter));
    }
    if (named.try_emplace(name, adapter).first->second == adapter) return;
    throw UsageError(fmt::format("{}: two adapters have the name {}: {} and {}", flag, name,
                                 named.at(name), adapter));
  };
  for (const std::string& text : options.lora_adapters) add("--lora-adapters", text);
  for (const std::string& text : options.preloaded_adapters) {
    add("--preloaded-adapter-ids", text);
  }
  if (!options.static_adapter.empty()) add("--adapter-id", options.static_adapter);
}

}  // namespace tgi
