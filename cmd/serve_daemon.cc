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
  ipc::Status known = status;
  known.model = *status.known();
  const ipc::OrderedJson model = ipc::to_json(known).at("model");
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
          const ServeOptions& options,
          bool on_demand = false) {
  ipc::LoadParams params{.model = model, .name = name, .on_demand = on_demand};
  if (const auto stay = options.stays.find(name.value_or("")); stay != options.stays.end()) {
    params.pinned = stay->second.pinned;
    params.keep_alive_seconds = stay->second.keep_alive_seconds;
  }
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
    const bool is_switch = row == nullptr ? setting.value.empty() : row->is_switch();
    if (!is_switch) flags.push_back(setting.value);
  }
  return flags;
}

// As long as it stayed in the daemon before: tgid's flags say that of all models alike.
void keep_default(const ipc::Client& client,
                  const ServeOptions& options,
                  const ipc::ModelStay& now) {
  const auto stay = options.stays.find("");
  if (stay == options.stays.end()) return;
  const bool is_same = stay->second.pinned == now.pinned &&
                       stay->second.keep_alive_seconds == now.keep_alive_seconds;
  if (is_same) return;
  client.call(ipc::kKeep,
              ipc::to_json(ipc::KeepParams{.keep_alive_seconds = stay->second.keep_alive_seconds,
                                           .pinned = stay->second.pinned}));
}

// Those that are not there yet are loaded.
ipc::Status with_models_beside(const ipc::Client& client,
                               const ServeOptions& options,
                               ipc::Status status) {
  if (options.beside.empty() && options.on_demand.empty()) return status;
  int64_t num_loaded = 1;
  const auto bring = [&](const ipc::NamedModel& wanted, bool on_demand) {
    const auto& [name, model] = wanted;
    if (!ipc::has_model(status, name)) {
      load(client, model, name, options, on_demand);
      return;
    }
    const ipc::OtherModelStatus there = ipc::find_model(status, name);
    const ipc::ModelStatus* const found = there.known();
    if (found != nullptr && found->name != model) {
      refuse_running(
          fmt::format("has the model {} under the name {}, not {}", found->name, name, model),
          client);
    }
  };
  for (const ipc::NamedModel& each : options.beside) {
    bring(each, status.max_models > 0 && ++num_loaded > status.max_models);
  }
  for (const ipc::NamedModel& each : options.on_demand) bring(each, true);
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
  if (status.known() == nullptr && !model.empty()) {
    load(client, model, std::nullopt, options);
    start.may_start = false;
    status = ipc::prepare_daemon(client, start);
    started = true;
  }
  if (status.known() == nullptr) {
    throw Error(Code::kNotFound, fmt::format("the daemon at {} has no model; name one: tgi serve "
                                             "MODEL",
                                             client.socket_path()));
  }
  if (started) {
    keep_default(client, options, status.stay);
    return with_models_beside(client, options, std::move(status));
  }
  const std::string& running = status.known()->name;
  if (!model.empty() && running != model) {
    refuse_running(fmt::format("has the model {}, not {} as asked for", running, model), client);
  }
  check_settings(status, options, client);
  if (options.tokenizer_config_path) {
    refuse_running("was started without --tokenizer-config-path", client);
  }
  return with_models_beside(client, options, std::move(status));
}

}  // namespace tgi
