#include "cmd/load.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <functional>

#include "base/error.h"
#include "cmd/model_path.h"
#include "cmd/models/use_record.h"
#include "cmd/ps.h"
#include "ipc/duration.h"
#include "ipc/model_name.h"

namespace tgi {
namespace {

template <typename T>
bool is_whole_text(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// A number out of its range is told by settings_of.
CLI::Validator number_check(const ipc::ModelSetting& row) {
  const bool is_real = row.kind == ipc::SettingKind::kReal;
  return {[is_real, &row](const std::string& text) {
            if (is_real ? is_whole_text<double>(text) : is_whole_text<int64_t>(text))
              return std::string();
            return fmt::format("expected {}, got \"{}\"", ipc::allowed_values(row), text);
          },
          ""};
}

void add_setting_flag(CLI::App& app, const ipc::ModelSetting& row, LoadFlags& flags) {
  const std::string name(row.name);
  const auto take = [&flags, name](const std::string& value) {
    flags.settings.emplace_back(name, value);
  };
  const std::string help = ipc::setting_help(row);
  if (row.is_switch()) {
    app.add_flag_callback(
        "--" + name, [take] { take("1"); }, help);
    return;
  }
  CLI::Option* option = app.add_option_function<std::string>("--" + name, take, help)
                            ->type_name(std::string(row.value_name));
  const bool is_number =
      row.kind == ipc::SettingKind::kWhole || row.kind == ipc::SettingKind::kReal;
  if (!row.choices.empty()) {
    option->check(CLI::IsMember(std::vector<std::string>(row.choices.begin(), row.choices.end())));
  } else if (is_number && !row.may_be_auto) {
    option->check(number_check(row));
  }
}

// A value that is none of a flag makes a wrong command line, as the parser's own complaints do.
void check_value(const std::string& flag, const std::function<void()>& take) {
  try {
    take();
  } catch (const Error& error) {
    if (error.code() == Code::kInvalidArgument) throw UsageError(error.in(flag).what());
    throw error.in(flag);
  }
}

// Whether the name is the default model's, by what that was loaded from.
bool is_default_by_source(const ipc::Status& status, const std::string& name) {
  const bool has_own = status.known() == nullptr || !status.known()->served_name.empty();
  return !has_own && shown_model(status.path) == name;
}

// What the daemon knows of the model that it has just loaded; null where it was replaced or taken
// away since.
const ipc::ModelStatus* find_loaded(const ipc::Status& status, const ipc::LoadParams& params) {
  const auto is_it = [&](const ipc::ModelStatus* known) {
    return known != nullptr && known->served_name == params.name.value_or("");
  };
  if (is_it(status.known())) return status.known();
  for (const ipc::OtherModelStatus& other : status.others) {
    if (is_it(other.known())) return other.known();
  }
  return nullptr;
}

// By the answer to the load: the model may have given way to another by now, or expired.
std::string describe_load(const ipc::OrderedJson& answer,
                          const ipc::LoadParams& params,
                          const ipc::ModelStatus* model) {
  std::string out = fmt::format("loaded {}", shown_model(model ? model->name : params.model));
  if (params.name) out += " as " + *params.name;
  if (model != nullptr) {
    out += fmt::format(" ({}, {})", model->architecture, format_bytes(model->memory.weights));
  }
  if (const auto seconds = answer.find("load_seconds"); seconds != answer.end()) {
    out += fmt::format(" in {:.2f} s", seconds->get<double>());
  } else if (model != nullptr) {
    out += fmt::format(" in {:.2f} s", model->load_seconds);
  }
  return out + "\n";
}

}  // namespace

void add_load_flags(CLI::App& app, LoadFlags& flags) {
  app.footer("Starts a daemon when none is running, and returns when the model is ready.");
  app.add_option(
         "model", flags.model,
         "a Hugging Face folder (config.json, *.safetensors, tokenizer), a GGUF file, a model of "
         "the hub as ORG/NAME[@REVISION] or ORG/NAME:QUANTISATION, which is downloaded when it is "
         "not here, a name of `tgi ls`, or \"demo\" for the built-in model")
      ->type_name("MODEL")
      ->required();
  app.add_option("--name", flags.name,
                 "serve it beside the models that are loaded, under this name, by which requests "
                 "and -m ask for it; a model of this name gives way; default: it takes the place "
                 "of the default model")
      ->type_name("NAME");
  app.add_flag("--on-demand", flags.on_demand,
               "with --name: load it only when a request asks for it")
      ->needs("--name");
  app.add_flag("--pin", flags.pin, "it neither gives way to other models nor expires")
      ->excludes("--on-demand");
  app.add_option("--keep-alive", flags.keep_alive,
                 "how long it stays without a request: 5m, 1h30m, 300 (seconds), 0 (no longer than "
                 "its requests), -1 (it stays); default: as the daemon was started")
      ->type_name("TIME");
  app.add_option("--revision", flags.revision, "of the hub: a branch, a tag or a commit")
      ->type_name("REV");
  app.add_flag("--offline", flags.offline, "download nothing");
  for (const ipc::ModelSetting& row : ipc::model_settings()) {
    if (row.is_of_load()) add_setting_flag(app, row, flags);
  }
}

ipc::GivenSettings settings_of(const LoadFlags& flags) {
  ipc::GivenSettings out;
  for (const auto& [name, value] : flags.settings) {
    // The daemon has a working directory of its own.
    const bool is_path = ipc::find_model_setting(name)->is_file && !value.empty();
    check_value("--" + name, [&, &name = name, &value = value] {
      out.set(name, is_path ? std::filesystem::absolute(value).string() : value);
    });
  }
  return out;
}

int run_load(const LoadFlags& flags, const CommonFlags& common) {
  ipc::LoadParams params{.model = {}, .settings = settings_of(flags)};
  if (!flags.name.empty()) {
    params.name = flags.name;
    check_value("--name", [&] { ipc::check_model_name(flags.name); });
  }
  params.on_demand = flags.on_demand;
  params.pinned = flags.pin;
  if (!flags.keep_alive.empty()) {
    check_value("--keep-alive",
                [&] { params.keep_alive_seconds = ipc::parse_keep_alive(flags.keep_alive); });
  }
  Session session(common);
  const bool is_dummy = params.settings.values().load_format == "dummy";
  ResolveOptions resolve{
      .offline = flags.offline, .needs_weights = !is_dummy, .cancel_fd = session.interrupt().fd()};
  for (const auto& [name, value] : flags.settings) {
    if (!ipc::find_model_setting(name)->names_model(value)) continue;
    params.settings.set(name, resolve_files(value, resolve));
  }
  resolve.revision = flags.revision;
  resolve.must_be_model = true;
  const ModelPaths paths = resolve_model_or_heads(flags.model, resolve);
  params.model = paths.model;
  if (!paths.speculator.empty()) params.settings.set("speculator", paths.speculator);
  // A daemon that was just started may be loading its default model: that comes first.
  const ipc::Status before = session.prepare({.accept_failed = true});
  params.names_default = params.name && is_default_by_source(before, *params.name);
  const ipc::OrderedJson answer = session.client().call(ipc::kLoad, ipc::to_json(params));
  if (flags.on_demand) {
    session.out().write(fmt::format("{} is loaded as {} when a request asks for it\n",
                                    shown_model(params.model), *params.name));
    return 0;
  }
  if (params.model != "demo") record_use(params.model);
  const ipc::Status status = session.client().status();
  session.say_verbose(format_status(status));
  session.out().write(describe_load(answer, params, find_loaded(status, params)));
  return 0;
}

}  // namespace tgi
