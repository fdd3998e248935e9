// Whom a request's `model` means: the model, another one that is served, or an adapter.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/http/adapters.h"
#include "cmd/http/model_choice.h"
#include "cmd/http/openai_body.h"

namespace tgi::http {

bool is_base_model(const std::optional<std::string>& model, const ApiOptions& options) {
  // What clients send that have no name to send: TGI's, and huggingface_hub's.
  static constexpr std::array<std::string_view, 3> kAnyModel = {"", "tgi", "dummy"};
  if (!model || *model == options.model_id) return true;
  return std::find(kAnyModel.begin(), kAnyModel.end(), *model) != kAnyModel.end();
}

ApiError model_not_found(const std::string& model,
                         const ApiOptions& options,
                         const std::string& reason) {
  return {404, "model_not_found",
          fmt::format("The model `{}` does not exist; this server has `{}`{}", model.substr(0, 200),
                      fmt::join(options.model_ids, "`, `"),
                      reason.empty() ? "" : ", and no adapter of that name: " + reason)};
}

// Only a name that this gateway has not met costs a question to the daemon.
static bool is_known_adapter(const Service& service, const std::string& name) {
  if (service.adapters == nullptr) return false;
  if (service.adapters->knows(name)) return true;
  const std::vector<std::string> names = adapter_names(service);
  return std::ranges::find(names, name) != names.end();
}

void choose_by_model(Scope& scope,
                     const OpenAiParameters& parameters,
                     std::span<ipc::GenerateRequest> requests) {
  if (parameters.model) choose_served_model(scope, *parameters.model);
  const ApiOptions& options = scope.options();
  AdapterAsk ask{.source = parameters.adapter_source, .token = parameters.api_token};
  ipc::GenerateRequest chosen;
  const bool is_base = is_base_model(parameters.model, options);
  const bool is_known = !is_base && is_known_adapter(scope.service(), *parameters.model);
  if (is_base || (options.any_model && !is_known)) {
    choose_adapter(scope, ask, chosen);
  } else {
    const std::string& name = *parameters.model;
    if (scope.service().adapters == nullptr) throw model_not_found(name, options);
    // What is no name of the hub is an adapter only where one is known.
    const bool may_be_found = ask.source || std::ranges::count(name, '/') == 1;
    if (!is_known && !may_be_found) throw model_not_found(name, options);
    ask.id = name;
    try {
      choose_adapter(scope, ask, chosen);
    } catch (const ApiError& error) {
      if (error.status() != 424 || is_known) throw;
      throw model_not_found(name, options, error.what());
    }
  }
  for (ipc::GenerateRequest& request : requests) {
    request.adapter = chosen.adapter;
    request.adapter_path = chosen.adapter_path;
  }
}

}  // namespace tgi::http
