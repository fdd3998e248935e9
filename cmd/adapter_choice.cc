#include "cmd/adapter_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files/preset_files.h"
#include "cmd/model_path.h"

namespace tgi {

void add_adapter_flag(CLI::App& app, std::string& adapter) {
  app.add_option(
         "--adapter", adapter,
         "answer by this LoRA adapter: one that is loaded (`tgi adapters`), a folder, a GGUF "
         "file, or ORG/NAME[@REVISION] of the hub, which is downloaded when it is not here")
      ->type_name("ADAPTER");
}

// Where it can be seen at once: else the first request would be refused, and each after it.
static void refuse_model(const std::string& adapter, const std::string& path) {
  std::error_code error;
  if (!name_of_preset(path).empty()) {
    throw Error(
        Code::kAdapter,
        fmt::format("adapter {}: it is a preset, which is a model and no LoRA adapter", adapter));
  }
  if (std::filesystem::exists(path + "/config.json", error) &&
      !std::filesystem::exists(path + "/adapter_config.json", error)) {
    throw Error(Code::kAdapter, fmt::format("adapter {}: {} is the folder of a model, it has no "
                                            "adapter_config.json",
                                            adapter, path));
  }
}

AdapterChoice choose_adapter(Session& session, const std::string& adapter, bool offline) {
  const ipc::AdapterList list = ipc::adapter_list_from_json(session.client().call(
      ipc::kAdapters, ipc::to_json(ipc::ModelParams{.model = session.model_name()})));
  const bool is_loaded = std::ranges::any_of(
      list.adapters, [&](const ipc::AdapterStatus& each) { return each.name == adapter; });
  if (is_loaded) return {.name = adapter};
  const std::string path =
      resolve_model(adapter, {.offline = offline, .cancel_fd = session.interrupt().fd()});
  refuse_model(adapter, path);
  return {.name = adapter, .path = path};
}

void set_adapter(const std::optional<AdapterChoice>& choice, ipc::GenerateRequest& request) {
  if (!choice) return;
  request.adapter = choice->name;
  request.adapter_path = choice->path;
}

}  // namespace tgi
