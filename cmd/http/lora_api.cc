#include "cmd/http/lora_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "cmd/http/adapters.h"
#include "cmd/http/openai_body.h"
#include "ipc/client.h"

namespace tgi::http {
namespace {

ApiError invalid(const std::string& problem) {
  return {400, "validation", problem, "InvalidUserInput"};
}

ApiError not_found(const std::string& problem) {
  return {404, "not_found", problem, "NotFoundError"};
}

bool is_known(const Scope& scope, const std::string& name) {
  const std::vector<std::string> names = adapter_names(scope.service());
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

template <>
std::span<const BodyField<LoadLoraBody>> body_fields<LoadLoraBody>() {
  static constexpr std::array kFields = {
      body_field<&LoadLoraBody::name>("lora_name", {"what requests will call it"}),
      body_field<&LoadLoraBody::path>(
          "lora_path", {"the absolute path of a folder of the server, or ORG/NAME[@REVISION] of "
                        "the hub"}),
      body_field<&LoadLoraBody::in_place>("load_inplace",
                                          {"what has the name already gives way to it"}),
  };
  return kFields;
}

template <>
std::span<const BodyField<UnloadLoraBody>> body_fields<UnloadLoraBody>() {
  static constexpr std::array kFields = {
      body_field<&UnloadLoraBody::name>("lora_name", {"as it was loaded"}),
  };
  return kFields;
}

template <>
std::span<const ExtraField> extra_fields<LoadLoraBody>() {
  static constexpr std::array<ExtraField, 1> kExtras = {
      {{"is_3d_lora_weight", "[false]", "adapters of experts' matrices are not supported"}}};
  return kExtras;
}

template <>
std::span<const ExtraField> extra_fields<UnloadLoraBody>() {
  static constexpr std::array<ExtraField, 1> kExtras = {
      {{"lora_int_id", kAnything, "adapters are known by their names"}}};
  return kExtras;
}

void require_lora_updates(const Scope& scope) {
  if (scope.options().allows_lora_updates && scope.service().adapters != nullptr) return;
  throw ApiError(404, "not_found",
                 "adapters can't be loaded or unloaded over HTTP: clients would name folders of "
                 "this machine; the server has to be started with --allow-runtime-lora-updating");
}

Response load_lora(const Scope& scope, const LoadLoraBody& body) {
  if (body.name.empty() || body.path.empty()) {
    throw invalid("Both 'lora_name' and 'lora_path' must be provided.");
  }
  if (body.name.size() > ipc::kMaxAdapterName) {
    throw invalid(fmt::format("lora_name: expected at most {} bytes, got {}", ipc::kMaxAdapterName,
                              body.name.size()));
  }
  const std::string shown = body.name.substr(0, 200);
  // A request with it would mean the model.
  if (is_base_model(body.name, scope.options()) ||
      scope.service().options.find(body.name) != nullptr) {
    throw invalid(fmt::format("The name '{}' is that of a model.", shown));
  }
  if (!body.in_place && is_known(scope, body.name)) {
    throw invalid(
        fmt::format("The lora adapter '{}' has already been loaded. If you want to load "
                    "the adapter in place, set 'load_inplace' to True.",
                    shown));
  }
  Adapters& adapters = *scope.service().adapters;
  std::string folder;
  try {
    folder = adapters.find_folder(body.path);
  } catch (const Error& error) {
    throw not_found(fmt::format("Loading lora {} failed: No adapter found for {}: {}", shown,
                                body.path.substr(0, 200), error.what()));
  }
  try {
    ipc::Client(scope.service().daemon)
        .call(ipc::kLoadAdapter,
              ipc::to_json(ipc::LoadAdapterParams{
                  .model = scope.daemon_model(), .name = body.name, .path = folder}));
  } catch (const Error& error) {
    if (error.code() != Code::kAdapter) throw daemon_error(error, false);
    throw ApiError(400, "validation", error.what(), "BadRequestError");
  }
  adapters.add(body.name, folder);
  return plain_text(200, fmt::format("Success: LoRA adapter '{}' added successfully.", body.name));
}

Response unload_lora(const Scope& scope, const UnloadLoraBody& body) {
  if (body.name.empty()) {
    throw invalid("'lora_name' needs to be provided to unload a LoRA adapter.");
  }
  if (!is_known(scope, body.name)) {
    throw not_found(
        fmt::format("The lora adapter '{}' cannot be found.", body.name.substr(0, 200)));
  }
  scope.service().adapters->remove(body.name);
  try {
    ipc::Client(scope.service().daemon)
        .call(ipc::kUnloadAdapter, ipc::to_json(ipc::UnloadAdapterParams{
                                       .model = scope.daemon_model(), .name = body.name}));
  } catch (const Error& error) {
    // It was known here alone: the daemon is another one since.
    if (error.code() != Code::kAdapter) throw daemon_error(error, false);
  }
  return plain_text(200,
                    fmt::format("Success: LoRA adapter '{}' removed successfully.", body.name));
}

}  // namespace tgi::http
