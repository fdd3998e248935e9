// The codec of what a client asks about models and adapters, as that of requests.cc.
#include <array>
#include <span>
#include <string>
#include <vector>

#include "ipc/model_name.h"
#include "ipc/request_checks.h"

namespace tgi::ipc {

template <>
std::span<const Field<LoadAdapterParams>> fields<LoadAdapterParams>() {
  static constexpr std::array kFields = {
      field<&LoadAdapterParams::model>("model"),
      field<&LoadAdapterParams::name>("name", {.required = true}),
      field<&LoadAdapterParams::path>("path", {.required = true}),
      field<&LoadAdapterParams::pinned>("pinned"),
  };
  return kFields;
}

template <>
std::span<const Field<MergeParams>> fields<MergeParams>() {
  static constexpr std::array kFields = {
      field<&MergeParams::model>("model", {.required = true}),
      field<&MergeParams::adapter>("adapter", {.required = true}),
      field<&MergeParams::output>("output", {.required = true}),
  };
  return kFields;
}

template <>
std::span<const Field<UnloadAdapterParams>> fields<UnloadAdapterParams>() {
  static constexpr std::array kFields = {
      field<&UnloadAdapterParams::model>("model"),
      field<&UnloadAdapterParams::name>("name", {.required = true}),
  };
  return kFields;
}

template <>
std::span<const Field<KeepParams>> fields<KeepParams>() {
  static constexpr std::array kFields = {
      field<&KeepParams::model>("model"),
      field<&KeepParams::keep_alive_seconds>("keep_alive_seconds"),
      field<&KeepParams::pinned>("pinned"),
  };
  return kFields;
}

template <>
std::span<const Field<UnloadParams>> fields<UnloadParams>() {
  static constexpr std::array kFields = {
      field<&UnloadParams::model>("model"),
      field<&UnloadParams::keep_name>("keep_name", kLeaveOutEmpty),
  };
  return kFields;
}

template <>
std::span<const Field<ModelParams>> fields<ModelParams>() {
  static constexpr std::array kFields = {
      field<&ModelParams::model>("model"),
  };
  return kFields;
}

OrderedJson to_json(const LoadAdapterParams& params) {
  return write_value(params);
}

LoadAdapterParams load_adapter_params_from_json(const OrderedJson& params) {
  auto out = from_params<LoadAdapterParams>(params);
  check_adapter_name("name", out.name);
  check_adapter_path("path", out.path);
  return out;
}

OrderedJson to_json(const MergeParams& params) {
  return write_value(params);
}

MergeParams merge_params_from_json(const OrderedJson& params) {
  auto out = from_params<MergeParams>(params);
  check_adapter_path("model", out.model);
  check_adapter_path("adapter", out.adapter);
  check_adapter_path("output", out.output);
  return out;
}

OrderedJson to_json(const UnloadAdapterParams& params) {
  return write_value(params);
}

UnloadAdapterParams unload_adapter_params_from_json(const OrderedJson& params) {
  auto out = from_params<UnloadAdapterParams>(params);
  check_adapter_name("name", out.name);
  return out;
}

OrderedJson to_json(const ModelParams& params) {
  return write_value(params);
}

ModelParams model_params_from_json(const OrderedJson& params) {
  return from_params<ModelParams>(params);
}

OrderedJson to_json(const KeepParams& params) {
  return write_value(params);
}
KeepParams keep_params_from_json(const OrderedJson& params) {
  return from_params<KeepParams>(params);
}

OrderedJson to_json(const UnloadParams& params) {
  return write_value(params);
}
UnloadParams unload_params_from_json(const OrderedJson& params) {
  return from_params<UnloadParams>(params);
}

OrderedJson to_json(const LoadParams& params) {
  OrderedJson out = {{"model", params.model}};
  if (params.name) out["name"] = *params.name;
  if (params.on_demand) out["on_demand"] = true;
  if (params.next_name) out["next_name"] = true;
  if (params.names_default) out["names_default"] = true;
  if (params.pinned) out["pinned"] = true;
  if (params.keep_alive_seconds) out["keep_alive_seconds"] = *params.keep_alive_seconds;
  params.settings.write(out);
  return out;
}

LoadParams load_params_from_json(const OrderedJson& params) {
  require_object(params, "params");
  std::vector<std::string> known = {"model",         "name",   "on_demand",         "next_name",
                                    "names_default", "pinned", "keep_alive_seconds"};
  for (const ModelSetting& row : model_settings()) {
    if (row.is_of_load()) known.push_back(field_name(row.name));
  }
  refuse_others(params, known, "");
  LoadParams out;
  const auto model = params.find("model");
  if (model == params.end() || model->is_null()) fail_field("model", "missing");
  read_value(*model, "model", {}, out.model);
  if (out.model.empty()) fail_field("model", "expected a folder or \"demo\", got \"\"");
  if (const auto name = params.find("name"); name != params.end() && !name->is_null()) {
    read_value(*name, "name", {}, out.name.emplace());
    try {
      check_model_name(*out.name);
    } catch (const Error& error) {
      throw error.in("name");
    }
  }
  const auto read_optional = [&](const char* field, auto& into) {
    const auto found = params.find(field);
    if (found != params.end() && !found->is_null()) read_value(*found, field, {}, into);
  };
  read_optional("on_demand", out.on_demand);
  read_optional("next_name", out.next_name);
  read_optional("names_default", out.names_default);
  read_optional("pinned", out.pinned);
  read_optional("keep_alive_seconds", out.keep_alive_seconds);
  if (out.on_demand && !out.name) {
    fail_field("on_demand", "only a model with a name is loaded on demand");
  }
  if (out.names_default && !out.name) fail_field("names_default", "goes with `name` alone");
  if (out.next_name && !out.on_demand) {
    fail_field("next_name",
               "goes with `on_demand` alone: what is loaded now has the name it is given");
  }
  out.settings.read(params);
  return out;
}

}  // namespace tgi::ipc
