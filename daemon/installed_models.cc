#include "daemon/installed_models.h"

#include <exception>
#include <filesystem>

#include "base/log.h"
#include "base/store/store.h"
#include "engine/runtime/inspect.h"

namespace tgi::daemon {

std::vector<ipc::NamedModel> installed_models() {
  std::vector<ipc::NamedModel> out;
  try {
    for (const InstalledModel& model : Store::open().models()) {
      std::error_code error;
      // Nor a folder, a file or a preset that is kept for the day it was used last.
      if (model.name == model.path) continue;
      if (!std::filesystem::exists(model.path, error) || holds_adapter(model.path)) continue;
      out.push_back({.name = model.name, .model = model.path});
    }
  } catch (const std::exception& error) {
    log_warn("installed models are not served", {{"error", error.what()}});
  }
  return out;
}

}  // namespace tgi::daemon
