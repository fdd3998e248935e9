// ollama's routes that make and remove models: here presets, of models that are served or presets
// that are kept. What is made is served at once, loaded when it is asked for.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/preset_files.h"
#include "cmd/http/model_choice.h"
#include "cmd/http/ollama_api.h"
#include "ipc/protocol.h"

namespace tgi::http {
namespace {

// What is wrong with a preset is wrong with the body.
template <typename Act>
auto as_rule(std::string_view field, const Act& act) {
  try {
    return act();
  } catch (const Error& error) {
    throw validation_error(field.empty() ? std::string(error.what())
                                         : fmt::format("`{}`: {}", field, error.what()));
  }
}

void read_parameter(const std::string& name, const OrderedJson& value, PresetParameters& to) {
  const std::string path = "parameters." + name;
  const auto set = [&](const std::string& text) {
    as_rule(path, [&] { set_parameter(to, name, text); });
  };
  if (value.is_array()) {
    for (const OrderedJson& each : value) {
      if (!each.is_string()) fail_body_type(path, "texts", each);
      set(each.get<std::string>());
    }
  } else if (value.is_string()) {
    set(value.get<std::string>());
  } else if (value.is_number()) {
    set(value.dump());
  } else {
    fail_body_type(path, "a number, a text or a list of texts", value);
  }
}

std::vector<PresetMessage> messages_of(const OrderedJson& messages) {
  if (!messages.is_array()) fail_body_type("messages", "an array", messages);
  std::vector<PresetMessage> out;
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string path = fmt::format("messages[{}]", i);
    const OrderedJson& from = messages[i];
    if (!from.is_object()) fail_body_type(path, "an object", from);
    PresetMessage& message = out.emplace_back();
    for (const auto& item : from.items()) {
      const std::string member = path + "." + item.key();
      if (item.key() == "role") {
        read_body_value(item.value(), member, message.role);
      } else if (item.key() == "content") {
        read_body_value(item.value(), member, message.content);
      } else if (!item.value().is_null()) {
        require(false, "`{}` is not kept: messages of a preset are a role and a text", member);
      }
    }
    as_rule(path + ".role", [&] { check_message_role(message.role); });
  }
  return out;
}

std::vector<std::string> licenses_of(const OrderedJson& license) {
  if (license.is_string()) return {license.get<std::string>()};
  if (!license.is_array()) fail_body_type("license", "a text or a list of texts", license);
  std::vector<std::string> out;
  for (const OrderedJson& each : license) {
    if (!each.is_string()) fail_body_type("license", "a text or a list of texts", each);
    out.push_back(each.get<std::string>());
  }
  return out;
}

const ServedStatus* find_served(const std::vector<ServedStatus>& served, const std::string& name) {
  const std::string short_name = without_latest(name);
  const auto it = std::ranges::find_if(served, [&](const ServedStatus& each) {
    return each.model_id == name || each.model_id == short_name;
  });
  return it == served.end() ? nullptr : &*it;
}

// The model's own files or, of a preset, all that it says.
Preset base_of(const std::vector<ServedStatus>& served, const std::string& from) {
  std::string path;
  if (const auto preset = find_preset(from)) {
    path = *preset;
  } else if (const ServedStatus* const found = find_served(served, from)) {
    path = found->model.name;
  } else {
    throw ApiError(404, "not_found",
                   fmt::format("model '{}' not found: `from` names a model of this server or a "
                               "preset; `tgi create` makes presets of any model",
                               from.substr(0, 200)));
  }
  if (is_preset_path(path)) return as_rule("from", [&] { return read_preset(path); });
  return {.from = path, .parameters = {}};
}

Preset preset_asked(const std::vector<ServedStatus>& served, const OllamaCreateBody& body) {
  require(!body.from.value_or("").empty(),
          "`from` is required: the model that this one is made of");
  Preset out{.from = *body.from, .parameters = {}};
  if (body.parameters) {
    if (!body.parameters->is_object()) fail_body_type("parameters", "an object", *body.parameters);
    for (const auto& item : body.parameters->items()) {
      if (!item.value().is_null()) read_parameter(item.key(), item.value(), out.parameters);
    }
  }
  if (body.system) out.system = *body.system;
  if (!body.chat_template.value_or("").empty()) {
    as_rule("template", [&] { check_template(*body.chat_template); });
    out.chat_template = *body.chat_template;
  }
  if (body.messages) out.messages = messages_of(*body.messages);
  if (body.license) out.licenses = licenses_of(*body.license);
  return over(base_of(served, *body.from), std::move(out));
}

// From now on requests load it by its name; what is loaded goes once its requests have ended.
void serve_preset(Scope& scope, const std::string& name, bool was_loaded) {
  const ipc::LoadParams load{
      .model = preset_path(name), .name = name, .on_demand = true, .settings = {}};
  try {
    (void)ask_daemon(scope.service(), ipc::kLoad, ipc::to_json(load));
    if (!was_loaded) return;
    (void)ask_daemon(scope.service(), ipc::kUnload,
                     ipc::to_json(ipc::UnloadParams{.model = name, .keep_name = true}));
  } catch (const Error& error) {
    throw daemon_error(error, false);
  }
}

}  // namespace

Response ollama_create(std::shared_ptr<Scope> scope, const OllamaCreateBody& body) {
  const std::string name = as_rule("model", [&] { return preset_name(ollama_name(body)); });
  const std::vector<ServedStatus> served = ask_served(*scope);
  const ServedStatus* const in_place = find_served(served, name);
  require(in_place == nullptr || is_preset_path(in_place->model.name),
          "`model`: this server has a model '{}' that is no preset; choose another name", name);
  const Preset preset = preset_asked(served, body);
  as_rule("", [&] { keep_preset(name, preset); });
  serve_preset(*scope, name, in_place != nullptr && in_place->is_loaded);
  const OrderedJson success = {{"status", "success"}};
  if (!body.stream.value_or(true)) return json_response(200, success);
  return {.status = 200,
          .content_type = std::string(kJsonLines.content_type),
          .body = fmt::format("{}\n{}\n{}\n",
                              dump_json({{"status", fmt::format("using model {}", *body.from)}}),
                              dump_json({{"status", "writing preset"}}), dump_json(success))};
}

Response ollama_delete(std::shared_ptr<Scope> scope, const OllamaModelBody& body) {
  const std::string& asked = ollama_name(body);
  if (!find_preset(asked)) {
    throw ApiError(501, "unsupported",
                   "this server removes no models but presets; `tgi rm MODEL` does");
  }
  const std::string name = preset_name(asked);
  const std::vector<ServedStatus> served = ask_served(*scope);
  const ServedStatus* const in_place = find_served(served, name);
  if (in_place != nullptr && in_place->model.name == preset_path(name)) {
    try {
      (void)ask_daemon(scope->service(), ipc::kUnload,
                       ipc::to_json(ipc::UnloadParams{.model = in_place->model_id}));
    } catch (const Error& error) {
      throw daemon_error(error, false);
    }
  }
  as_rule("", [&] { remove_preset(name); });
  (void)models_now(scope->service());  // so that the next request is told that there is none
  return {.status = 200};
}

}  // namespace tgi::http
