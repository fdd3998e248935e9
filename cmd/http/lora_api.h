// vLLM's routes that load and unload LoRA adapters while the server runs. They name folders of this
// machine, so they answer only where the server was told to (ApiOptions::allows_lora_updates).
#pragma once

#include <memory>
#include <span>
#include <string>

#include "cmd/http/body_table.h"
#include "cmd/http/service.h"

namespace tgi::http {

struct LoadLoraBody {
  std::string name;
  std::string path;  // an absolute path of this machine, or ORG/NAME[@REVISION] of the hub
  bool in_place = false;
};

struct UnloadLoraBody {
  std::string name;
};

template <>
std::span<const BodyField<LoadLoraBody>> body_fields<LoadLoraBody>();
template <>
std::span<const BodyField<UnloadLoraBody>> body_fields<UnloadLoraBody>();
template <>
std::span<const ExtraField> extra_fields<LoadLoraBody>();
template <>
std::span<const ExtraField> extra_fields<UnloadLoraBody>();
template <>
struct SchemaName<LoadLoraBody> {
  static constexpr std::string_view value = "LoadLoraAdapterRequest";
};
template <>
struct SchemaName<UnloadLoraBody> {
  static constexpr std::string_view value = "UnloadLoraAdapterRequest";
};

// Throws ApiError 404 unless the routes are on. Before the body is read: whoever may not ask learns
// nothing of it.
void require_lora_updates(const Scope& scope);

// The answer is vLLM's text. Throws ApiError: 400 for a name that is taken and an adapter that does
// not fit, 404 where there is none.
Response load_lora(const Scope& scope, const LoadLoraBody& body);
// The same, when the requests that have it have ended.
Response unload_lora(const Scope& scope, const UnloadLoraBody& body);

}  // namespace tgi::http
