#include "daemon/options.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cstdlib>

#include "base/error.h"
#include "base/files/paths.h"
#include "base/log.h"
#include "ipc/duration.h"
#include "ipc/model_settings.h"
#include "ipc/setting_rows.h"

namespace tgi::daemon {
namespace {

using ipc::setting;
using OwnSetting = ipc::Setting<Options>;

// Before the settings of a model on the page of the manual, and after them.
constexpr ipc::SettingFacts kModel{
    .name = "model",
    .value_name = "[NAME=]MODEL",
    .help =
        "Hugging Face folder to load at start, or \"demo\" for the toy model inside the "
        "executable; more than once: several models, each but the first under a name by which "
        "requests ask for it"};

constexpr ipc::SettingFacts kOnDemand{
    .name = "on-demand",
    .value_name = "NAME=MODEL",
    .help =
        "a model that is loaded when a request asks for it by this name, as are those that gave "
        "way to others; more than once: several"};
constexpr ipc::SettingFacts kKeepAlive{
    .name = "keep-alive",
    .value_name = "TIME",
    .help =
        "how long a model stays without a request, as 5m, 1h30m or a number of seconds; 0: no "
        "longer than its requests, -1: until it is unloaded or gives way. The next request that "
        "asks for it loads it again"};

constexpr auto kFirst = std::to_array<OwnSetting>({
    setting<&Options::no_model>(
        {.name = "no-model", .help = "start without a model; `tgi load` brings one"}),
    setting<&Options::load_installed>(
        {.name = "load-installed",
         .help =
             "models that tgi has downloaded or made are loaded when a request asks for them by "
             "the name that `tgi ls` shows; looked up when the daemon starts"}),
    setting<&Options::max_models>(
        {.name = "max-models",
         .help = "models that are loaded at once, 0: as many as fit. Where one is asked for beyond "
                 "that, the one unused for longest gives way, once its requests have ended; of "
                 "--model those beyond it are loaded when they are asked for"}),
});

constexpr auto kLast = std::to_array<OwnSetting>({
    setting<&Options::socket>(
        {.name = "socket", .value_name = "PATH", .help = "Unix socket to listen on"}),
    setting<&Options::allow_group>(
        {.name = "allow-group",
         .value_name = "GROUP",
         .help = "members of this group may use the daemon, beside its own user and root: "
                 "generate, tokenize, see its status and metrics; a socket handed over by systemd "
                 "lets in whom its SocketGroup= and SocketMode= do"}),
    setting<&Options::manage_group>(
        {.name = "manage-group",
         .value_name = "GROUP",
         .help = "members of this group may manage the daemon too, beside its own user and root: "
                 "load, unload, stop, quantize, inspect and check; where another group has the "
                 "socket they must be in both"}),
    setting<&Options::num_intake_threads>({.name = "intake-threads",
                                           .help = "threads that render chats and tokenise prompts",
                                           .low = 1}),
    setting<&Options::drain_timeout>(
        {.name = "drain-timeout",
         .help = "on SIGTERM or `tgi stop`, running requests get so long to finish"}),
    setting<&Options::stall_timeout>(
        {.name = "stall-timeout",
         .help = "when requests wait and no step has ended for so long, systemd's watchdog gets no "
                 "more signs of life; 0: it always does"}),
    setting<&Options::log_level>({.name = "log-level",
                                  .value_name = "LEVEL",
                                  .help = "the lowest that is logged",
                                  .choices = kLogLevelNames}),
});

// `row` outlives the table; `part` finds in Options what the row is of.
template <typename Settings, typename Part>
OptionRow option_row(const ipc::Setting<Settings>& row, Part part) {
  return {row,
          [&row, part](Options& options, const std::string& text) { row.set(part(options), text); },
          [&row, part](const Options& options) { return row.get(part(options)); }};
}

void add_model(Options& options, const std::string& text) {
  ipc::NamedModel model = ipc::split_named_model(text);
  const bool is_first = options.models.empty();
  if (!is_first && model.name.empty()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("expected NAME=MODEL for each model but the first, got \"{}\"", text));
  }
  for (const ipc::NamedModel& other : options.models) {
    if (!model.name.empty() && other.name == model.name) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("expected a name for each model, got {} twice", model.name));
    }
  }
  if (is_first) {
    options.model.model = model.model;
    options.model.name = model.name;
  }
  options.models.push_back(std::move(model));
}

void add_on_demand(Options& options, const std::string& text) {
  if (text.empty()) return;  // as a variable or --print-config says that there is none
  ipc::NamedModel model = ipc::split_named_model(text);
  if (model.name.empty()) {
    throw Error(Code::kInvalidArgument, fmt::format("expected NAME=MODEL, got \"{}\"", text));
  }
  for (const std::vector<ipc::NamedModel>* names : {&options.models, &options.on_demand}) {
    for (const ipc::NamedModel& other : *names) {
      if (other.name == model.name) {
        throw Error(Code::kInvalidArgument,
                    fmt::format("expected a name for each model, got {} twice", model.name));
      }
    }
  }
  options.on_demand.push_back(std::move(model));
}

std::string joined_models(const std::vector<ipc::NamedModel>& models) {
  std::string out;
  for (const auto& [name, model] : models) {
    out += fmt::format("{}{}{}{}", out.empty() ? "" : ", ", name, name.empty() ? "" : "=", model);
  }
  return out;
}

void set_keep_alive(Options& options, const std::string& text) {
  constexpr double kForEver = 1e9;
  const double seconds = ipc::parse_keep_alive(text);
  options.keep_alive = std::chrono::milliseconds(
      seconds < 0 || seconds > kForEver ? -1 : static_cast<int64_t>(seconds * 1000));
}

std::string all_models(const Options& options) {
  return options.models.empty() ? options.model.model : joined_models(options.models);
}

std::vector<OptionRow> make_table() {
  const auto whole = [](auto& options) -> auto& {
    return options;
  };
  const auto model = [](auto& options) -> auto& {
    return options.model;
  };
  std::vector<OptionRow> rows;
  rows.push_back({kModel, add_model, all_models, [](Options& options) { options.models.clear(); }});
  rows.push_back({kOnDemand, add_on_demand,
                  [](const Options& options) { return joined_models(options.on_demand); },
                  [](Options& options) { options.on_demand.clear(); }});
  for (const OwnSetting& row : kFirst) rows.push_back(option_row(row, whole));
  rows.push_back({kKeepAlive, set_keep_alive, [](const Options& options) {
                    return ipc::format_keep_alive(
                        std::chrono::duration<double>(options.keep_alive).count());
                  }});
  for (const ipc::ModelSetting& row : ipc::model_settings()) rows.push_back(option_row(row, model));
  for (const OwnSetting& row : kLast) rows.push_back(option_row(row, whole));
  return rows;
}

const OptionRow* find_row(std::string_view flag) {
  for (const OptionRow& row : option_table()) {
    if (row.name == flag) return &row;
  }
  return nullptr;
}

}  // namespace

std::span<const OptionRow> option_table() {
  static const std::vector<OptionRow> rows = make_table();
  return rows;
}

std::string environment_name(const OptionRow& row) {
  std::string name = "TGI_" + ipc::field_name(row.name);
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

ResolvedOptions resolve_options(const std::vector<GivenFlag>& flags) {
  ResolvedOptions out;
  out.options.socket = own_socket_path();
  for (const OptionRow& row : option_table()) {
    Origin origin = Origin::kDefault;
    const auto apply = [&](const std::string& text, const std::string& where) {
      try {
        row.set(out.options, text);
      } catch (const Error& error) {
        throw error.in(where);
      }
    };
    const auto reset = [&] {
      if (row.reset) row.reset(out.options);
    };
    const std::string variable = environment_name(row);
    if (const char* text = std::getenv(variable.c_str()); text != nullptr && *text != '\0') {
      reset();
      apply(text, variable);
      origin = Origin::kEnvironment;
    }
    for (const GivenFlag& given : flags) {
      if (given.flag != row.name) continue;
      if (origin != Origin::kFlag) reset();
      apply(given.value, "--" + given.flag);
      origin = Origin::kFlag;
    }
    out.origins.push_back(origin);
  }
  for (const GivenFlag& given : flags) TGI_CHECK(find_row(given.flag) != nullptr);
  return out;
}

std::string print_config(const ResolvedOptions& resolved) {
  std::string out;
  const auto rows = option_table();
  for (size_t i = 0; i < rows.size(); ++i) {
    const OptionRow& row = rows[i];
    std::string origin = "default";
    if (resolved.origins[i] == Origin::kEnvironment) origin = environment_name(row);
    if (resolved.origins[i] == Origin::kFlag) origin = "--" + std::string(row.name);
    out += fmt::format("{:<20} = {:<28} ({})\n", row.name, row.get(resolved.options), origin);
  }
  return out;
}

}  // namespace tgi::daemon
