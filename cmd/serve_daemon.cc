#include "cmd/serve_daemon.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cmd/model_path.h"

namespace tgi {
namespace {

// What a model's status tells of a setting, as its flag takes it; nothing where it tells nothing.
std::optional<std::string> told_value(const ipc::ModelSetting& row, const ipc::OrderedJson& model) {
  const auto field = model.find(ipc::field_name(row.name));
  if (!row.in_status || field == model.end()) return std::nullopt;
  if (field->is_boolean()) return field->get<bool>() ? "1" : "0";
  return field->is_string() ? field->get<std::string>() : field->dump();
}

[[noreturn]] void refuse_running(const std::string& what, const ipc::Client& client) {
  throw Error(Code::kInvalidArgument,
              fmt::format("the daemon that runs at {} {}; end it with `tgi stop --socket {}`, or "
                          "give this one another --socket",
                          client.socket_path(), what, client.socket_path()));
}

// What is set for the engine has to hold for the daemon that is there.
void check_settings(const ipc::Status& status,
                    const ServeOptions& options,
                    const ipc::Client& client) {
  const ipc::OrderedJson model = ipc::to_json(status).at("model");
  for (const EngineSetting& setting : options.engine) {
    const ipc::ModelSetting* row = ipc::find_model_setting(setting.flag);
    if (row == nullptr || setting.value == "auto") continue;
    const std::optional<std::string> value = told_value(*row, model);
    if (!value || *value == setting.value) continue;
    refuse_running(
        fmt::format("has --{} {}, not {} as asked for", setting.flag, *value, setting.value),
        client);
  }
}

// What is the daemon's alone is left out: this one runs already.
void load(const ipc::Client& client,
          const std::string& model,
          const std::optional<std::string>& name,
          const ServeOptions& options) {
  ipc::LoadParams params{.model = model, .name = name};
  if (options.tokenizer_config_path) {
    params.settings.set("tokenizer-config", absolute_model(*options.tokenizer_config_path));
  }
  for (const EngineSetting& setting : options.engine) {
    const ipc::ModelSetting* row = ipc::find_model_setting(setting.flag);
    if (row != nullptr && row->is_of_load()) params.settings.set(setting.flag, setting.value);
  }
  client.call(ipc::kLoad, ipc::to_json(params));
}

std::vector<std::string> daemon_flags(const std::string& model, const ServeOptions& options) {
  std::vector<std::string> flags;
  if (!model.empty()) flags = {"--model", model};
  if (options.tokenizer_config_path) {
    flags.push_back("--tokenizer-config");
    flags.push_back(absolute_model(*options.tokenizer_config_path));
  }
  for (const EngineSetting& setting : options.engine) {
    flags.push_back("--" + setting.flag);
    const ipc::ModelSetting* row = ipc::find_model_setting(setting.flag);
    if (row == nullptr || !row->is_switch()) flags.push_back(setting.value);
  }
  return flags;
}

// Those that are not there yet are loaded.
ipc::Status with_models_beside(const ipc::Client& client,
                               const ServeOptions& options,
                               ipc::Status status) {
  if (options.beside.empty()) return status;
  for (const auto& [name, model] : options.beside) {
    if (!ipc::has_model(status, name)) {
      load(client, model, name, options);
      continue;
    }
    const auto found = ipc::find_model(status, name).model;
    if (found && found->name != model) {
      refuse_running(
          fmt::format("has the model {} under the name {}, not {}", found->name, name, model),
          client);
    }
  }
  return client.status();
}

}  // namespace

ipc::Status prepare_served_model(const ipc::Client& client,
                                 const ServeOptions& options,
                                 ipc::StartOptions start) {
  const std::string& model = options.model_path;
  bool started = false;
  start.daemon_flags = daemon_flags(model, options);
  const auto tell = start.on_notice;
  start.on_notice = [&](const std::string& line) {
    started = started || line.starts_with("starting");
    if (tell) tell(line);
  };
  ipc::Status status = ipc::prepare_daemon(client, start);
  if (!status.model && !model.empty()) {
    load(client, model, std::nullopt, options);
    start.may_start = false;
    status = ipc::prepare_daemon(client, start);
    started = true;
  }
  if (!status.model) {
    throw Error(Code::kNotFound, fmt::format("the daemon at {} has no model; name one: tgi serve "
                                             "MODEL",
                                             client.socket_path()));
  }
  if (started) return with_models_beside(client, options, std::move(status));
  if (!model.empty() && status.model->name != model) {
    refuse_running(fmt::format("has the model {}, not {} as asked for", status.model->name, model),
                   client);
  }
  check_settings(status, options, client);
  if (options.tokenizer_config_path) {
    refuse_running("was started without --tokenizer-config-path", client);
  }
  return with_models_beside(client, options, std::move(status));
}

}  // namespace tgi
