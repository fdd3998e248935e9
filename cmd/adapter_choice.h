// An adapter as the user names it, as the daemon needs it.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "cmd/session.h"
#include "ipc/protocol.h"

namespace tgi {

struct AdapterChoice {
  std::string name;
  std::optional<std::string> path{};  // none: the daemon has loaded one of that name
};

void add_adapter_flag(CLI::App& app, std::string& adapter);

// One that the daemon has by that name; else a folder, or ORG/NAME of the hub, which is downloaded
// when it is not here. REQUIRES: the session was prepared. Throws what resolve_model throws.
AdapterChoice choose_adapter(Session& session, const std::string& adapter, bool offline);

// Nothing for an empty name.
void set_adapter(const std::optional<AdapterChoice>& choice, ipc::GenerateRequest& request);

}  // namespace tgi
