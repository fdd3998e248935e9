#include "cmd/adapter_choice.h"

#include <algorithm>

#include "cmd/model_path.h"

namespace tgi {

void add_adapter_flag(CLI::App& app, std::string& adapter) {
  app.add_option(
         "--adapter", adapter,
         "answer by this LoRA adapter: one that is loaded (`tgi adapters`), a folder, a GGUF "
         "file, or ORG/NAME[@REVISION] of the hub, which is downloaded when it is not here")
      ->type_name("ADAPTER");
}

AdapterChoice choose_adapter(Session& session, const std::string& adapter, bool offline) {
  const ipc::AdapterList list = ipc::adapter_list_from_json(session.client().call(
      ipc::kAdapters, ipc::to_json(ipc::ModelParams{.model = session.model_name()})));
  const bool is_loaded = std::ranges::any_of(
      list.adapters, [&](const ipc::AdapterStatus& each) { return each.name == adapter; });
  if (is_loaded) return {.name = adapter};
  return {
      .name = adapter,
      .path = resolve_model(adapter, {.offline = offline, .cancel_fd = session.interrupt().fd()})};
}

void set_adapter(const std::optional<AdapterChoice>& choice, ipc::GenerateRequest& request) {
  if (!choice) return;
  request.adapter = choice->name;
  request.adapter_path = choice->path;
}

}  // namespace tgi
